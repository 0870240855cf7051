"""Maintenance work that logs leave to their directory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from broker.log.files import sync_directory
from broker.log.open_files import OpenFiles

__all__ = ["Upkeep"]

L = TypeVar("L")


def _at_once(path: Path, _delay_ms: int) -> None:
    path.unlink(missing_ok=True)


class Upkeep(Generic[L]):
    """Shared by the logs (of class ``L``) of a directory. Any thread may add to the sets; one thread removes."""

    __slots__ = ("_lock", "_named", "_synced", "bury", "failed", "moved", "open_files")

    def __init__(self, bury: Callable[[Path, int], None] = _at_once, open_files: OpenFiles | None = None) -> None:
        self._lock = threading.Lock()
        self._named = self._synced = 0
        self.bury = bury
        """Is called with an unused file or directory and the ms after which it may be removed."""
        self.open_files = open_files or OpenFiles()
        self.failed: set[L] = set()
        """Logs with a failed flush: they refuse appends until they are repaired."""
        self.moved: set[L] = set()
        """Logs that were flushed since their recovery point was written."""

    def named(self) -> None:
        """A directory was created or renamed, which is not durable yet."""
        self._named += 1

    def sync_names(self, directory: Path) -> None:
        """Make all names in ``directory`` durable that were created so far. Raises OSError."""
        named = self._named
        with self._lock:
            if self._synced < named:
                covered = self._named
                sync_directory(directory)
                self._synced = covered
