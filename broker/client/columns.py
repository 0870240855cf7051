"""Converts Arrow columns to record batches v2 and back with numpy and pyarrow, without a Python call per record."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.client.batches import EncodedBatch, Fetched, codec_of
from broker.client.record_walk import HeaderFields, walk
from broker.client.varints import Varints
from broker.errors import CorruptMessage
from broker.protocol.compression import Codec, compress
from broker.protocol.records import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HEADERS_TYPE", "Columns", "decode_batches", "encode_batches"]

HEADERS_TYPE: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_BYTES: Final = pa.large_binary()
_OVERHEAD: Final = 36
"""Upper bound of a record's bytes besides key, value and headers: four varints of up to 5 bytes, one of 10, attributes,
and a headers count.
"""
_EMPTY: Final = pa.scalar(b"", _BYTES)


@dataclass(frozen=True)
class Columns:
    """Records as columns of equal length, in offset order. Offsets may have gaps."""

    offsets: pa.Array
    timestamps_ms: pa.Array
    keys: pa.Array
    values: pa.Array
    headers: pa.Array | None
    """list<struct<key: string, value: binary>>; None if no record has a header."""

    def __len__(self) -> int:
        return len(self.offsets)


def encode_batches(
    keys: pa.Array | None,
    values: pa.Array,
    timestamps_ms: pa.Array | None = None,
    headers: pa.Array | None = None,
    *,
    compression: str = "none",
    max_bytes: int = 1_000_000,
) -> list[EncodedBatch]:
    """Encode rows into finished batches in their order, each at most ``max_bytes`` long before compression.

    Keys and values are binary or string columns; null means that the record has none. A null timestamp is the current
    time. ``headers`` is a column of HEADERS_TYPE. A row that exceeds ``max_bytes`` by itself becomes a separate batch,
    which the broker may refuse. Raises UsageError if the columns differ in length or have another type.
    """
    rows = len(values)
    if rows == 0:
        return []
    codec = codec_of(compression)
    key_bytes, value_bytes = _binary("keys", keys, rows), _binary("values", values, rows)
    tails = _tails(headers, rows)
    timestamps = _timestamps(timestamps_ms, rows)
    starts = _starts(_sizes(key_bytes) + _sizes(value_bytes) + _sizes(tails) + _OVERHEAD, max_bytes)
    counts = np.diff(starts, append=rows)
    time_deltas = timestamps - np.repeat(timestamps[starts], counts)
    offset_deltas = np.arange(rows, dtype=np.int64) - np.repeat(starts, counts)
    body, ends = _body(key_bytes, value_bytes, tails, time_deltas, offset_deltas)
    latest = np.maximum.reduceat(timestamps, starts)
    batches = []
    for start, count, newest in zip(starts.tolist(), counts.tolist(), latest.tolist(), strict=True):
        records = body[int(ends[start]) : int(ends[start + count])]
        batches.append(_finish(records, count, int(timestamps[start]), newest, codec))
    return batches


def _binary(name: str, column: pa.Array | None, rows: int) -> pa.Array | None:
    """The column as large binary, whose 64-bit offsets no batch can exceed; None if every value is null."""
    if column is None:
        return None
    if len(column) != rows:
        raise UsageError(f"{name} has {len(column)} rows, values has {rows}")
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_null(flat.type) or flat.null_count == rows:
        return None
    if pa.types.is_string(flat.type):
        flat = flat.cast(pa.binary())
    if not _is_binary(flat.type):
        raise UsageError(f"{name} is a column of {flat.type}: records take binary or string")
    return flat.cast(_BYTES)


def _is_binary(kind: pa.DataType) -> bool:
    return any(
        check(kind)
        for check in (
            pa.types.is_binary,
            pa.types.is_large_binary,
            pa.types.is_large_string,
            pa.types.is_fixed_size_binary,
        )
    )


def _timestamps(column: pa.Array | None, rows: int) -> NDArray[np.int64]:
    now = int(time.time() * 1000)
    if column is None:
        return np.full(rows, now, dtype=np.int64)
    if len(column) != rows:
        raise UsageError(f"timestamps_ms has {len(column)} rows, values has {rows}")
    flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    filled: NDArray[np.int64] = pc.fill_null(flat.cast(pa.int64()), now).to_numpy(zero_copy_only=False)
    return filled


def _sizes(column: pa.Array | pa.Scalar | None) -> Any:
    """Bytes of each row; 0 for nulls."""
    if isinstance(column, pa.Scalar):
        return len(column.as_py())
    return 0 if column is None else pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)


def _starts(sizes: NDArray[np.int64], max_bytes: int) -> NDArray[np.int64]:
    """The first row of each batch; one step per batch."""
    ends = np.cumsum(sizes)
    room = max_bytes - HEADER_SIZE
    starts, start = [0], 0
    while True:
        before = int(ends[start - 1]) if start else 0
        start = max(start + 1, int(np.searchsorted(ends, before + room, side="right")))
        if start >= len(ends):
            return np.array(starts, dtype=np.int64)
        starts.append(start)


def _body(
    keys: pa.Array | None,
    values: pa.Array | None,
    tails: pa.Array | pa.Scalar | None,
    time_deltas: NDArray[np.int64],
    offset_deltas: NDArray[np.int64],
) -> tuple[memoryview, NDArray[np.int64]]:
    """All records back to back, and the position at which each begins, with the end as last entry."""
    rows = len(time_deltas)
    key_lengths, value_lengths = _lengths(keys, rows), _lengths(values, rows)
    attributes = Varints.zeros(rows)
    inner = [attributes, Varints.of(time_deltas), Varints.of(offset_deltas), key_lengths]
    widths = sum((part.lengths for part in inner), value_lengths.lengths.copy())
    lengths = widths + _sizes(keys) + _sizes(values) + (1 if tails is None else _sizes(tails))
    head = [Varints.of(lengths), *inner]
    parts: list[Any] = []
    if keys is None:
        parts.append(Varints.joined([*head, value_lengths]))
    else:
        parts += [Varints.joined(head), keys, Varints.joined([value_lengths])]
    if values is not None:
        parts.append(values)
    parts.append(pa.scalar(b"\x00", _BYTES) if tails is None else tails)
    joined = pc.binary_join_element_wise(*parts, _EMPTY, null_handling="replace", null_replacement="")
    _, ends, data = joined.buffers()
    return memoryview(data), np.frombuffer(ends, dtype=np.int64, count=rows + 1)


def _lengths(column: pa.Array | None, rows: int) -> Varints:
    """The length field of each row: -1 for null."""
    if column is None:
        return Varints.of(np.full(rows, -1, dtype=np.int64))
    return Varints.of(pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False))


def _tails(headers: pa.Array | None, rows: int) -> pa.Array | pa.Scalar | None:
    """Each row's headers with their count: a scalar if all rows have the same, None if no row has headers."""
    if headers is None:
        return None
    if len(headers) != rows:
        raise UsageError(f"headers has {len(headers)} rows, values has {rows}")
    flat = headers.combine_chunks() if isinstance(headers, pa.ChunkedArray) else headers
    counts = pc.fill_null(pc.list_value_length(flat), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not counts.any():
        return None
    entries = pc.list_flatten(flat)
    keys = entries.field("key").cast(pa.binary()).cast(_BYTES)
    values = entries.field("value").cast(_BYTES)
    if keys.null_count:
        raise UsageError("a header has no key: Kafka's headers may have null values, not null keys")
    if rows > 1 and _repeats(keys, rows) and _repeats(values, rows):
        first = _tails(flat.slice(0, 1), 1)
        return None if first is None else first[0]
    pieces = pc.binary_join_element_wise(
        Varints.joined([_lengths(keys, len(keys))]),
        keys,
        Varints.joined([_lengths(values, len(values))]),
        values,
        _EMPTY,
        null_handling="replace",
        null_replacement="",
    )
    ends = np.frombuffer(pieces.buffers()[1], dtype=np.int64, count=len(pieces) + 1)
    row_ends = ends[np.concatenate(([0], np.cumsum(counts)))]
    grouped = pa.Array.from_buffers(_BYTES, rows, [None, pa.py_buffer(row_ends), pieces.buffers()[2]])
    return pc.binary_join_element_wise(Varints.joined([Varints.of(counts)]), grouped, _EMPTY)


def _repeats(column: pa.Array, rows: int) -> bool:
    """Whether all values of a large-binary column are equal."""
    count, odd = divmod(len(column), rows)
    if odd or column.null_count:
        return False
    ends = np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: len(column) + 1]
    lengths = np.diff(ends).reshape(rows, count)
    if (lengths != lengths[0]).any():
        return False
    data = column.buffers()[2]
    if data is None:
        return True
    plain = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]].reshape(rows, -1)
    return bool((plain == plain[0]).all())


def _finish(records: memoryview, count: int, first_ms: int, newest_ms: int, codec: Codec) -> EncodedBatch:
    payload = records if codec is Codec.NONE else compress(codec, bytes(records))
    data = bytearray(HEADER_SIZE)
    length = HEADER_SIZE + len(payload) - LOG_OVERHEAD
    HEADER.pack_into(data, 0, 0, length, -1, MAGIC, 0, int(codec), count - 1, first_ms, newest_ms, -1, -1, -1, count)
    return EncodedBatch(data, count, payload)


def decode_batches(fetched: Fetched) -> Columns:
    """Decode the records of a fetch into columns, without those before the requested position.

    Raises CorruptMessage.
    """
    fields = walk(fetched)
    skip = int(np.searchsorted(fields.offsets, fetched.offset))
    return Columns(
        offsets=pa.array(fields.offsets[skip:]),
        timestamps_ms=pa.array(fields.timestamps_ms[skip:]),
        keys=_spans(fields.data, fields.key_starts[skip:], fields.key_lengths[skip:]),
        values=_spans(fields.data, fields.value_starts[skip:], fields.value_lengths[skip:]),
        headers=_header_column(fields.data, fields.headers, skip),
    )


def _spans(data: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> pa.Array:
    """The bytes of each span; null for a length of -1.

    Values of an Arrow column are adjacent, and spans have gaps between them. So spans and gaps are first viewed as one
    column over ``data``; then ``take`` copies every other value.
    """
    rows = len(starts)
    if rows == 0 or int(lengths.max()) < 0:
        return pa.nulls(rows, pa.binary())
    ends = np.empty(2 * rows, dtype=np.int64)
    ends[0::2], ends[1::2] = starts, starts + np.maximum(lengths, 0)
    valid = np.ones(2 * rows, dtype=bool)
    valid[0::2] = lengths >= 0
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    both = pa.Array.from_buffers(_BYTES, 2 * rows - 1, [bitmap, pa.py_buffer(ends), pa.py_buffer(data)])
    taken = both.take(pa.array(np.arange(0, 2 * rows, 2)))
    return taken.cast(pa.binary()) if taken.nbytes < 1 << 31 else taken


def _header_column(data: bytes, fields: HeaderFields | None, skip: int) -> pa.Array | None:
    if fields is None:
        return None
    ends = np.concatenate(([0], np.cumsum(fields.counts)))[skip:]
    first = int(ends[0])
    keys = _spans(data, fields.key_starts[first:], fields.key_lengths[first:])
    values = _spans(data, fields.value_starts[first:], fields.value_lengths[first:])
    if int(ends[-1]) == first:
        return None
    try:
        texts = keys.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise CorruptMessage(f"a header's key is not UTF-8: {error}") from error
    entries = pa.StructArray.from_arrays([texts, values], fields=list(HEADERS_TYPE.value_type))
    return pa.ListArray.from_arrays(pa.array((ends - first).astype(np.int32)), entries, type=HEADERS_TYPE)
