"""The file of Kafka Connect's FileOffsetBackingStore: a serialized ``java.util.HashMap<byte[], byte[]>``.

The grammar is that of the Java Object Serialization Specification, section 6.4, limited to what such a map can contain:
one object, byte arrays, nulls, and references to earlier arrays.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from tidegate.kit.errors import TidegateError

__all__ = ["NotAnOffsetFile", "dump_map", "load_map"]

_HEADER: Final = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _ARRAY, _BLOCK, _END = 0x70, 0x71, 0x72, 0x73, 0x75, 0x77, 0x78
_FIRST_HANDLE: Final = 0x7E0000
_MAP_CLASS: Final = (
    b"\x72\x00\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1"  # TC_CLASSDESC, name, serialVersionUID
    b"\x03\x00\x02F\x00\x0aloadFactorI\x00\x09threshold\x78\x70"  # flags, two fields, no annotation, no superclass
)
_BYTES_CLASS: Final = b"\x72\x00\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\x00\x00\x78\x70"
_BYTES_CLASS_HANDLE: Final = _FIRST_HANDLE + 2
_LOAD_FACTOR: Final = 0.75
_INT: Final = struct.Struct(">i")


class NotAnOffsetFile(TidegateError):
    """The bytes are not a serialized map of bytes to bytes."""


def dump_map(entries: Mapping[bytes, bytes | None]) -> bytes:
    """The map in Java's format, with entries in the given order."""
    capacity = 16
    while capacity * _LOAD_FACTOR < len(entries):
        capacity *= 2
    threshold = int(capacity * _LOAD_FACTOR) if entries else 0  # Java allocates with the first entry
    parts = [_HEADER, bytes([_OBJECT]), _MAP_CLASS, struct.pack(">fi", _LOAD_FACTOR, threshold)]
    parts += [bytes([_BLOCK, 8]), _INT.pack(capacity), _INT.pack(len(entries))]
    described = False
    for data in (data for entry in entries.items() for data in entry):
        if data is None:
            parts.append(bytes([_NULL]))
            continue
        told = bytes([_REFERENCE]) + _INT.pack(_BYTES_CLASS_HANDLE) if described else _BYTES_CLASS
        parts += [bytes([_ARRAY]), told, _INT.pack(len(data)), data]
        described = True
    parts.append(bytes([_END]))
    return b"".join(parts)


def load_map(data: bytes) -> dict[bytes, bytes | None]:
    """The entries of such a file, without one with a null key. Raises NotAnOffsetFile."""
    reader = _Reader(data)
    reader.expect(_HEADER, "the header of Java's serialization")
    reader.expect(bytes([_OBJECT]) + _MAP_CLASS, "a java.util.HashMap")
    reader.take(8)
    reader.expect(bytes([_BLOCK, 8]), "the size of the map")
    reader.take(4)
    count = reader.integer()
    if not 0 <= count <= len(data):
        raise NotAnOffsetFile(f"a map of {count} entries in {len(data)} bytes")
    entries: dict[bytes, bytes | None] = {}
    for _ in range(count):
        key, value = reader.array(), reader.array()
        if key is not None:
            entries[key] = value
    reader.expect(bytes([_END]), "the end of the map")
    return entries


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._objects: list[bytes | None] = [None, None]
        """The targets of handles, in order; None for anything but an array."""

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise NotAnOffsetFile(f"the file ends at byte {len(self._data)}, where byte {end} was to come")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def expect(self, expected: bytes, what: str) -> None:
        at = self._at
        if self.take(len(expected)) != expected:
            raise NotAnOffsetFile(f"byte {at} should begin {what}")

    def integer(self) -> int:
        return int(_INT.unpack(self.take(4))[0])

    def array(self) -> bytes | None:
        (kind,) = self.take(1)
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            return self._referred()
        if kind != _ARRAY:
            raise NotAnOffsetFile(f"byte {self._at - 1} should begin an array of bytes")
        self._class()
        content = self.take(self.integer())
        self._objects.append(content)
        return content

    def _referred(self) -> bytes | None:
        handle = self.integer() - _FIRST_HANDLE
        if not 0 <= handle < len(self._objects) or self._objects[handle] is None:
            raise NotAnOffsetFile(f"byte {self._at - 4} refers to something that is not an array of bytes")
        return self._objects[handle]

    def _class(self) -> None:
        if self._data[self._at : self._at + 1] == bytes([_CLASS]):
            self.expect(_BYTES_CLASS, "the class of arrays of bytes")
            self._objects.append(None)
        else:
            self.expect(bytes([_REFERENCE]) + _INT.pack(_BYTES_CLASS_HANDLE), "the class of arrays of bytes")
