"""Reads from many batches at once what compaction needs: keys, offsets, and which records are tombstones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

from broker.errors import CorruptMessage
from broker.protocol.compression import decompress
from broker.protocol.record import NULL
from broker.protocol.record_columns import add_edges, heads
from broker.protocol.records import HEADER_SIZE, BatchHeader, crc_is_right

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Batch", "KeyedRecords", "is_dense", "keyed_records", "refuse_damaged"]

Batch = tuple[BatchHeader, memoryview]
"""A batch's header, and the complete batch."""

_PART_BYTES: Final = 256 * 1024
"""Batches are combined up to this many bytes of records; more would not fit the processor's cache."""
_LONGEST_KEY: Final = 32


@dataclass(frozen=True)
class KeyedRecords:
    """The records of several batches. ``firsts`` has the index at which each batch begins, and the total at its end."""

    batches: Sequence[BatchHeader]
    data: bytes
    edges: list[int]
    firsts: NDArray[np.int64]
    time_deltas: NDArray[np.int64]
    offsets: NDArray[np.int64]
    tombstones: NDArray[np.bool_]
    key_starts: NDArray[np.int64]
    key_lengths: NDArray[np.int64]

    @cached_property
    def keys(self) -> list[bytes | None]:
        """The representation of each key in memory: long keys are digests, so that keys take bounded space."""
        data, starts = self.data, self.key_starts
        stops = starts + self.key_lengths
        if self.key_lengths.min(initial=0) >= 0 and self.key_lengths.max(initial=0) <= _LONGEST_KEY:
            return [data[start:stop] for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
        return [
            None if stop < start else _remembered(data[start:stop])
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]

    def bytes_of(self, chosen: NDArray[np.int64]) -> bytes:
        """These records back to back."""
        data, edges = self.data, self.edges
        return b"".join([data[edges[index] : edges[index + 1]] for index in chosen.tolist()])


def _remembered(key: bytes) -> bytes:
    """Short keys represent themselves. A digest is one byte longer than those can be."""
    return key if len(key) <= _LONGEST_KEY else blake2b(key, digest_size=_LONGEST_KEY + 1).digest()


def is_dense(header: BatchHeader) -> bool:
    """Whether the batch has a record at each of its offsets, which holds for all uncompacted batches."""
    return header.last_offset_delta == header.record_count - 1


def refuse_damaged(header: BatchHeader, batch: memoryview) -> None:
    """Raises CorruptMessage if the checksum is wrong, because a rewritten batch would get a correct one."""
    if not crc_is_right(batch, 0, header):
        raise CorruptMessage(
            f"the batch at offset {header.base_offset} is damaged: its checksum is not {header.crc:#010x}"
        )


def keyed_records(batches: Iterable[Batch]) -> Iterator[KeyedRecords]:
    """The records of consecutive batches, for several batches at a time.

    Raises CorruptMessage for a damaged batch, records that contradict their batch's header, or offsets that do not
    ascend.
    """
    headers: list[BatchHeader] = []
    payloads: list[bytes | memoryview] = []
    size = 0
    for header, batch in batches:
        refuse_damaged(header, batch)
        headers.append(header)
        payloads.append(decompress(header.codec, batch[HEADER_SIZE:]))
        size += len(payloads[-1])
        if size >= _PART_BYTES:
            yield _keyed(headers, payloads)
            headers, payloads, size = [], [], 0
    if headers:
        yield _keyed(headers, payloads)


def _keyed(headers: Sequence[BatchHeader], payloads: Sequence[bytes | memoryview]) -> KeyedRecords:
    data = b"".join(payloads)
    edges = [0]
    end = 0
    for header, payload in zip(headers, payloads, strict=True):
        end += len(payload)
        add_edges(edges, data, end, header)
    counts = np.array([header.record_count for header in headers], np.int64)
    firsts = np.concatenate((np.zeros(1, np.int64), counts.cumsum()))
    positions, raw = np.array(edges, np.int64), np.frombuffer(data, np.uint8)
    try:
        time_deltas, deltas, key_lengths, key_starts = heads(raw, positions[:-1])
    except CorruptMessage as error:
        raise CorruptMessage(f"batches from offset {headers[0].base_offset} on: {error}") from error
    values = key_starts + np.clip(key_lengths, 0, len(data))
    inside = values < positions[1:]
    if not inside.all():
        raise _malformed(headers, firsts, int(inside.argmin()), "ends before its value begins")
    offsets = _offsets(headers, counts, firsts, deltas)
    return KeyedRecords(
        headers, data, edges, firsts, time_deltas, offsets, raw[values] == NULL, key_starts, key_lengths
    )


def _offsets(
    headers: Sequence[BatchHeader], counts: NDArray[np.int64], firsts: NDArray[np.int64], deltas: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Offsets by index if a batch is dense, because offset deltas written by clients are not checked on arrival."""
    bases = np.array([header.base_offset for header in headers], np.int64)
    if all(map(is_dense, headers)):
        return np.arange(len(deltas)) + np.repeat(bases - firsts[:-1], counts)
    dense = np.repeat(np.array([is_dense(header) for header in headers]), counts)
    indices = np.arange(len(deltas)) - np.repeat(firsts[:-1], counts)
    result = np.where(dense, indices, deltas) + np.repeat(bases, counts)
    lasts = np.repeat(np.array([header.last_offset for header in headers], np.int64), counts)
    ascend = np.diff(result, prepend=headers[0].base_offset - 1) > 0
    fits = ascend & (result <= lasts)
    if not fits.all():
        raise _malformed(headers, firsts, int(fits.argmin()), "has an offset out of order")
    return result


def _malformed(headers: Sequence[BatchHeader], firsts: NDArray[np.int64], index: int, how: str) -> CorruptMessage:
    number = int(np.searchsorted(firsts, index, side="right")) - 1
    return CorruptMessage(f"record {index - firsts[number]} of the batch at offset {headers[number].base_offset} {how}")
