"""A checksum of records that does not depend on how they are cut into batches, files or row groups.

BLAKE2b over each of ten streams: timestamps, lengths and bytes of keys, of values, of header names and of header values,
and the number of headers of each record. Numbers are little-endian int64; the length of a null is -1. The checksum is
BLAKE2b over the ten digests. Offsets are not part of it: a restored record has another one.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Checksum"]

_STREAMS: Final = 10
_BYTES: Final = pa.large_binary()


class Checksum:
    """Add records in their order; ``text`` is the checksum of all so far."""

    def __init__(self) -> None:
        self._streams = [hashlib.blake2b(digest_size=32) for _ in range(_STREAMS)]
        self.records = 0

    def add(self, timestamps_ms: pa.Array, keys: pa.Array, values: pa.Array, headers: pa.Array | None) -> None:
        """``headers`` is a list of structs of key and value; None and an empty list are the same."""
        streams = self._streams
        self.records += len(values)
        streams[0].update(_numbers(timestamps_ms.cast(pa.int64())))
        self._texts(1, keys)
        self._texts(3, values)
        if headers is None:
            streams[5].update(np.zeros(len(values), "<i8").tobytes())
            return
        streams[5].update(_numbers(pc.fill_null(pc.list_value_length(headers), 0)))
        entries = pc.list_flatten(headers)
        self._texts(6, entries.field("key").cast(pa.binary()))
        self._texts(8, entries.field("value"))

    def _texts(self, stream: int, column: pa.Array) -> None:
        flat = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        lengths = pc.fill_null(pc.binary_length(flat.cast(_BYTES)), -1)
        self._streams[stream].update(_numbers(lengths))
        self._streams[stream + 1].update(_content(flat.cast(_BYTES)))

    @property
    def text(self) -> str:
        whole = hashlib.blake2b(digest_size=16)
        for stream in self._streams:
            whole.update(stream.digest())
        return f"blake2b:{whole.hexdigest()}"


def _numbers(column: pa.Array) -> bytes:
    numbers: Any = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(numbers, "<i8").tobytes()


def _content(column: pa.Array) -> memoryview | bytes:
    """The bytes of all values, one after the other."""
    if column.null_count:
        column = pc.fill_null(column, b"")
    _, ends, data = column.buffers()
    if data is None or not len(column):
        return b""
    bounds = np.frombuffer(ends, np.int64)[column.offset : column.offset + len(column) + 1]
    return memoryview(data)[int(bounds[0]) : int(bounds[-1])]
