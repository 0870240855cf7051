"""Files that are complete or absent after a crash, descriptors that live as long as their readers, and errors with a
path.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from broker.errors import KafkaStorageError

__all__ = [
    "FileHandle",
    "storage_errors",
    "sync_data",
    "sync_directory",
    "sync_file",
    "write_all",
    "write_at",
    "write_atomically",
]

_BUFFERS_AT_ONCE: Final = 512
"""Below IOV_MAX (1024 on Linux and macOS)."""


class FileHandle:
    """An open file that closes with its last reference, so that a slow reader can finish after the file's deletion.

    Raises FileNotFoundError if it does not exist, unless ``create`` is set.
    """

    __slots__ = ("fd",)

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.fd = -1
        self.fd = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0) | os.O_CLOEXEC, 0o644)

    def read(self, position: int, size: int) -> bytes:
        """Up to ``size`` bytes. Raises OSError."""
        return os.pread(self.fd, size, position)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn an OSError into KafkaStorageError that says ``what`` could not be done and why."""
    try:
        yield
    except OSError as error:
        raise KafkaStorageError(f"cannot {what}: {error.strerror or error}") from error


def write_all(fd: int, buffers: Sequence[bytes | memoryview], position: int) -> None:
    """Write all buffers consecutively at ``position``. Raises OSError; some, all or none may then be written."""
    for start in range(0, len(buffers), _BUFFERS_AT_ONCE):
        part = buffers[start : start + _BUFFERS_AT_ONCE] if len(buffers) > _BUFFERS_AT_ONCE else buffers
        total = sum(map(len, part))
        written = os.pwritev(fd, part, position)
        if written < total:
            _write_rest(fd, b"".join(part), position, written)
        position += total


def _write_rest(fd: int, data: bytes, position: int, written: int) -> None:
    """Continue after a short write. Its cause raises now, or was temporary."""
    view = memoryview(data)
    while written < len(view):
        written += os.pwrite(fd, view[written:], position + written)


def write_at(path: str, data: bytes, position: int) -> None:
    """Write into a file, created if missing; at position 0 the data replaces it. Can be repeated after a failure."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (0 if position else os.O_TRUNC), 0o644)
    try:
        written = 0
        while written < len(data):
            written += os.pwrite(fd, data[written:], position + written)
    finally:
        os.close(fd)


def sync_data(fd: int) -> None:
    """Flush a file's content to the disk itself; on macOS fsync alone leaves it in the drive's cache."""
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(fd)


def sync_file(path: str | Path) -> None:
    """Flush a file's content to disk. Does nothing if the file does not exist."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        sync_data(fd)
    finally:
        os.close(fd)


def sync_directory(path: Path) -> None:
    """Make the names in a directory (new, renamed, removed files) durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file's content with ``data``. After a crash it is the old or the new one.

    Without ``durable`` only concurrent readers are safe from partial content; a crash of the machine may leave
    anything. Use that for files that have a checksum and can be rebuilt.
    """
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        if durable:
            file.flush()
            sync_data(file.fileno())
    temporary.replace(path)
    if durable:
        sync_directory(path.parent)
