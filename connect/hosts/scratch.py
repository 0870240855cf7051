"""Temporary files of task hosts: each host has a folder for them, which goes however the host ends."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Final

__all__ = ["make_scratch", "remove_scratch"]

_PREFIX: Final = "tidegate-host-"


def make_scratch() -> Path:
    """A folder for a new host, to be its TMPDIR. Removes those of workers that were killed on the way."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        worker = re.match(rf"{_PREFIX}(\d+)-", path.name)
        if worker is not None and not _runs(int(worker[1])):
            remove_scratch(path)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def remove_scratch(folder: Path) -> None:
    """Remove it with all that is in it. What cannot be removed, such as another user's, stays."""
    shutil.rmtree(folder, ignore_errors=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
