"""Keeps log files small while other processes write to them, as logrotate does with ``copytruncate``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["rotate"]

_CHUNK_BYTES = 1 << 20


def rotate(path: Path, *, max_bytes: int, backups: int) -> bool:
    """Move the content of a file that is longer than ``max_bytes`` to ``<path>.1``, that of ``.1`` to ``.2`` and so on, and
    delete what would be beyond ``backups``. Returns whether it was long enough.

    The file itself stays, so that a process which appends to it (``O_APPEND``) goes on at its new beginning. A line that is
    written between the last read and the cut is lost. Raises OSError; the file is then as it was.
    """
    if path.stat().st_size <= max_bytes:
        return False
    if backups:
        for number in range(backups - 1, 0, -1):
            older = _backup(path, number)
            if older.exists():
                older.replace(_backup(path, number + 1))
        first = _backup(path, 1)
        unfinished = first.with_name(f"{first.name}.unfinished")
        with path.open("rb") as source, unfinished.open("wb") as copy:
            os.fchmod(copy.fileno(), path.stat().st_mode & 0o777)
            shutil.copyfileobj(source, copy, _CHUNK_BYTES)
            unfinished.replace(first)
            copy.write(source.read())  # what came while the first part was written
            copy.flush()
            os.truncate(path, 0)
    else:
        os.truncate(path, 0)
    return True


def _backup(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
