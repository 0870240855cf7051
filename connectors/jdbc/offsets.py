"""Positions of the JDBC source as Kafka Connect stores them, in both of its forms.

Partition, protocol 1: ``{"protocol": "1", "table": "<database.schema.table>"}``; protocol 0: ``{"table": "<table>"}``;
a query's is ``{"query": "query"}``. Offset: ``{"incrementing": n, "timestamp": ms, "timestamp_nanos": n}``, of which
only what the mode uses; the nanoseconds are those of the whole fraction of the second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from connect.api import ConnectError
from connectors.sql.tables import TableId

__all__ = ["QUERY_PARTITION", "Position", "find_position", "partition_v0", "partition_v1"]

QUERY_PARTITION: Mapping[str, Any] = {"query": "query"}


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
        for name in ("incrementing", "timestamp", "timestamp_nanos"):
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
