"""Where bytes come from: a growing file, or the standard input."""

from __future__ import annotations

import os
import selectors
import sys
from pathlib import Path
from typing import Final, Protocol

from connect.api import ConnectError, get_logger
from connectors.files.lines import whole_lines

__all__ = ["FileTail", "InputTail", "Tail"]

logger = get_logger(__name__)

_BLOCK_BYTES: Final = 4 * 1024 * 1024


class Tail(Protocol):
    """Reads blocks of whole lines. ``position`` is the offset of the next byte; None where there is no offset."""

    position: int | None

    def read(self) -> bytes:
        """The next whole lines; empty when there are none now.

        Returns the same bytes again until ``take`` is called.
        """
        ...

    def take(self, count: int) -> None:
        """Advance by this many bytes of what was read."""
        ...

    def close(self) -> None: ...


class FileTail:
    """A file read from ``position`` on.

    It need not exist yet, which a log message says. Once open it stays open, even if it is renamed or replaced.
    """

    def __init__(self, path: Path, position: int) -> None:
        self.position: int | None = position
        self._path, self._at = path, position
        self._file: int | None = None
        self._waits = False

    def read(self) -> bytes:
        """Raises ConnectError when the file has become shorter than the part already read, or cannot be read."""
        try:
            return self._read()
        except FileNotFoundError:
            if not self._waits:
                self._waits = True
                logger.warning("the file is not there: waiting for it", file=str(self._path.absolute()))
            return b""
        except OSError as error:
            raise ConnectError(f"cannot read file {self._path}: {error.strerror}") from error

    def _read(self) -> bytes:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        size = os.fstat(self._file).st_size
        if size < self._at:
            raise ConnectError(
                f"file {self._path} has {size} bytes, but {self._at} of it were read: it was cut off or replaced. "
                "Reset the connector's offsets to read it again from its start"
            )
        limit = _BLOCK_BYTES
        while size > self._at:
            block = os.pread(self._file, limit, self._at)
            if end := whole_lines(block):
                return block[:end]
            if len(block) < limit:
                return b""
            limit *= 2
        return b""

    def take(self, count: int) -> None:
        self._at += count
        self.position = self._at

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


class InputTail:
    """The standard input, read without blocking."""

    position: int | None = None

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._input = sys.stdin.fileno()
        self._selector.register(self._input, selectors.EVENT_READ)
        self._rest = b""

    def read(self) -> bytes:
        if not whole_lines(self._rest) and self._selector.select(timeout=0):
            self._rest += os.read(self._input, _BLOCK_BYTES)
        return self._rest[: whole_lines(self._rest)]

    def take(self, count: int) -> None:
        self._rest = self._rest[count:]

    def close(self) -> None:
        self._selector.close()
