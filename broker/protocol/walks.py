"""Iterates over the records of a batch without creating objects: a small batch may have millions.

All functions take decompressed records, as ``opened`` returns them, and spend an allowance. They raise CorruptMessage
if the records contradict the header, and ``broker.work.TooMuchWork``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.protocol.compression import decompress_within
from broker.protocol.record import NULL, SMALLEST, read_varint, write_varint
from broker.protocol.records import HEADER_SIZE, BatchHeader, malformed
from broker.work import AT_ONCE, Allowance

__all__ = ["checked", "first_since", "keyless", "newest_from", "opened", "renumbered", "timestamps"]

_LEAST_LENGTH: Final = SMALLEST - 1


def opened(header: BatchHeader, batch: memoryview | bytes, allowance: Allowance) -> bytes | memoryview:
    """The decompressed records of a whole batch."""
    payload = memoryview(batch)[HEADER_SIZE : header.size]
    # Reading single bytes is a third faster from bytes than from a view.
    return decompress_within(header.codec, payload, allowance) if header.codec else bytes(payload)


def keyless(
    header: BatchHeader, data: bytes | memoryview, allowance: Allowance, *, most_named: int
) -> tuple[int, list[int]]:
    """The number of records without a key, and the indexes of the first ``most_named``.

    Twice as fast as ``_heads``, because each batch of a compacted topic is checked.
    """
    position, index, count, size = 0, 0, header.record_count, len(data)
    result, named = 0, list[int]()
    try:
        while index < count:
            first, index = index, min(index + AT_ONCE, count)
            allowance.spend(index - first)
            for number in range(first, index):
                byte = data[position]
                position += 1
                if byte < 0x80:
                    after = position + (byte >> 1)
                    if byte & 1:
                        raise IndexError
                else:
                    length, position = read_varint(data, position - 1)
                    after = position + length
                    if length < 0:
                        raise IndexError
                position += 1
                while data[position] >= 0x80:  # the timestamp, whatever its value
                    position += 1
                position += 1
                while data[position] >= 0x80:  # and the offset
                    position += 1
                byte = data[position + 1]
                if byte == NULL:
                    result += 1
                    if result <= most_named:
                        named.append(number)
                    position += 2
                elif byte < 0x80:
                    position += 2 + (byte >> 1)
                else:
                    length, position = read_varint(data, position + 1)
                    result += length < 0
                    position += max(length, 0)
                if position >= after or after > size:
                    raise IndexError
                position = after
    except IndexError:
        raise malformed(header, None) from None
    if position != size:
        raise malformed(header, count)
    return result, named


def timestamps(header: BatchHeader, data: bytes | memoryview, allowance: Allowance) -> Iterator[int]:
    """The producer's timestamp of each record, in order."""
    for time_delta, _, _ in _heads(header, data, allowance):
        yield header.base_timestamp + time_delta


def first_since(
    header: BatchHeader, data: bytes | memoryview, allowance: Allowance, *, timestamp_ms: int, from_offset: int
) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record at or after a time, and not before ``from_offset``."""
    base_offset, base_timestamp, fixed = header.base_offset, header.base_timestamp, header.has_append_time
    for time_delta, offset_delta, _ in _heads(header, data, allowance):
        time = header.max_timestamp if fixed else base_timestamp + time_delta
        if time >= timestamp_ms and base_offset + offset_delta >= from_offset:
            return time, base_offset + offset_delta
    return None


def newest_from(header: BatchHeader, data: bytes | memoryview, allowance: Allowance, *, from_offset: int) -> int | None:
    """The largest timestamp of the records from an offset on; None if there are none."""
    base_offset, fixed = header.base_offset, header.has_append_time
    newest = max(
        (
            time_delta
            for time_delta, offset_delta, _ in _heads(header, data, allowance)
            if base_offset + offset_delta >= from_offset
        ),
        default=None,
    )
    if newest is None:
        return None
    return header.max_timestamp if fixed else header.base_timestamp + newest


def checked(header: BatchHeader, data: bytes | memoryview, allowance: Allowance) -> tuple[int, bool]:
    """The largest timestamp delta, and whether the offset deltas are 0, 1, 2 and so on.

    Checks everything that has a length.
    """
    newest, in_order = None, True
    for number, (time_delta, offset_delta, (position, after)) in enumerate(_heads(header, data, allowance)):
        if newest is None or time_delta > newest:
            newest = time_delta
        if offset_delta != number:
            in_order = False
        try:
            if _behind_fields(data, position, after) != after:
                raise IndexError
        except IndexError:
            raise malformed(header, number) from None
    return newest or 0, in_order


def renumbered(header: BatchHeader, data: bytes | memoryview, allowance: Allowance) -> bytes:
    """The records with offset deltas of 0, 1, 2 and so on."""
    made, position = bytearray(), 0
    for number, (_, _, (key_at, after)) in enumerate(_heads(header, data, allowance)):
        _, begin = read_varint(data, position)
        _, behind_time = read_varint(data, begin + 1)
        part = bytearray(data[begin:behind_time])
        write_varint(part, number)
        part += data[key_at:after]
        write_varint(made, len(part))
        made += part
        position = after
    return bytes(made)


_Heads = Iterator[tuple[int, int, tuple[int, int]]]


def _heads(header: BatchHeader, data: bytes | memoryview, allowance: Allowance) -> _Heads:
    """(timestamp delta, offset delta, (position of the key's length, end of the record)) of each record."""
    position, index, count, size = 0, 0, header.record_count, len(data)
    try:
        while index < count:
            first, index = index, min(index + AT_ONCE, count)
            allowance.spend(index - first)
            for _ in range(first, index):
                byte = data[position]
                if byte < 0x80:
                    length = (byte >> 1) ^ -(byte & 1)
                    position += 1
                else:
                    length, position = read_varint(data, position)
                after = position + length
                if length < _LEAST_LENGTH or after > size:
                    raise IndexError
                position += 1
                byte = data[position]
                if byte < 0x80:
                    time_delta = (byte >> 1) ^ -(byte & 1)
                    position += 1
                else:
                    time_delta, position = read_varint(data, position)
                byte = data[position]
                if byte < 0x80:
                    offset_delta = (byte >> 1) ^ -(byte & 1)
                    position += 1
                else:
                    offset_delta, position = read_varint(data, position)
                if position >= after:
                    raise IndexError
                yield time_delta, offset_delta, (position, after)
                position = after
    except IndexError:
        raise malformed(header, None) from None
    if position != size:
        raise malformed(header, count)


def _behind_fields(data: bytes | memoryview, position: int, after: int) -> int:
    """The end of key, value and headers. Raises IndexError."""
    position = _behind_bytes(data, _behind_bytes(data, position, after), after)
    count, position = read_varint(data, position)
    if not 0 <= count <= after - position:
        raise IndexError
    for _ in range(count):
        if data[position] & 1:
            raise IndexError  # a header's name is never null
        position = _behind_bytes(data, _behind_bytes(data, position, after), after)
    return position


def _behind_bytes(data: bytes | memoryview, position: int, after: int) -> int:
    length, position = read_varint(data, position)
    position += max(length, 0)
    if position > after:
        raise IndexError
    return position
