"""pgoutput's messages but those of rows (see ``spans``), from bytes to values.

Messages come with the head that replication puts before them. Source: PostgreSQL documentation, "Logical Replication Message Formats"
and "Streaming Replication Protocol" (XLogData).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from connect.api import DataError

__all__ = ["HEAD", "Relation", "RelationColumn", "begin", "commit", "lsn_of", "message", "relation", "truncate"]

HEAD: Final = 25
"""Bytes of replication's own before each message: a kind, the position, the server's end and clock."""
_BODY: Final = HEAD + 1
_EPOCH_MICROS: Final = 946_684_800_000_000
"""2000-01-01, from which PostgreSQL counts microseconds."""
_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">BQQq")


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


def lsn_of(data: bytes) -> int:
    """The position of a message in the log."""
    return int.from_bytes(data[1:9])


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Bytes that are no such message are the sender's fault: DataError."""
    try:
        yield
    except (struct.error, IndexError, ValueError) as error:
        raise DataError(f"pgoutput sent a {what} message that cannot be read: {error}") from error


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


@_reading("begin")
def begin(data: bytes) -> tuple[int, int]:
    """Microseconds since 1970 of the commit, and the transaction's number."""
    _, micros, xid = _BEGIN.unpack_from(data, _BODY)
    return micros + _EPOCH_MICROS, xid


@_reading("commit")
def commit(data: bytes) -> int:
    """The position after the commit."""
    _, _, end, _ = _COMMIT.unpack_from(data, _BODY)
    return int(end)


@_reading("relation")
def relation(data: bytes, at: int = _BODY) -> Relation:
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


@_reading("truncate")
def truncate(data: bytes, at: int = _BODY) -> list[int]:
    """The oids of the tables that were emptied."""
    (count,) = struct.unpack_from(">I", data, at)
    return list(struct.unpack_from(f">{count}I", data, at + 5))


@_reading("logical")
def message(data: bytes, at: int = _BODY) -> tuple[bool, str, bytes]:
    """Whether a logical message belongs to its transaction, its prefix and its content."""
    transactional = bool(data[at] & 1)
    prefix, at = _string(data, at + 9)
    (length,) = struct.unpack_from(">I", data, at)
    content = data[at + 4 : at + 4 + length]
    if len(content) != length:
        raise ValueError(f"{len(content)} bytes of content instead of {length}")
    return transactional, prefix, content
