"""The limit on open files of this process (``ulimit -n``): raised as far as it goes, and the room below it."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

__all__ = ["FileRoom", "most_open_files", "raise_limit"]

_MOST_WISHED: Final = 1 << 20
"""Where there is no limit, so that what goes through all numbers of files ends."""
_LISTED: Final = (Path("/proc/self/fd"), Path("/dev/fd"))
_MOST_KEPT: Final = 1000


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


class FileRoom:
    """How many more files may be opened for good, with some kept for connections and for what is open a while."""

    def __init__(self) -> None:
        self.most = most_open_files()
        self._kept = min(_MOST_KEPT, self.most // 10)
        self._open = self._opened_since = 0
        self._recount_after = 0

    def has(self, count: int) -> bool:
        """Whether ``count`` more fit. They count as open from now on, until the files are counted again."""
        if self._opened_since >= self._recount_after:
            self._open, self._opened_since = _count(), 0
            self._recount_after = max(1, (self.most - self._open) // 10)
        fits = self._open + self._opened_since + count <= self.most - self._kept
        self._opened_since += count if fits else self._recount_after
        return fits


def _count() -> int:
    """The open files of this process; 0 where the system does not list them."""
    for folder in _LISTED:
        try:
            return sum(1 for _ in folder.iterdir())
        except OSError:
            continue
    return 0
