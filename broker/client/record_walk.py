"""Locates each field of each record of a fetch: one walk finds the ends of the records, the rest works on whole
columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from broker.errors import CorruptMessage
from broker.protocol.compression import decompress
from broker.protocol.record_columns import add_edges, heads, varints
from broker.protocol.records import HEADER_SIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from broker.client.batches import Batch, Fetched

__all__ = ["HeaderFields", "RecordFields", "walk"]

_MOST_HEADERS: Final = 1 << 20


@dataclass(frozen=True)
class HeaderFields:
    """All headers of all records, in order: spans into the same data. ``counts`` is per record."""

    counts: NDArray[np.int64]
    key_starts: NDArray[np.int64]
    key_lengths: NDArray[np.int64]
    value_starts: NDArray[np.int64]
    value_lengths: NDArray[np.int64]


@dataclass(frozen=True)
class RecordFields:
    """Spans into ``data``, ascending; a length of -1 is null. ``header_starts`` point after the header counts."""

    data: bytes
    offsets: NDArray[np.int64]
    timestamps_ms: NDArray[np.int64]
    key_starts: NDArray[np.int64]
    key_lengths: NDArray[np.int64]
    value_starts: NDArray[np.int64]
    value_lengths: NDArray[np.int64]
    headers: HeaderFields | None


def walk(fetched: Fetched) -> RecordFields:
    """The fields of all records of a fetch. Raises CorruptMessage that names the partition."""
    try:
        return _walk(fetched)
    except CorruptMessage as error:
        first = fetched.batches[0].header.base_offset if fetched.batches else fetched.offset
        raise CorruptMessage(f"{fetched.topic}-{fetched.partition}, batches from offset {first}: {error}") from error


def _walk(fetched: Fetched) -> RecordFields:
    payloads = [decompress(batch.header.codec, batch.data[HEADER_SIZE:]) for batch in fetched.batches]
    data = b"".join(payloads)
    edges, end = [0], 0
    for batch, payload in zip(fetched.batches, payloads, strict=True):
        end += len(payload)
        add_edges(edges, data, end, batch.header)
    counts = [batch.header.record_count for batch in fetched.batches]
    bounds, raw = np.array(edges, np.int64), np.frombuffer(data, np.uint8)
    time_deltas, offset_deltas, key_lengths, key_starts = heads(raw, bounds[:-1])
    at = key_starts + np.maximum(key_lengths, 0)
    value_lengths, value_starts = varints(raw, at)
    at = value_starts + np.maximum(value_lengths, 0)
    header_counts, header_starts = varints(raw, at)
    if min(key_lengths.min(initial=-1), value_lengths.min(initial=-1)) < -1:
        raise CorruptMessage("a key or value of a record has a negative length")
    headers, behind = _headers(raw, header_counts, header_starts)
    if not np.array_equal(behind, bounds[1:]):
        raise CorruptMessage("a record does not end where its length says")
    offsets = offset_deltas + _per_record([batch.header.base_offset for batch in fetched.batches], counts)
    timestamps = _timestamps(fetched.batches, counts, time_deltas)
    return RecordFields(data, offsets, timestamps, key_starts, key_lengths, value_starts, value_lengths, headers)


def _per_record(values: list[int], counts: list[int]) -> NDArray[np.int64]:
    return np.repeat(np.array(values, dtype=np.int64), np.array(counts, dtype=np.int64))


def _timestamps(batches: tuple[Batch, ...], counts: list[int], deltas: NDArray[np.int64]) -> NDArray[np.int64]:
    """The records' own timestamps, or the batch's if the broker set it on append."""
    timestamps = deltas + _per_record([batch.header.base_timestamp for batch in batches], counts)
    if not any(batch.header.has_append_time for batch in batches):
        return timestamps
    appended = _per_record([batch.header.max_timestamp for batch in batches], counts)
    return np.where(
        _per_record([int(batch.header.has_append_time) for batch in batches], counts) == 1, appended, timestamps
    )


def _headers(
    raw: NDArray[np.uint8], counts: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[HeaderFields | None, NDArray[np.int64]]:
    """The spans of all headers, and the end of each record's headers.

    Takes as many rounds as the largest header count.
    """
    if counts.min(initial=0) < 0 or counts.max(initial=0) > _MOST_HEADERS:
        raise CorruptMessage("a record has an impossible number of headers")
    if not counts.any():
        return None, starts
    spans = np.zeros((4, int(counts.sum())), dtype=np.int64)
    slots = np.concatenate(([0], np.cumsum(counts)))[:-1]
    at = starts.copy()
    for number, rows in _rounds(counts):
        key_lengths, key_starts = varints(raw, at[rows])
        value_lengths, value_starts = varints(raw, key_starts + key_lengths)
        if key_lengths.min() < 0 or value_lengths.min() < -1:
            raise CorruptMessage("a header of a record has a negative length")
        spans[:, slots[rows] + number] = (key_starts, key_lengths, value_starts, value_lengths)
        at[rows] = value_starts + np.maximum(value_lengths, 0)
    return HeaderFields(counts, *spans), at


def _rounds(counts: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    for number in range(int(counts.max())):
        yield number, np.flatnonzero(counts > number)
