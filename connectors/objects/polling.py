"""The poll of a source that reads one file or object after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable

from connect.api import MAX_BATCH_BYTES, RecordBatch

__all__ = ["batches_of_poll"]


def batches_of_poll(
    next_batch: Callable[[], RecordBatch | None],
    most: int,
    stopping: threading.Event,
    begin_again: Callable[[], None],
) -> list[RecordBatch]:
    """The next batches, ``most`` or ``MAX_BATCH_BYTES`` at most, until ``next_batch`` has None or the task stops.

    After a failure ``begin_again`` is called. The error is raised where no batch came before it, else by the next poll.
    """
    batches: list[RecordBatch] = []
    size = 0
    while len(batches) < most and size < MAX_BATCH_BYTES and not stopping.is_set():
        try:
            batch = next_batch()
        except Exception:
            begin_again()
            if batches:
                return batches
            raise
        if batch is None:
            break
        batches.append(batch)
        size += batch.nbytes
    return batches
