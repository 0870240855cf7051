"""Parses events of the binary log (format 4).

Sources: dev.mysql.com "Replication Protocol"; mariadb.com "Replication Protocol" for the events that MariaDB adds.

mysql-replication, the existing library, creates a dictionary per row (some 20,000 rows a second) and cannot read
MariaDB's compressed events; here rows stay bytes until a whole batch of them is converted to columns. PyMySQL provides
the connection.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from typing import Final, NamedTuple

from connect.api import DataError

__all__ = [
    "HEADER_BYTES",
    "EventType",
    "Header",
    "Query",
    "RowsHeader",
    "TableMap",
    "header",
    "lenenc",
    "mariadb_gtid",
    "mysql_gtid",
    "payload_events",
    "query",
    "rotate",
    "rows",
    "table_map",
    "uncompressed",
]

_HEADER: Final = struct.Struct("<IBIIIH")
HEADER_BYTES: Final = _HEADER.size


class EventType(IntEnum):
    """The event types that are handled; all others concern replicas only."""

    QUERY = 2
    STOP = 3
    ROTATE = 4
    FORMAT_DESCRIPTION = 15
    XID = 16
    TABLE_MAP = 19
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    ANNOTATE_ROWS = 160
    MARIADB_GTID = 162
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED = 166
    UPDATE_ROWS_COMPRESSED = 167
    DELETE_ROWS_COMPRESSED = 168


class Header(NamedTuple):
    """``timestamp`` in seconds; ``position`` is the start of the next event, 0 in events that are not in a file."""

    timestamp: int
    type: int
    server_id: int
    size: int
    position: int
    flags: int


class Query(NamedTuple):
    """``charset`` is the session's collation number, None where the event does not contain it."""

    thread: int
    database: str
    sql: str


class TableMap(NamedTuple):
    """The structure of a table's rows from here on: the column types and their metadata, as numbers of the protocol."""

    id: int
    database: str
    table: str
    types: tuple[int, ...]
    metadata: tuple[int, ...]


class RowsHeader(NamedTuple):
    """Rows begin at ``start``.

    ``present`` says which columns the row images contain; an update has two of these bitmaps.
    """

    table_id: int
    width: int
    present: tuple[bytes, ...]
    start: int


def header(data: bytes, at: int = 0) -> Header:
    return Header._make(_HEADER.unpack_from(data, at))


def lenenc(data: bytes, at: int) -> tuple[int, int]:
    """A length-encoded number, and the index after it."""
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first)
    if size is None or at + 1 + size > len(data):
        raise DataError("the binary log holds a number that is none")
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def rotate(data: bytes, at: int) -> tuple[int, str]:
    """The position in the next file, and the file's name."""
    return int.from_bytes(data[at : at + 8], "little"), data[at + 8 :].rstrip(b"\0").decode()


def query(data: bytes, at: int, *, compressed: bool = False) -> Query:
    thread, _seconds, name_size, _error, status_size = struct.unpack_from("<IIBHH", data, at)
    at += 13 + status_size
    name = data[at : at + name_size]
    text = data[at + name_size + 1 :]
    if compressed:
        text = uncompressed(text)
    return Query(thread, name.decode(), text.decode("utf-8", "replace"))


def uncompressed(data: bytes) -> bytes:
    """The contents of a MariaDB compressed event (log_bin_compress): a byte with the algorithm and the size of the
    length, the length, a zlib stream.
    """
    if not data:
        raise DataError("a compressed event is empty")
    size = data[0] & 0x07
    try:
        return zlib.decompress(data[1 + size :])
    except zlib.error as error:
        raise DataError(f"a compressed event cannot be read: {error}") from error


_ONE_BYTE: Final = frozenset({4, 5, 17, 18, 19, 140, 242, 245, 249, 250, 251, 252, 255})
"""FLOAT, DOUBLE, times with fractions, and types with a length prefix of this many bytes."""
_TWO_BYTES: Final = frozenset({15, 16, 141, 246, 247, 248, 253, 254})


def table_map(data: bytes, at: int) -> TableMap:
    table_id = int.from_bytes(data[at : at + 6], "little")
    at += 8
    size = data[at]
    database = data[at + 1 : at + 1 + size].decode()
    at += size + 2
    size = data[at]
    table = data[at + 1 : at + 1 + size].decode()
    at += size + 2
    count, at = lenenc(data, at)
    types = tuple(data[at : at + count])
    at += count
    _, at = lenenc(data, at)
    metadata = []
    for code in types:
        if code in _ONE_BYTE:
            metadata.append(data[at])
            at += 1
        elif code in _TWO_BYTES:
            metadata.append(data[at] | data[at + 1] << 8)
            at += 2
        else:
            metadata.append(0)
    return TableMap(table_id, database, table, types, tuple(metadata))


def rows(data: bytes, at: int, *, extra: bool, images: int) -> RowsHeader:
    """``extra``: the event has additional data before the columns (version 2)."""
    table_id = int.from_bytes(data[at : at + 6], "little")
    at += 8
    if extra:
        at += int.from_bytes(data[at : at + 2], "little")
    width, at = lenenc(data, at)
    size = (width + 7) // 8
    present = tuple(data[at + i * size : at + (i + 1) * size] for i in range(images))
    return RowsHeader(table_id, width, present, at + images * size)


def mysql_gtid(data: bytes, at: int) -> str:
    """``source:transaction``."""
    raw = data[at + 1 : at + 17].hex()
    uuid = "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]))
    return f"{uuid}:{int.from_bytes(data[at + 17 : at + 25], 'little')}"


def mariadb_gtid(data: bytes, at: int, server_id: int) -> tuple[str, bool]:
    """``domain-server-sequence``, and whether it is a single statement without BEGIN and COMMIT, such as DDL."""
    sequence, domain, flags = struct.unpack_from("<QIB", data, at)
    return f"{domain}-{server_id}-{sequence}", bool(flags & 1)


def payload_events(data: bytes, at: int) -> list[bytes]:
    """The events in a compressed transaction of MySQL (8.0.20 and later), each with its header."""
    import pyarrow as pa

    algorithm, size = 255, 0
    while at < len(data):
        kind, at = lenenc(data, at)
        if kind == 0:
            break
        length, at = lenenc(data, at)
        if kind == 2:
            algorithm, _ = lenenc(data, at)
        elif kind == 3:
            size, _ = lenenc(data, at)
        at += length
    payload = data[at:]
    if algorithm == 0:
        try:
            payload = pa.decompress(payload, decompressed_size=size, codec="zstd", asbytes=True)
        except (OSError, ValueError) as error:
            raise DataError(f"a compressed transaction cannot be read: {error}") from error
    elif algorithm != 255:
        raise DataError(f"a transaction is compressed by algorithm {algorithm}, which is not known here")
    events, at = [], 0
    while at + HEADER_BYTES <= len(payload):
        length = header(payload, at).size
        if length < HEADER_BYTES or at + length > len(payload):
            raise DataError("a compressed transaction holds an event that ends beyond it")
        events.append(payload[at : at + length])
        at += length
    return events
