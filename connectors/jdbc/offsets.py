"""Positions of the JDBC source as Kafka Connect stores them, in both of its forms.

Partition, protocol 1: ``{"protocol": "1", "table": "<database.schema.table>"}``; protocol 0: ``{"table": "<table>"}``;
a query's is ``{"query": "query"}``. Offset: ``{"incrementing": n, "timestamp": ms, "timestamp_nanos": n}``, of which
only what the mode uses; the nanoseconds are those of the whole fraction of the second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.api import ConnectError
from connectors.sql.tables import TableId
from tidegate.kit.config import nearest_name

__all__ = ["QUERY_PARTITION", "Position", "find_position", "partition_v0", "partition_v1", "require_position"]

QUERY_PARTITION: Mapping[str, Any] = {"query": "query"}


_FIELDS: Final = ("incrementing", "timestamp", "timestamp_nanos")


@dataclass(frozen=True, slots=True)
class Position:
    """How far a table has been read: the last timestamp (microseconds since the epoch) and incrementing value."""

    timestamp_us: int | None = None
    incrementing: int | None = None

    def to_offset(self) -> dict[str, int]:
        offset = {}
        if self.incrementing is not None:
            offset["incrementing"] = self.incrementing
        if self.timestamp_us is not None:
            offset["timestamp"] = self.timestamp_us // 1000
            offset["timestamp_nanos"] = self.timestamp_us % 1_000_000 * 1000
        return offset

    @classmethod
    def from_offset(cls, offset: Mapping[str, Any]) -> Position:
        """Raises ConnectError for an offset that another kind of connector wrote."""
        for name in _FIELDS:
            if not isinstance(offset.get(name, 0), int | None):
                raise ConnectError(
                    f"offset {dict(offset)} is not one of a JDBC source: {name} should be a whole number"
                )
        timestamp_us = None
        if (millis := offset.get("timestamp")) is not None:
            timestamp_us = millis * 1000
            if (nanos := offset.get("timestamp_nanos")) is not None:
                timestamp_us = millis // 1000 * 1_000_000 + nanos // 1000
        return cls(timestamp_us, offset.get("incrementing"))


def require_position(partition: Mapping[str, Any], offset: Mapping[str, Any] | None, tables: Sequence[TableId]) -> None:
    """Raises ConnectError for what no task would look up: it would read the table from the beginning. ``tables`` is empty for a query."""
    if offset is None:
        return
    names = [name for table in tables for name in (*table.names, table.name)]
    named = partition.get("table") if set(partition) <= {"protocol", "table"} else None
    if not tables and partition != QUERY_PARTITION:
        raise ConnectError(
            f"partition {dict(partition)} should be {dict(QUERY_PARTITION)}: the connector reads a query"
        )
    if tables and named not in names:
        near = nearest_name(str(named), names)
        raise ConnectError(
            f"partition {dict(partition)} is of no table of the connector{f'; is {near} meant?' if near else ''}: it should be "
            f"like {partition_v1(tables[0])}"
        )
    unknown = sorted(set(offset) - set(_FIELDS))
    if unknown or not offset:
        near = nearest_name(unknown[0], _FIELDS) if unknown else None
        raise ConnectError(
            f"offset {dict(offset)} should have {', '.join(_FIELDS[:2])} or both"
            + (f", not {unknown[0]}{f'; is {near} meant?' if near else ''}" if unknown else "")
        )
    Position.from_offset(offset)


def partition_v1(table: TableId) -> dict[str, Any]:
    return {"protocol": "1", "table": str(table)}


def partition_v0(table: TableId) -> dict[str, Any]:
    return {"table": table.name}


def find_position(lookup: Callable[[Mapping[str, Any]], Mapping[str, Any] | None], table: TableId) -> Position:
    """The committed position of a table, trying the newest form first; drivers differed in how much of the full name
    they used.
    """
    candidates = [{"protocol": "1", "table": name} for name in table.names]
    for partition in (*candidates, partition_v0(table)):
        if (offset := lookup(partition)) is not None:
            return Position.from_offset(offset)
    return Position()
