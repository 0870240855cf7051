"""What the logs of a directory leave for its housekeeping to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.log.partition import PartitionLog

__all__ = ["Upkeep"]


def _at_once(path: Path, _delay_ms: int) -> None:
    path.unlink(missing_ok=True)


class Upkeep:
    """Shared by the logs of a directory. Any thread adds to the sets, one takes away."""

    __slots__ = ("bury", "failed", "moved")

    def __init__(self, bury: Callable[[Path, int], None] = _at_once) -> None:
        self.bury = bury
        """Gets a file or directory that is out of use, and after how many ms it may be removed."""
        self.failed: set[PartitionLog] = set()
        """Logs whose records could not be flushed: they refuse appends until they are repaired."""
        self.moved: set[PartitionLog] = set()
        """Logs that were flushed since their recovery point was written down."""
