"""Private folders, their locks, and files that are replaced atomically: a reader sees the old or the new content, never a part."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from tidegate.kit.errors import UsageError

__all__ = ["folder_lock", "make_folder", "write_whole"]


def write_whole(path: Path, content: str | bytes, *, mode: int = 0o666, durable: bool = False) -> None:
    """Replace or create a file. Text is written as UTF-8.

    The file has its ``mode``, minus the umask, from its first byte on. With ``durable`` the new content survives a
    crash of the machine; without it, the file may be empty afterwards. If two processes write the same file, the later
    one wins. If it raises OSError, nothing is changed.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    temporary.unlink(missing_ok=True)
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # the next write removes it
            temporary.unlink(missing_ok=True)
        raise


def make_folder(path: Path) -> Path:
    """Create a folder that only its owner may enter, unless it exists, and return it. Raises UsageError."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"cannot make the folder {path}: {error.strerror}") from error
    return path


@contextlib.contextmanager
def folder_lock(path: Path) -> Iterator[None]:
    """Let one process at a time into the block, of those that name the same folder. The lock ends with its process.

    Raises OSError if the folder can't be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
