"""The tables of a warehouse for the sink: opened, and created for records."""

from __future__ import annotations

from collections.abc import Sequence

from connect.api import Field, RecordBatch, Schema
from connectors.delta.client import Tables
from connectors.delta.config import DeltaSinkConfig, name_problem
from connectors.delta.schemas import delta_type, kind_of, table_schema
from connectors.delta.table_rows import DeltaRows
from connectors.tables.row_maker import key_fields
from connectors.tables.rows import TableStore

__all__ = ["DeltaStore"]


class DeltaStore(TableStore):
    def __init__(self, config: DeltaSinkConfig, connector: str) -> None:
        self._config, self._tables, self._connector = config, Tables(config), connector
        self.where = config.warehouse or "its folder"

    def load(self, name: str) -> DeltaRows | None:
        table = self._tables.load(name)
        return None if table is None else DeltaRows(table, self._config, self._connector, name)

    def create(self, name: str, fields: Sequence[Field], batch: RecordBatch) -> DeltaRows:
        settings = self._config.settings(name)
        schema = table_schema(fields, self._ids(name, batch), settings.partition_by)
        table = self._tables.create(name, schema, settings.partition_by)
        return DeltaRows(table, self._config, self._connector, name)

    def planned(self, name: str, fields: Sequence[Field], batch: RecordBatch) -> str:
        by = self._config.settings(name).partition_by
        schema = table_schema(fields, self._ids(name, batch), by)
        columns = ", ".join(f"{field.name} {kind_of(field.type)}" for field in schema.fields)
        return f"create table {name} ({columns}){' partitioned by ' if by else ''}{', '.join(by)}"

    def _ids(self, name: str, batch: RecordBatch) -> Sequence[str]:
        return self._config.settings(name).id_columns or (key_fields(batch) if self._config.changes else ())

    def kind_of(self, schema: Schema, name: str) -> str:
        return kind_of(delta_type(schema, name))

    def name_problem(self, name: str) -> str | None:
        return name_problem(name)
