"""Removes unused files after ``file.delete.delay.ms``, in a thread, because large files take a file system long."""

from __future__ import annotations

import heapq
import shutil
import threading
import time
from pathlib import Path

from tidegate.kit.logs import get_logger

__all__ = ["Graves"]

logger = get_logger(__name__)


class Graves:
    """Thread-safe. Files that remain when the process ends have a name that the next start recognises."""

    def __init__(self) -> None:
        self._due: list[tuple[float, Path]] = []
        self._stopped = False
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._due)

    def bury(self, path: Path, delay_ms: int) -> None:
        """Schedule the removal of a file or directory after ``delay_ms``."""
        with self._lock:
            heapq.heappush(self._due, (time.monotonic() + delay_ms / 1000, path))

    def stop(self) -> None:
        """Stop after the current removal."""
        self._stopped = True

    @property
    def is_due(self) -> bool:
        """Whether ``clear`` has work to do."""
        due = self._due
        return bool(due) and due[0][0] <= time.monotonic()

    def clear(self, *, all_of_them: bool = False) -> int:
        """Remove what is due, however long that takes. Returns how many."""
        removed = 0
        while (path := self._next(all_of_them=all_of_them)) is not None:
            try:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
            except OSError as error:
                logger.warning("cannot remove what was deleted", path=str(path), error=str(error))
            removed += 1
        return removed

    def _next(self, *, all_of_them: bool) -> Path | None:
        with self._lock:
            if self._stopped or not self._due or (not all_of_them and self._due[0][0] > time.monotonic()):
                return None
            return heapq.heappop(self._due)[1]
