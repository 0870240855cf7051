"""Debezium's TimescaleDb: changes of TimescaleDB's chunks appear as changes of the hypertable or the continuous aggregate.

Source: debezium.io, "TimescaleDB integration"; TimescaleDB's catalog (``_timescaledb_catalog``) says what belongs together.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import psycopg

from connect.api import (
    Header,
    Problem,
    Record,
    RecordBatch,
    Schema,
    SchemaType,
    Transformation,
    config,
    family,
    get_logger,
    key,
    parse,
    validate,
)
from connectors.postgres.config import PostgresConfig
from connectors.postgres.connections import connect, database_errors

__all__ = ["TimescaleDb", "TimescaleDbConfig"]

logger = get_logger(__name__)

_CHUNKS: Final = (
    "SELECT c.schema_name, c.table_name, h.schema_name, h.table_name FROM _timescaledb_catalog.chunk c "
    "JOIN _timescaledb_catalog.hypertable h ON c.hypertable_id = h.id"
)
_AGGREGATES: Final = (
    "SELECT h.schema_name, h.table_name, a.user_view_schema, a.user_view_name FROM _timescaledb_catalog.continuous_agg a "
    "JOIN _timescaledb_catalog.hypertable h ON a.mat_hypertable_id = h.id"
)
_HEADER: Final = "__debezium_timescaledb_"
_TEXT: Final = Schema(SchemaType.STRING)


class _Table(NamedTuple):
    schema: str
    name: str


@config
class TimescaleDbConfig:
    """Keys of TimescaleDb."""

    schemas: list[str] = key(
        "schema.list",
        default=["_timescaledb_internal"],
        importance="high",
        doc="Schemas with TimescaleDB's chunks. Changes of tables in other schemas pass untouched.",
    )
    prefix: str = key(
        "target.topic.prefix",
        default="timescaledb",
        doc="What topics begin with: PREFIX.SCHEMA.TABLE of the hypertable or the aggregate.",
    )
    database: dict[str, str] = family(
        "database.", doc="Where TimescaleDB's catalog is: database.hostname, .dbname, .user and such, as of the source."
    )

    @property
    def _server(self) -> dict[str, str]:
        # A connector's configuration needs a prefix, which is what the server calls the connection here.
        return {f"database.{name}": value for name, value in self.database.items()} | {"topic.prefix": "timescaledb"}

    @property
    def server(self) -> PostgresConfig:
        return parse(PostgresConfig, self._server)

    def problems(self) -> Iterable[Problem]:
        for result in validate(PostgresConfig, self._server):
            for error in result.errors:
                yield Problem(result.key.name, error)


class TimescaleDb(Transformation):
    """Where ``source`` names a chunk, it is replaced by the hypertable, and so is the topic; headers keep the original
    values.

    The catalog is read when an unknown chunk appears.
    """

    config_class = TimescaleDbConfig
    config: TimescaleDbConfig

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._hypertables: dict[_Table, _Table] = {}
        self._aggregates: dict[_Table, _Table] = {}
        self._connection: psycopg.Connection[Any] | None = None

    @cached_property
    def _server(self) -> PostgresConfig:
        return self.config.server

    @cached_property
    def _schemas(self) -> frozenset[str]:
        return frozenset(self.config.schemas)

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        if self._names_schemas(batch) and batch.values.null_count < len(batch):
            source = batch.values.field(batch.value_schema.field_names.index("source"))  # type: ignore[union-attr]
            index = batch.value_schema.field("source").schema.field_names.index("schema")  # type: ignore[union-attr]
            if self._schemas.intersection(source.field(index).unique().to_pylist()):
                return super().apply(batch)
        return [batch]

    @staticmethod
    def _names_schemas(batch: RecordBatch) -> bool:
        schema = batch.value_schema
        if schema is None or schema.type is not SchemaType.STRUCT or not (schema.name or "").endswith("Envelope"):
            return False
        source = schema.field("source").schema if "source" in schema.field_names else None
        return source is not None and {"schema", "table"} <= set(source.field_names)

    def apply_record(self, record: Record) -> Record:
        source = record.value and record.value["source"]
        if not source or source["schema"] not in self._schemas or source["table"] is None:
            return record
        chunk = _Table(source["schema"], source["table"])
        hypertable = self._hypertable(chunk)
        if hypertable is None:
            logger.warning("TimescaleDB's catalog has no hypertable of a chunk", chunk=".".join(chunk))
            return record
        aggregate = self._aggregates.get(hypertable)
        target = aggregate or hypertable
        told = {"chunk_table": chunk.name, "chunk_schema": chunk.schema}
        if aggregate is not None:
            told |= {"hypertable_table": hypertable.name, "hypertable_schema": hypertable.schema}
        return replace(
            record,
            topic=f"{self.config.prefix}.{target.schema}.{target.name}",
            value={**record.value, "source": {**source, "schema": target.schema, "table": target.name}},
            headers=(*record.headers, *(Header(_HEADER + name, value, _TEXT) for name, value in told.items())),
        )

    def _hypertable(self, chunk: _Table) -> _Table | None:
        if chunk not in self._hypertables:
            self._read_catalog()
        return self._hypertables.get(chunk)

    def _read_catalog(self) -> None:
        try:
            with database_errors(self._server, "reading TimescaleDB's catalog in"):
                if self._connection is None:
                    self._connection = connect(self._server)
                self._hypertables = self._pairs(_CHUNKS)
                self._aggregates = self._pairs(_AGGREGATES)
        except BaseException:
            self.close()
            raise

    def _pairs(self, statement: str) -> dict[_Table, _Table]:
        assert self._connection is not None
        rows = self._connection.execute(statement.encode()).fetchall()
        return {_Table(*row[:2]): _Table(*row[2:]) for row in rows}

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):  # the connection may be lost
                connection.close()
