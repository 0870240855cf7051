"""The segments whose files are open. Of more than fit, the ones that were not used for longest are closed."""

from __future__ import annotations

import errno
import os
import sys
from collections import OrderedDict
from typing import Final, Protocol

from tidegate.kit.open_files import most_open_files

__all__ = ["OpenFile", "OpenFiles"]

_LOOKED_AT: Final = 64
"""How many files one opening looks at: if data of all of them waits for the disk, none is closed."""


class OpenFile(Protocol):
    """The owner of an open file. It sets ``is_recent`` at each use."""

    is_recent: bool

    @property
    def is_synced(self) -> bool:
        """Whether everything in the file is on disk."""

    def release(self) -> None:
        """Close the file, and call ``OpenFiles.closed``."""


class OpenFiles:
    """Shared by the logs of a broker, and used on their thread.

    A file is closed only if it is on disk: the system reports a failed write to those who have the file open, and may
    forget it when nobody has. So more than ``most`` are open, up to ``limit``, while data of that many waits for a flush.
    By default that is half of what the process may open, and three quarters; the rest is for connections.
    """

    def __init__(self, most: int | None = None, limit: int | None = None) -> None:
        room = most_open_files()
        self._most = max(1, room // 2 if most is None else most)
        self._limit = room * 3 // 4 if limit is None else limit
        self._open: OrderedDict[OpenFile, None] = OrderedDict()
        self._has_closed = False

    @property
    def slices_at_once(self) -> int:
        """How many slices of files one answer may have: they keep files open until they are sent."""
        return max(1, self._most // 10) if self._has_closed else sys.maxsize

    def make_room(self) -> None:
        """Call it before a file is opened. Raises OSError if too many wait for their flush."""
        files = self._open
        for _ in range(_LOOKED_AT):
            if len(files) < self._most:
                return
            self._has_closed = True
            oldest = next(iter(files))
            if oldest.is_recent or not oldest.is_synced:
                oldest.is_recent = False
                files.move_to_end(oldest)
            else:
                oldest.release()
        if len(files) >= self._limit:
            raise OSError(errno.EMFILE, f"{len(files)} files wait for their flush: {os.strerror(errno.EMFILE)}")

    def opened(self, file: OpenFile) -> None:
        self._open[file] = None

    def closed(self, file: OpenFile) -> None:
        self._open.pop(file, None)
