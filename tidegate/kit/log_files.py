"""Keeps log files small while other processes write to them, as logrotate does with ``copytruncate``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["rotate"]

_CHUNK_BYTES = 1 << 20


def rotate(path: Path, *, max_bytes: int, backups: int) -> bool:
    """Move the content of a file that is longer than ``max_bytes`` to ``<path>.1``. The content of ``.1`` goes to ``.2``, and so on;
    the oldest beyond ``backups`` is deleted. Returns whether the file was long enough.

    The file itself stays, so that a process which appends to it (``O_APPEND``) goes on at its new beginning. A line that is
    written between the last read and the cut is lost. Raises OSError, on a full disk too; then the file and its backups are as
    they were.
    """
    if path.stat().st_size <= max_bytes:
        return False
    if backups:
        first = _backup(path, 1)
        unfinished = first.with_name(f"{first.name}.unfinished")
        try:
            with path.open("rb") as source, unfinished.open("wb") as copy:
                os.fchmod(copy.fileno(), path.stat().st_mode & 0o777)
                shutil.copyfileobj(source, copy, _CHUNK_BYTES)
                copy.flush()
                for number in range(backups - 1, 0, -1):
                    if (older := _backup(path, number)).exists():
                        older.replace(_backup(path, number + 1))
                unfinished.replace(first)
                copy.write(source.read())  # lines that came while the first part was written
        finally:
            unfinished.unlink(missing_ok=True)
    os.truncate(path, 0)
    return True


def _backup(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
