"""Looking up times in a log, however long it takes."""

from __future__ import annotations

from broker.log.partition import PartitionLog
from broker.work import OFF_THE_LOOP, Allowance

__all__ = ["newest", "offset_for_time"]


def offset_for_time(log: PartitionLog, timestamp_ms: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record that is not older."""
    return log.reader.search_time(timestamp_ms).run(Allowance(OFF_THE_LOOP))


def newest(log: PartitionLog) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record with the largest timestamp."""
    return log.reader.search_time(None).run(Allowance(OFF_THE_LOOP))
