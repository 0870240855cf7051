"""pgoutput's messages, from bytes to values (protocol versions 1 and 2).

Source: PostgreSQL documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from connect.api import DataError

__all__ = [
    "UNCHANGED",
    "Relation",
    "RelationColumn",
    "Tuple",
    "begin",
    "commit",
    "message",
    "relation",
    "truncate",
    "tuple_at",
]

UNCHANGED: Final = b"\x00unchanged"
"""Stands for a large value that the log does not repeat. No text value holds a zero byte."""
_EPOCH_MICROS: Final = 946_684_800_000_000
"""2000-01-01, from which PostgreSQL counts microseconds."""
_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">BQQq")

Tuple = list[bytes | None]


class RelationColumn(NamedTuple):
    name: str
    type_oid: int
    modifier: int
    in_key: bool


class Relation(NamedTuple):
    """``identity`` is the replica identity: d, n, f or i."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def begin(data: bytes) -> tuple[int, int]:
    """Microseconds since 1970 of the commit, and the transaction's number."""
    _, micros, xid = _BEGIN.unpack_from(data, 1)
    return micros + _EPOCH_MICROS, xid


def commit(data: bytes, at: int = 1) -> tuple[int, int]:
    """The position after the commit, and its microseconds since 1970."""
    _, _, end, micros = _COMMIT.unpack_from(data, at)
    return end, micros + _EPOCH_MICROS


def relation(data: bytes, at: int = 1) -> Relation:
    (oid,) = struct.unpack_from(">I", data, at)
    schema, at = _string(data, at + 4)
    name, at = _string(data, at)
    identity = chr(data[at])
    (count,) = struct.unpack_from(">H", data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        column, at = _string(data, at + 1)
        type_oid, modifier = struct.unpack_from(">Ii", data, at)
        at += 8
        columns.append(RelationColumn(column, type_oid, modifier, bool(flags & 1)))
    return Relation(oid, schema or "pg_catalog", name, identity, tuple(columns))


def truncate(data: bytes, at: int = 1) -> list[int]:
    """The oids of the tables that were emptied."""
    (count,) = struct.unpack_from(">I", data, at)
    return list(struct.unpack_from(f">{count}I", data, at + 5))


def message(data: bytes, at: int = 1) -> tuple[bool, str, bytes]:
    """Whether a logical message belongs to its transaction, its prefix and its content."""
    transactional = bool(data[at] & 1)
    prefix, at = _string(data, at + 9)
    (length,) = struct.unpack_from(">I", data, at)
    return transactional, prefix, data[at + 4 : at + 4 + length]


def tuple_at(data: bytes, at: int) -> tuple[Tuple, int]:
    """A row's values as text, None for null, and where it ends. ``at`` is at the count of columns."""
    values: Tuple = []
    append = values.append
    count = data[at] << 8 | data[at + 1]
    at += 2
    try:
        for _ in range(count):
            kind = data[at]
            if kind == 116:  # t: text
                start = at + 5
                at = start + int.from_bytes(data[at + 1 : start])
                append(data[start:at])
            elif kind == 110:  # n: null
                append(None)
                at += 1
            elif kind == 117:  # u: unchanged
                append(UNCHANGED)
                at += 1
            else:
                raise DataError(f"pgoutput sent a value of kind {chr(kind)!r}, which was not asked for")
    except IndexError as error:
        raise DataError("pgoutput sent a row that ends in the middle of a value") from error
    return values, at
