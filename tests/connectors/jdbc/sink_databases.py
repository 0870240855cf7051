"""Databases that sinks write to; each is read back with its own client."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from connect.api import Origin, Record, RecordBatch, Schema, SchemaType, TopicPartition
from connect.bench import Bench
from connectors.jdbc.sink import JdbcSinkConnector

__all__ = [
    "KEY",
    "PLACE",
    "ROW",
    "DuckDbDatabase",
    "MariaDbDatabase",
    "PostgresDatabase",
    "SinkDatabase",
    "SqliteDatabase",
    "batch",
    "put",
    "row",
]

_numbers = itertools.count()
PLACE = TopicPartition("t", 0)
KEY = Schema.struct({"id": Schema(SchemaType.INT64)})
ROW = Schema.struct(
    {
        "id": Schema(SchemaType.INT64),
        "name": Schema(SchemaType.STRING, optional=True),
        "happened": Schema.timestamp(optional=True),
    }
)


def row(n: int, name: str | None = "", **more: Any) -> Record:
    """A row; without a name (None) a tombstone."""
    value = (
        None
        if name is None
        else {"id": n, "name": name or f"name {n}", "happened": datetime(2024, 7, 1, 12, tzinfo=UTC)}
    )
    return Record("t", value, ROW, key={"id": n}, key_schema=KEY, **more)


def batch(start: int, records: Sequence[Record], partition: int = 0, at_ms: int = 1) -> RecordBatch:
    """Records of one schema at successive offsets, all of one time."""
    from dataclasses import replace

    origin = Origin("t", partition)
    placed = [replace(r, offset=start + n, origin=origin, timestamp_ms=at_ms) for n, r in enumerate(records)]
    return RecordBatch.from_records(placed)


def put(running: Any, batches: Sequence[RecordBatch]) -> None:
    """Put, and have it written."""
    running.task.put(batches)
    running.task.flush()


class SinkDatabase:
    """A database, or a schema of one, that is empty."""

    url: str
    exact_times = True

    def properties(self, **more: str) -> dict[str, str]:
        properties = {"topics": "t", "connection.url": self.url, "retry.backoff.ms": "10"}
        return properties | {key.replace("_", "."): value for key, value in more.items()}

    def bench(
        self, connector: Any = JdbcSinkConnector, properties: Mapping[str, str] | None = None, **more: str
    ) -> Bench:
        return Bench(connector, {**self.properties(**more), **(properties or {})})

    def run(self, sql: str) -> None:
        raise NotImplementedError

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        raise NotImplementedError


class SqliteDatabase(SinkDatabase):
    exact_times = False

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sink.db"
        self.url = f"jdbc:sqlite:{self.path}"

    def _cursor(self, sql: str) -> list[tuple[Any, ...]]:
        import adbc_driver_sqlite.dbapi

        with closing(adbc_driver_sqlite.dbapi.connect(str(self.path), autocommit=True)) as connection:
            with closing(connection.cursor()) as cursor:
                cursor.execute(sql)
                return [tuple(each) for each in cursor.fetchall()]

    def run(self, sql: str) -> None:
        self._cursor(sql)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return self._cursor(sql)


class DuckDbDatabase(SinkDatabase):
    def __init__(self, folder: Path) -> None:
        self.path = folder / "sink.duckdb"
        self.url = f"jdbc:duckdb:{self.path}"

    def run(self, sql: str) -> None:
        self.ask(sql)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        import duckdb

        with closing(duckdb.connect(str(self.path))) as connection:
            return list(connection.execute(sql).fetchall())


class PostgresDatabase(SinkDatabase):
    def __init__(self, server: Any) -> None:
        self.schema = f"sink_{next(_numbers)}"
        self.connection = server.connect()
        self.run(f"CREATE SCHEMA {self.schema}; SET search_path TO {self.schema}; SET TIME ZONE 'UTC'")
        self.url = f"{server.jdbc_url}&currentSchema={self.schema}"

    def run(self, sql: str) -> None:
        self.connection.execute(sql)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.connection.execute(sql).fetchall()
        return rows

    def close(self) -> None:
        self.run(f"DROP SCHEMA {self.schema} CASCADE")
        self.connection.close()


class MariaDbDatabase(SinkDatabase):
    def __init__(self, server: Any) -> None:
        self.name = f"sink_{next(_numbers)}"
        self.connection = server.connect()
        self.run(f"CREATE DATABASE {self.name}")
        self.run(f"USE {self.name}")
        address, _, options = server.jdbc_url.partition("?")
        self.url = f"{address.rpartition('/')[0]}/{self.name}?{options}"

    def run(self, sql: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def close(self) -> None:
        self.run(f"DROP DATABASE {self.name}")
        self.connection.close()
