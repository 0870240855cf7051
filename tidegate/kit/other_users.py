"""The other users who can log in to this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pwd

__all__ = ["other_users"]

_FIRST_UID: Final = 500 if sys.platform == "darwin" else 1000
"""The first id of people's accounts; those below are services'."""
_NOBODY: Final = 65534
_NO_SHELLS: Final = frozenset({"nologin", "false", "true", "sync", "halt", "shutdown", ""})


def other_users(entries: Iterable[pwd.struct_passwd] | None = None) -> list[str]:
    """The names of other people's accounts, with a login shell and an existing home folder. root is not included,
    because it may do everything anyway.
    """
    import pwd

    return sorted(
        entry.pw_name
        for entry in (pwd.getpwall() if entries is None else entries)
        if _FIRST_UID <= entry.pw_uid < _NOBODY
        and entry.pw_uid != os.geteuid()
        and Path(entry.pw_shell).name not in _NO_SHELLS
        and Path(entry.pw_dir).is_dir()
    )
