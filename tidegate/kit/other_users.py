"""Who else may log in to this machine."""

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
"""People's accounts begin here; those below are services'."""
_NOBODY: Final = 65534
_NO_SHELLS: Final = frozenset({"nologin", "false", "true", "sync", "halt", "shutdown", ""})


def other_users(entries: Iterable[pwd.struct_passwd] | None = None) -> list[str]:
    """The names of accounts of people, with a login shell and a home folder that is there, other than our own. root is not
    among them: it may do everything anyway."""
    import pwd

    return sorted(
        entry.pw_name
        for entry in (pwd.getpwall() if entries is None else entries)
        if _FIRST_UID <= entry.pw_uid < _NOBODY
        and entry.pw_uid != os.geteuid()
        and Path(entry.pw_shell).name not in _NO_SHELLS
        and Path(entry.pw_dir).is_dir()
    )
