"""Compaction: of each key only the last record stays (``cleanup.policy=compact``), offsets as they were.

In three steps, so that the long one may run elsewhere: ``plan_compaction`` looks at a log and says what to do, ``run`` reads the
closed segments and writes ``.cleaned`` files (any thread or process: a plan is plain data), ``finish_compaction`` puts
them in place (``broker.log.swap``). A crash in between loses nothing: recovery removes ``.cleaned`` files and completes ``.swap`` files.

Tombstones, and the markers of transactions of which nothing is left, stay for ``delete.retention.ms`` after the
round that met them first (KIP-534); records of aborted transactions go at once.
"""

from __future__ import annotations

import itertools

from broker.log.compaction_plan import MAX_KEYS, CleanedGroup, Compaction, CompactionPlan, SourceSegment, plan
from broker.log.config import NO_COMPACTION_LAG
from broker.log.files import storage_errors
from broker.log.partition import PartitionLog
from broker.log.segment import Segment
from broker.log.swap import Swap

__all__ = [
    "MAX_KEYS",
    "CleanedGroup",
    "Compaction",
    "CompactionPlan",
    "SourceSegment",
    "compact",
    "finish_compaction",
    "plan_compaction",
    "run",
]


def plan_compaction(log: PartitionLog, now_ms: int) -> CompactionPlan | None:
    """The work that ``run`` should do on a log now; None if there is none. Ends nothing, changes nothing. Raises KafkaStorageError."""
    if not log.config.compacted:
        return None
    with storage_errors(f"look at {log.topic}-{log.partition} for its compaction"):
        sources = [
            SourceSegment(
                segment.base_offset,
                following.base_offset,
                segment.size,
                segment.max_timestamp,
                segment.modified_ms,
                _first_timestamp(log, segment) if following.base_offset > log.first_dirty_offset else None,
            )
            for segment, following in itertools.pairwise(log.segments)
            if following.base_offset > log.log_start_offset
        ]
    return plan(
        sources,
        log.aborted,
        log.config,
        directory=log.directory,
        first_dirty_offset=log.first_dirty_offset,
        stable_until=log.last_stable_offset,
        now_ms=now_ms,
    )


def _first_timestamp(log: PartitionLog, segment: Segment) -> int | None:
    """When a closed segment's first batch is from; None where ``max.compaction.lag.ms`` does not ask. Raises OSError."""
    if log.config.max_compaction_lag_ms >= NO_COMPACTION_LAG:
        return None
    first = segment.first_timestamp
    segment.release()
    return first


def run(work: CompactionPlan) -> Compaction:
    """Write the ``.cleaned`` files of a plan, durable. Raises OSError, FileNotFoundError where a segment went meanwhile."""
    from broker.log import compaction_run  # here: the broker, which only plans, does without numpy

    return compaction_run.run(work)


def finish_compaction(log: PartitionLog, done: Compaction) -> bool:
    """Put what a run made in the place of the segments it read; False if one of those has been deleted since.

    All at once, waiting for the disk; ``Swap`` lets others go on meanwhile. Raises KafkaStorageError.
    """
    swap = Swap(log, done)
    for sync in swap:
        sync()
    return swap.is_done


def compact(log: PartitionLog, now_ms: int) -> bool:
    """Compact now, in this thread, if enough is dirty; whether anything was done."""
    work = plan_compaction(log, now_ms)
    if work is None:
        return False
    with storage_errors(f"compact {log.topic}-{log.partition}"):
        done = run(work)
    return finish_compaction(log, done)
