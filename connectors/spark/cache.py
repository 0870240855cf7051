"""The user's cache folder, for files that one Spark leaves to the next."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

__all__ = ["arriving", "cache_folder"]

_PREFIX: Final = ".arriving-"
_STALE_S: Final = 3600
"""Longer than anything takes to arrive."""


def cache_folder() -> Path:
    """``$TIDEGATE_CACHE``, else the user's cache folder."""
    folder = os.environ.get("TIDEGATE_CACHE")
    return Path(folder) if folder else Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tidegate"


@contextmanager
def arriving(folder: Path) -> Iterator[Path]:
    """A temporary folder in a folder of the cache, for files that are moved when they are whole: others may look for them now.

    Deletes those of processes that were killed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < time.time() - _STALE_S:
                shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=folder) as made:
        yield Path(made)
