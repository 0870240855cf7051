"""Creates batches with changed headers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from connect.data.batch import RecordBatch
from connect.data.headers import Header, column_of, header_lists

__all__ = ["added", "mapped"]


def mapped(batch: RecordBatch, change: Callable[[int, tuple[Header, ...]], Sequence[Header]]) -> RecordBatch:
    """The batch with the headers that ``change(row, headers)`` returns for each row."""
    rows: Sequence[tuple[Header, ...]] = [()] * len(batch) if batch.headers is None else header_lists(batch.headers)
    return batch.replace(headers=column_of([change(row, headers) for row, headers in enumerate(rows)]))


def added(batch: RecordBatch, more: Sequence[Sequence[Header]]) -> RecordBatch:
    """The batch with headers appended to each row's."""
    if batch.headers is None:
        return batch.replace(headers=column_of(more))
    return mapped(batch, lambda row, headers: [*headers, *more[row]])
