"""Confluent's wire format: a zero byte, the schema's id in four bytes, then the record."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeVar

from registry.serde.errors import CorruptRecord, UnknownSchema
from tidegate.kit.errors import TidegateError

__all__ = ["HEADER_SIZE", "frame", "header", "schema_of", "unframe"]

S = TypeVar("S")

_HEADER: Final = struct.Struct(">bI")
HEADER_SIZE: Final = _HEADER.size


def header(schema_id: int) -> bytes:
    return _HEADER.pack(0, schema_id)


def frame(schema_id: int, body: bytes) -> bytes:
    return _HEADER.pack(0, schema_id) + body


def unframe(data: bytes) -> tuple[int, memoryview]:
    """The schema id and the record. Raises CorruptRecord for any other framing."""
    if len(data) < HEADER_SIZE or data[0] != 0:
        raise CorruptRecord(
            f"not in Confluent framing: {len(data)} bytes beginning {bytes(data[:5]).hex(' ') or 'with nothing'}, "
            "expected 00 and a 4-byte schema id"
        )
    return _HEADER.unpack_from(data)[1], memoryview(data)[HEADER_SIZE:]


def schema_of(schema_id: int, resolve: Callable[[int], S], row: int | None = None) -> S:
    """The schema of a record's id. Raises UnknownSchema if ``resolve`` does not find the id.

    Other errors of a registry pass through unchanged, because they are not the record's fault.
    """
    try:
        return resolve(schema_id)
    except LookupError as error:
        raise UnknownSchema(f"there is no schema with the id {schema_id}", row=row) from error
    except TidegateError as error:
        if error.http_status != 404:
            raise
        raise UnknownSchema(f"the registry has no schema with the id {schema_id}: {error}", row=row) from error
