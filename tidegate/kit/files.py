"""Files that are put in place whole: who reads one sees the old or the new content, and never a part."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, content: str | bytes, *, mode: int = 0o666, durable: bool = False) -> None:
    """Replace a file, or make it. Text is written as UTF-8.

    The file has its ``mode``, less the umask, from its first byte on. A ``durable`` one has its new content after a crash of the
    machine, another perhaps none. Two processes may write the same file: the later one wins. Raises OSError, and then nothing is
    changed.
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
        with contextlib.suppress(OSError):  # the next write takes it away
            temporary.unlink(missing_ok=True)
        raise
