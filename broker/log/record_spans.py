"""Where the records of a batch begin and end, with their keys: what compaction needs, without taking the rest of them apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from broker.errors import CorruptMessage
from broker.protocol.record import NULL, read_varint

__all__ = ["Spans", "spans"]


@dataclass(frozen=True, slots=True)
class Spans:
    """The records of a batch as columns, which cost a fraction of an object per record. Each begins where the one before it ends."""

    data: bytes
    keys: list[bytes | None]
    deltas: list[int]
    """Offsets less the batch's."""
    tombstones: list[bool]
    ends: list[int]

    def start(self, index: int) -> int:
        return self.ends[index - 1] if index else 0

    def bytes_of(self, chosen: Iterable[int]) -> bytes:
        """These records one behind the other; ascending."""
        return b"".join([self.data[first:last] for first, last in self._runs(chosen)])

    def _runs(self, chosen: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Neighbours as one piece."""
        first = last = -1
        for index in chosen:
            start = self.start(index)
            if start != last:
                if last > first:
                    yield first, last
                first = start
            last = self.ends[index]
        if last > first:
            yield first, last

    def largest_timestamp(self, chosen: Iterable[int], base_timestamp: int) -> int:
        """Of these records."""
        data = self.data
        deltas = (read_varint(data, read_varint(data, self.start(index))[1] + 1)[0] for index in chosen)
        return base_timestamp + max(deltas, default=0)


def spans(data: bytes, count: int) -> Spans:
    """The ``count`` records in ``data``. Raises CorruptMessage.

    Long, because it is called for every record of a log: numbers of one and two bytes, which nearly all are, are read in place.
    """
    keys: list[bytes | None] = []
    deltas: list[int] = []
    tombstones: list[bool] = []
    ends: list[int] = []
    add_key, add_delta, add_tombstone, add_end = keys.append, deltas.append, tombstones.append, ends.append
    position, size = 0, len(data)
    try:
        for _ in range(count):
            start = position
            byte = data[position]
            if byte < 0x80:
                end = position + 1 + (byte >> 1)
                position += 2
            elif (second := data[position + 1]) < 0x80:
                end = position + 2 + ((byte & 0x7F | second << 7) >> 1)
                position += 3
            else:
                length, position = read_varint(data, position)
                end = position + length
                position += 1
            while data[position] >= 0x80:  # the timestamp, whatever it is
                position += 1
            byte = data[position + 1]
            if byte < 0x80:
                add_delta(byte >> 1)
                position += 2
            elif (second := data[position + 2]) < 0x80:
                add_delta((byte & 0x7F | second << 7) >> 1)
                position += 3
            else:
                delta, position = read_varint(data, position + 1)
                add_delta(delta)
            byte = data[position]
            position += 1
            if byte < 0x80 and not byte & 1:
                byte >>= 1
                add_key(data[position : position + byte])
                position += byte
            else:
                length, position = read_varint(data, position - 1)
                add_key(data[position : position + length] if length >= 0 else None)
                position += max(length, 0)
            if not start < position < end <= size:
                raise IndexError
            add_tombstone(data[position] == NULL)
            add_end(end)
            position = end
    except IndexError:
        raise CorruptMessage(f"record {len(ends)} of a batch is malformed") from None
    return Spans(data, keys, deltas, tombstones, ends)
