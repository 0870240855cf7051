"""Arguments and results of share delivery, as plain values."""

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
"""The acknowledgement type for an offset without a record."""
RENEW = 4
"""The acknowledgement type that asks for more time."""


class BatchSpan(NamedTuple):
    """A batch of records in the log, by its offsets."""

    first: int
    last: int


class Acquired(NamedTuple):
    """Records acquired by a fetch, both ends included, with their delivery count."""

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
    """The current settings of a group's share-partitions."""

    delivery_count_limit: int = 5
    max_record_locks: int = 2000
    record_lock_ms: int = 30_000
    read_committed: bool = False
    auto_offset_reset: str = "latest"
    renew_enabled: bool = True
