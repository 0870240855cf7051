"""Confluent's wire format: a zero byte, the schema's id in four bytes, then the record."""

from __future__ import annotations

import struct
from typing import Final

from registry.serde.errors import CorruptRecord

__all__ = ["HEADER_SIZE", "frame", "header", "unframe"]

_HEADER: Final = struct.Struct(">bI")
HEADER_SIZE: Final = _HEADER.size


def header(schema_id: int) -> bytes:
    return _HEADER.pack(0, schema_id)


def frame(schema_id: int, body: bytes) -> bytes:
    return _HEADER.pack(0, schema_id) + body


def unframe(data: bytes) -> tuple[int, memoryview]:
    """The schema id and the record; raises CorruptRecord for anything else than this framing."""
    if len(data) < HEADER_SIZE or data[0] != 0:
        raise CorruptRecord(
            f"not in Confluent framing: {len(data)} bytes beginning {bytes(data[:5]).hex(' ') or 'with nothing'}, "
            "expected 00 and a 4-byte schema id"
        )
    return _HEADER.unpack_from(data)[1], memoryview(data)[HEADER_SIZE:]
