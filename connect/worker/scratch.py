"""Temporary files of task hosts: each host has a folder for them, which goes however the host ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["Scratch"]

_PREFIX: Final = "tidegate-host-"


class Scratch:
    """A folder for a new host, to be its TMPDIR. Its worker has it locked: a lock ends with its process, in whatever container that
    is, so a folder without one was left by a worker that was killed, and the next worker removes it."""

    def __init__(self) -> None:
        for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            lock = _locked(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            lock = _locked(self.path)
            # Before it was locked, another worker may have taken it for one that was left.
            if lock is not None and self.path.exists():
                self._lock = lock
                return
            if lock is not None:
                os.close(lock)

    def remove(self) -> None:
        """Remove it with all that is in it, once. A file that cannot be removed stays."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _locked(folder: Path) -> int | None:
    """The descriptor of a lock on the folder; None where another has it, or it is gone or another user's."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
