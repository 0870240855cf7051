"""Plain values that share delivery takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = [
    "GAP",
    "RENEW",
    "AcknowledgeBatch",
    "Acquired",
    "BatchSpan",
    "ShareSettings",
]

GAP = 0
"""The type of an acknowledgement that says that there is no record with this offset."""
RENEW = 4
"""The type of an acknowledgement that asks for more time."""


class BatchSpan(NamedTuple):
    """A batch of records in the log, by its offsets."""

    first: int
    last: int


class Acquired(NamedTuple):
    """Records that a fetch got, both ends included, and how often they have been delivered by now."""

    first: int
    last: int
    deliveries: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class AcknowledgeBatch(NamedTuple):
    """``types`` has one type for all records, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class ShareSettings(NamedTuple):
    """The settings of a group's share-partitions now."""

    delivery_count_limit: int = 5
    max_record_locks: int = 2000
    record_lock_ms: int = 30_000
    read_committed: bool = False
    auto_offset_reset: str = "latest"
    renew_enabled: bool = True
