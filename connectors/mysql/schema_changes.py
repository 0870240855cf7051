"""Handles DDL: updates the structure, adds a record to the history and an event to the schema change topic."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from connect.api import ConnectError, DataError, Field, JavaRegex, Record, RecordBatch, Schema, SchemaType, get_logger
from connectors.debezium.events import ContextHeaders
from connectors.mysql.catalog import TableDdl
from connectors.mysql.changes import LogEntry, Origin, source_column
from connectors.mysql.config import MySqlConfig
from connectors.mysql.ddl import Applied, apply
from connectors.mysql.history import record, table_struct
from connectors.mysql.history_stores import History
from connectors.mysql.structure import Change, Structure, TableName
from connectors.mysql.tables import Shapes

__all__ = ["SchemaChanges"]

logger = get_logger(__name__)
_S: Final = Schema(SchemaType.STRING)
_S_OPT: Final = _S.as_optional()
_I32: Final = Schema(SchemaType.INT32)
_BOOL_OPT: Final = Schema(SchemaType.BOOLEAN, optional=True)
_TEXTS: Final = Schema.array(_S, optional=True)
_COLUMN: Final = Schema.struct(
    [
        Field("name", _S),
        Field("jdbcType", _I32),
        Field("nativeType", _I32.as_optional()),
        Field("typeName", _S),
        Field("typeExpression", _S_OPT),
        Field("charsetName", _S_OPT),
        Field("length", _I32.as_optional()),
        Field("scale", _I32.as_optional()),
        Field("position", _I32),
        Field("optional", _BOOL_OPT),
        Field("autoIncremented", _BOOL_OPT),
        Field("generated", _BOOL_OPT),
        Field("comment", _S_OPT),
        Field("defaultValueExpression", _S_OPT),
        Field("enumValues", _TEXTS),
    ],
    name="io.debezium.connector.schema.Column",
    version=1,
)
_TABLE: Final = Schema.struct(
    [
        Field("defaultCharsetName", _S_OPT),
        Field("primaryKeyColumnNames", _TEXTS),
        Field("columns", Schema.array(_COLUMN)),
        Field("comment", _S_OPT),
    ],
    name="io.debezium.connector.schema.Table",
    version=1,
    optional=True,
)
_CHANGE: Final = Schema.struct(
    [Field("type", _S), Field("id", _S), Field("table", _TABLE)], name="io.debezium.connector.schema.Change", version=1
)


class SchemaChanges:
    """Maintains the structure at the log's position."""

    def __init__(
        self,
        config: MySqlConfig,
        structure: Structure,
        shapes: Shapes,
        history: History,
        origin: Origin,
        context: ContextHeaders,
    ) -> None:
        self._config, self._structure, self._shapes = config, structure, shapes
        self._history, self._origin, self._context = history, origin, context
        self._ignored = [JavaRegex(p, ignore_case=True, dot_all=True) for p in config.history_ddl_filter]
        name = f"io.debezium.connector.{origin.connector}"
        self._key = Schema.struct({"databaseName": _S}, name=f"{name}.SchemaChangeKey", version=1)
        self._value = Schema.struct(
            [
                Field("source", shapes.source),
                Field("ts_ms", Schema(SchemaType.INT64)),
                Field("databaseName", _S_OPT),
                Field("schemaName", _S_OPT),
                Field("ddl", _S_OPT),
                Field("tableChanges", Schema.array(_CHANGE)),
            ],
            name=f"{name}.SchemaChangeValue",
            version=1,
        )

    def happened(
        self, sql: str, database: str, source: LogEntry, position: Mapping[str, Any]
    ) -> tuple[list[RecordBatch], set[TableName], list[TableName]]:
        """Handle a statement of the log.

        Returns the records to deliver, the tables that have changed, and those that were truncated.
        """
        if any(pattern.fullmatch(sql) for pattern in self._ignored):
            return [], set(), []
        try:
            applied = apply(self._structure, sql, database)
        except DataError as error:
            if not self._config.history_skip:
                raise ConnectError(
                    f"a statement in the log is not understood: {error}. To go on without it set "
                    "schema.history.internal.skip.unparseable.ddl=true"
                ) from error
            logger.warning("a statement in the log is skipped", problem=str(error))
            return [], set(), []
        changed = {change.name for change in applied.changes}
        changed |= {change.previous for change in applied.changes if change.previous is not None}
        if not applied.structural or not self._is_kept(applied, changed):
            return [], changed, applied.truncated
        changes = self._captured_changes(applied.changes)
        self._history.append([record(self._config, position, applied.database, sql, changes)])
        batches = []
        if self._config.include_schema_changes and not applied.truncated and self._is_told(applied, changed):
            batches.append(self.event(sql, applied.database, changes, source))
        return batches, changed, applied.truncated

    def _is_kept(self, applied: Applied, changed: set[TableName]) -> bool:
        config = self._config
        tables = changed | set(applied.truncated)
        if config.history_captured_only and tables:
            return any(self._shapes.is_captured(name) for name in tables)
        if config.history_databases_only:
            return config.database_is_meant(applied.database)
        return True

    def _is_told(self, applied: Applied, changed: set[TableName]) -> bool:
        """Whether the schema change topic gets this statement: it covers captured tables and databases."""
        if changed:
            return any(self._shapes.is_captured(name) for name in changed)
        return self._config.database_is_meant(applied.database)

    def _captured_changes(self, changes: Sequence[Change]) -> list[Change]:
        if self._config.include_comments:
            return list(changes)
        made = []
        for change in changes:
            table = change.table
            if table is not None:
                columns = tuple(replace(column, comment=None) for column in table.columns)
                change = replace(change, table=replace(table, columns=columns, comment=None))
            made.append(change)
        return made

    def event(
        self, sql: str, database: str, changes: Sequence[Change], event_source: LogEntry, mark: str = "false"
    ) -> RecordBatch:
        """A record for the topic of schema changes."""
        import pyarrow as pa

        named = (database, ",".join(dict.fromkeys(change.name[1] for change in changes)) or None)
        zero = np.zeros(1, np.int64)
        source = source_column(self._origin, named, [event_source], zero, zero, pa.array([mark], pa.string()))
        value = {
            "source": source.to_pylist()[0],
            "ts_ms": time.time_ns() // 1_000_000,
            "databaseName": database,
            "schemaName": None,
            "ddl": sql,
            "tableChanges": [_struct(change) for change in changes],
        }
        topic = self._shapes.topic()
        return RecordBatch.from_records(
            [Record(topic, value, self._value, {"databaseName": database}, self._key, headers=self._context.headers)]
        )

    # a structure read anew

    def read_anew(
        self,
        databases: Mapping[str, tuple[str, str]],
        server_charset: str,
        tables: Sequence[TableDdl],
        source: LogEntry,
        position: Mapping[str, Any],
        *,
        tell: bool,
        keep: bool,
    ) -> list[RecordBatch]:
        """Discard the known structure and load the current one from the server; ``keep`` writes it to the history."""
        structure = self._structure
        structure.tables.clear()
        structure.charsets.clear()
        structure.server_charset = server_charset
        records: list[Mapping[str, Any]] = []
        batches: list[RecordBatch] = []

        def did(sql: str, database: str) -> None:
            changes = self._captured_changes(apply(structure, sql, database).changes)
            records.append(record(self._config, position, database, sql, changes))
            told = self._config.database_is_meant(database) and (
                not changes or any(self._shapes.is_captured(change.name) for change in changes)
            )
            if tell and told and self._config.include_schema_changes:
                batches.append(self.event(sql, database, changes, source, "true"))

        for database, (charset, collation) in databases.items():
            if self._config.database_is_meant(database) or not self._config.history_databases_only:
                quoted = database.replace("`", "``")
                did(f"CREATE DATABASE `{quoted}` CHARSET {charset} COLLATE {collation}", database)
        for table in tables:
            did(table.sql, table.name[0])
        if keep:
            self._history.append(records)
        return batches


def _struct(change: Change) -> dict[str, Any]:
    made: dict[str, Any] = {"type": change.type, "id": f'"{change.name[0]}"."{change.name[1]}"', "table": None}
    if change.table is not None:
        table = table_struct(change.table)
        columns = []
        for column in table["columns"]:
            values = {name: column.get(name) for name in _COLUMN_NAMES}
            columns.append(values | {"enumValues": values["enumValues"] or None})
        made["table"] = {
            "defaultCharsetName": table["defaultCharsetName"],
            "primaryKeyColumnNames": table["primaryKeyColumnNames"],
            "columns": columns,
            "comment": change.table.comment,
        }
    return made


_COLUMN_NAMES: Final = [f.name for f in _COLUMN.fields]
