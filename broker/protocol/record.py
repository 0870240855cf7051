"""One record of a batch (v2): variable-length numbers, offsets and times relative to the batch's first."""

from __future__ import annotations

from typing import Final, NamedTuple

from broker.errors import CorruptMessage

__all__ = ["NO_TIMESTAMP", "NULL", "SMALLEST", "Record", "read_record", "read_varint", "write_record", "write_varint"]

NO_TIMESTAMP: Final = -1
NULL: Final = 1
"""The varint of the length -1, which means null."""

SMALLEST: Final = 7
"""Size of an empty record in bytes: its length, attributes, two deltas, two lengths, the number of headers."""


class Record(NamedTuple):
    """One record. Offsets are absolute; a header value may be None."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = NO_TIMESTAMP
    offset: int = -1


def write_record(body: bytearray, record: Record, offset_delta: int, timestamp_delta: int) -> None:
    """Append a record to the body of a batch. Both deltas are relative to the batch's first record."""
    part = bytearray(b"\x00")
    write_varint(part, timestamp_delta)
    write_varint(part, offset_delta)
    _write_bytes(part, record.key)
    _write_bytes(part, record.value)
    write_varint(part, len(record.headers))
    for name, value in record.headers:
        _write_bytes(part, name.encode())
        _write_bytes(part, value)
    write_varint(body, len(part))
    body += part


def _write_bytes(out: bytearray, value: bytes | None) -> None:
    if value is None:
        out.append(NULL)
        return
    write_varint(out, len(value))
    out += value


def write_varint(out: bytearray, value: int) -> None:
    """Append a number: zigzag, seven bits per byte, lowest first."""
    number = (value << 1) ^ (value >> 63)
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The number at ``position`` and its end. Raises IndexError beyond the data."""
    byte = data[position]
    position += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position
    number, shift = byte & 0x7F, 7
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position
        shift += 7
        if shift > 63:
            raise CorruptMessage("a varint in a record has more than ten bytes")


def read_record(data: bytes, position: int, base_offset: int, base_timestamp: int) -> tuple[Record, int]:
    """The record at ``position`` and its end. Raises IndexError or UnicodeDecodeError if it is malformed."""
    length, position = read_varint(data, position)
    end = position + length
    if length < 1 or end > len(data):
        raise IndexError
    timestamp_delta, position = read_varint(data, position + 1)
    offset_delta, position = read_varint(data, position)
    key, position = _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    headers: tuple[tuple[str, bytes | None], ...] = ()
    count, position = read_varint(data, position)
    if count:
        headers, position = _read_headers(data, position, end, count)
    if position != end:
        raise IndexError
    return Record(key, value, headers, base_timestamp + timestamp_delta, base_offset + offset_delta), end


def _read_headers(data: bytes, position: int, end: int, count: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    if not 0 <= count <= end - position:
        raise IndexError
    headers = []
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        value, position = _read_bytes(data, position, end)
        if name is None:
            raise IndexError
        headers.append((name.decode(), value))
    return tuple(headers), position


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        return None, position
    if position + length > end:
        raise IndexError
    return data[position : position + length], position + length
