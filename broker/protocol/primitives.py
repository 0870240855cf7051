"""The primitive types of the Kafka protocol, each as a pair of functions over bytes.

A reader takes ``(data, at)`` and returns ``(value, next_at)``; a writer appends to a bytearray. Readers raise
MalformedMessage, IndexError or struct.error for truncated data; ``schema.decode`` unifies the three. Source:
kafka.apache.org/protocol, "Protocol Primitive Types", and KIP-482 for the compact forms.
"""

from __future__ import annotations

import functools
import threading
import uuid
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

__all__ = [
    "FIXED",
    "MOST_ENTRIES",
    "READERS",
    "WRITERS",
    "ZERO_UUID",
    "Data",
    "MalformedMessage",
    "Reader",
    "Writer",
    "bounded_entries",
    "count_entries",
    "read_array_length",
    "read_string",
    "read_uuid",
    "read_uvarint",
    "write_array_length",
    "write_string",
    "write_uvarint",
]

Data = bytes | memoryview
Reader = Callable[[Data, int], tuple[Any, int]]
Writer = Callable[[bytearray, Any], None]

ZERO_UUID: Final = uuid.UUID(int=0)
"""The id that means no id."""

FIXED: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}
"""The types of a fixed size with their ``struct`` format: adjacent ones are read and written in one call."""

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")


class MalformedMessage(ValueError):
    """The bytes are not a valid message."""


MOST_ENTRIES: Final = 25_000
"""The most array elements and tagged fields in one request.

On the event loop each costs 3 to 20 us, while all other clients wait, and in memory some hundred bytes; a frame of 100
MiB could have millions.
"""
_FEW: Final = 16
"""Shorter arrays, which most requests have, are not counted."""


class _Entries(threading.local):
    left: int = 1 << 62


_entries: Final = _Entries()


class _Bounded:
    """A class of its own: as a generator it took a twentieth of the time of a request with one record."""

    __slots__ = ()

    def __enter__(self) -> None:
        _entries.left = MOST_ENTRIES

    def __exit__(self, *_: object) -> None:
        _entries.left = _Entries.left


bounded_entries: Final = _Bounded()
"""Within it this thread reads a request: MalformedMessage is raised for more than ``MOST_ENTRIES``."""


def count_entries(count: int) -> None:
    """Call it before reading this many elements. Raises MalformedMessage if a request has too many."""
    _entries.left -= count
    if _entries.left < 0:
        raise MalformedMessage(f"the request has more than {MOST_ENTRIES} entries; it has to be split")


def read_uvarint(data: Data, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise MalformedMessage(f"the varint before byte {at} is above 32 bits")
            return value, at + 1
        shift += 7
        if shift > 28:
            raise MalformedMessage(f"the varint before byte {at} is above 32 bits")


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _taken(data: Data, at: int, length: int) -> tuple[Data, int]:
    end = at + length
    if length < 0 or end > len(data):
        raise MalformedMessage(f"{length} bytes are announced at byte {at}, {len(data) - at} are there")
    return data[at:end], end


def _length_of(data: Data, at: int, compact: bool, prefix: Struct) -> tuple[int, int]:
    """A length; -1 is null."""
    if compact:
        short = data[at]
        if short < 0x80:
            return short - 1, at + 1
        length, at = read_uvarint(data, at)
        return length - 1, at
    return prefix.unpack_from(data, at)[0], at + prefix.size


def _text_reader(compact: bool, nullable: bool) -> Reader:
    def read(data: Data, at: int) -> tuple[str | None, int]:
        length, at = _length_of(data, at, compact, _INT16)
        if length == -1 and nullable:
            return None, at
        taken, at = _taken(data, at, length)
        return str(taken, "utf-8"), at

    return read


def _bytes_reader(compact: bool, nullable: bool) -> Reader:
    def read(data: Data, at: int) -> tuple[bytes | None, int]:
        length, at = _length_of(data, at, compact, _INT32)
        if length == -1 and nullable:
            return None, at
        taken, at = _taken(data, at, length)
        return bytes(taken), at

    return read


def read_uuid(data: Data, at: int) -> tuple[uuid.UUID, int]:
    end = at + 16
    if end > len(data):
        raise MalformedMessage(f"an id of 16 bytes is announced at byte {at}, {len(data) - at} are there")
    return _uuid_of(bytes(data[at:end])), end


@functools.lru_cache(maxsize=4096)
def _uuid_of(raw: bytes) -> uuid.UUID:
    """Cached, because requests name the same topics repeatedly, and creating an id costs more than a lookup."""
    return uuid.UUID(bytes=raw)


def _uuid_reader(_compact: bool, _nullable: bool) -> Reader:
    return read_uuid


def _write_length(out: bytearray, length: int, compact: bool, prefix: Struct) -> None:
    if compact:
        write_uvarint(out, length + 1)
    else:
        out += prefix.pack(length)


def _text_writer(compact: bool, nullable: bool) -> Writer:
    def write(out: bytearray, value: str | None) -> None:
        if value is None:
            if not nullable:
                raise ValueError("null in a string that cannot be null")
            _write_length(out, -1, compact, _INT16)
            return
        encoded = value.encode()
        _write_length(out, len(encoded), compact, _INT16)
        out += encoded

    return write


def _bytes_writer(compact: bool, nullable: bool) -> Writer:
    def write(out: bytearray, value: bytes | None) -> None:
        if value is None:
            if not nullable:
                raise ValueError("null in bytes that cannot be null")
            _write_length(out, -1, compact, _INT32)
            return
        _write_length(out, len(value), compact, _INT32)
        out += value

    return write


def _uuid_writer(_compact: bool, _nullable: bool) -> Writer:
    def write(out: bytearray, value: uuid.UUID) -> None:
        out += value.bytes

    return write


READERS: Final[dict[str, Callable[[bool, bool], Reader]]] = {
    "string": _text_reader,
    "bytes": _bytes_reader,
    "records": _bytes_reader,
    "uuid": _uuid_reader,
}
"""Factories of readers by type, called with (compact, nullable)."""

WRITERS: Final[dict[str, Callable[[bool, bool], Writer]]] = {
    "string": _text_writer,
    "bytes": _bytes_writer,
    "records": _bytes_writer,
    "uuid": _uuid_writer,
}


def read_array_length(data: Data, at: int, compact: bool) -> tuple[int, int]:
    """The number of elements; -1 is null. Refuses a count that the remaining bytes can't contain."""
    length, at = _length_of(data, at, compact, _INT32)
    if length > len(data) - at:
        raise MalformedMessage(f"{length} elements are announced at byte {at}, {len(data) - at} bytes are there")
    if length > _FEW:
        count_entries(length)
    return length, at


def write_array_length(out: bytearray, length: int, compact: bool) -> None:
    """Write a number of elements; -1 is null."""
    _write_length(out, length, compact, _INT32)


_COMPACT_TEXT: Final = (_text_reader(False, True), _text_reader(True, True))
_COMPACT_TEXT_OUT: Final = (_text_writer(False, True), _text_writer(True, True))


def read_string(data: Data, at: int, compact: bool) -> tuple[str | None, int]:
    """Read a nullable string, for hand-written code."""
    return _COMPACT_TEXT[compact](data, at)


def write_string(out: bytearray, value: str | None, compact: bool) -> None:
    _COMPACT_TEXT_OUT[compact](out, value)
