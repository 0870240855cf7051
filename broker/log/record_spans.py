"""Where the records of a batch begin and end, with their keys: what compaction needs, without taking the rest of them apart."""

from __future__ import annotations

from typing import NamedTuple

from broker.errors import CorruptMessage
from broker.protocol.record import NULL, read_varint

__all__ = ["Span", "largest_timestamp", "spans"]


class Span(NamedTuple):
    """A record by its place in the decompressed data; ``delta`` is its offset less the batch's."""

    key: bytes | None
    delta: int
    is_tombstone: bool
    start: int
    end: int


def spans(data: bytes, count: int) -> list[Span]:
    """The ``count`` records in ``data``. Raises CorruptMessage.

    Long, because it is called for every record of a log: numbers of one and two bytes, which nearly all are, are read in place.
    """
    found: list[Span] = []
    add, new, kind, position, size = found.append, tuple.__new__, Span, 0, len(data)
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
                delta = byte >> 1
                position += 2
            elif (second := data[position + 2]) < 0x80:
                delta = (byte & 0x7F | second << 7) >> 1
                position += 3
            else:
                delta, position = read_varint(data, position + 1)
            byte = data[position]
            if byte < 0x80 and not byte & 1:
                position += 1
                key: bytes | None = data[position : position + (byte >> 1)]
                position += byte >> 1
            else:
                length, position = read_varint(data, position)
                key = data[position : position + length] if length >= 0 else None
                position += max(length, 0)
            if not start < position < end <= size:
                raise IndexError
            add(new(kind, (key, delta, data[position] == NULL, start, end)))
            position = end
    except IndexError:
        raise CorruptMessage(f"record {len(found)} of a batch is malformed") from None
    return found


def largest_timestamp(data: bytes, kept: list[Span], base_timestamp: int) -> int:
    """Of these records."""
    deltas = (read_varint(data, read_varint(data, span.start)[1] + 1)[0] for span in kept)
    return base_timestamp + max(deltas, default=0)
