"""Compaction: only the last record of each key stays (``cleanup.policy=compact``), at its offset.

It has three steps, so that the long one can run elsewhere. ``plan_compaction`` decides what to do with a log. ``run``
reads the closed segments and writes ``.cleaned`` files, in any thread or process, because a plan is plain data.
``finish_compaction`` swaps them in (``broker.log.swap``). A crash in between loses nothing: recovery removes
``.cleaned`` files and completes ``.swap`` files.

Tombstones and markers of transactions without remaining records stay for ``delete.retention.ms`` after the round that
first saw them (KIP-534). Records of aborted transactions are removed at once.
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
    """The work for ``run`` on a log now; None if there is none. Changes nothing. Raises KafkaStorageError."""
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
    """The timestamp of a closed segment's first batch; None if ``max.compaction.lag.ms`` is not used.

    Raises OSError.
    """
    if log.config.max_compaction_lag_ms >= NO_COMPACTION_LAG:
        return None
    first = segment.first_timestamp
    segment.release()
    return first


def run(work: CompactionPlan) -> Compaction:
    """Write the ``.cleaned`` files of a plan durably.

    Raises OSError; FileNotFoundError if a segment was deleted meanwhile.
    """
    from broker.log import compaction_run  # local: the broker itself only plans, and does not load numpy

    return compaction_run.run(work)


def finish_compaction(log: PartitionLog, done: Compaction) -> bool:
    """Replace the segments that a run has read by its output; False if one of them has been deleted since.

    Blocks until the disk is done; ``Swap`` does the same in steps. Raises KafkaStorageError.
    """
    swap = Swap(log, done)
    for sync in swap:
        sync()
    return swap.is_done


def compact(log: PartitionLog, now_ms: int) -> bool:
    """Compact now, in this thread, if enough is dirty. Returns whether anything was done."""
    work = plan_compaction(log, now_ms)
    if work is None:
        return False
    with storage_errors(f"compact {log.topic}-{log.partition}"):
        done = run(work)
    return finish_compaction(log, done)
