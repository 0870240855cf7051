"""The limit on open files of this process (``ulimit -n``): raised as far as it goes."""

from __future__ import annotations

import resource
from typing import Final

__all__ = ["most_open_files", "raise_limit"]

_MOST_WISHED: Final = 1 << 20
"""Where there is no limit, so that what goes through all numbers of files ends."""


def most_open_files() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST_WISHED if soft == resource.RLIM_INFINITY else soft


def raise_limit() -> int:
    """Raise the soft limit to the hard one, as Java does; the limit from now on, also of processes that are started."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wished = _MOST_WISHED if hard == resource.RLIM_INFINITY else min(hard, _MOST_WISHED)
    if soft != resource.RLIM_INFINITY and soft < wished:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wished, hard))
        except (OSError, ValueError):  # macOS has a limit of its own below the hard one
            return soft
    return most_open_files()
