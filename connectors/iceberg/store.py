"""A catalog's tables for the sink: opened, and created for records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from connect.api import ConnectError, Field, RecordBatch, Schema
from connectors.iceberg.client import Tables
from connectors.iceberg.config import IcebergSinkConfig
from connectors.iceberg.partition_fields import parse_partition_field, partition_spec
from connectors.iceberg.schemas import table_schema, type_of
from connectors.iceberg.table_rows import IcebergRows
from connectors.tables.row_maker import key_fields
from connectors.tables.rows import TableStore

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema as TableSchema

__all__ = ["IcebergStore"]


class IcebergStore(TableStore):
    def __init__(self, config: IcebergSinkConfig, tables: Tables, connector: str) -> None:
        self._config, self._tables, self._connector = config, tables, connector
        self.where = f"catalog {config.catalog_name}"

    def load(self, name: str) -> IcebergRows | None:
        table = self._tables.load(name)
        return None if table is None else IcebergRows(table, self._config, self._connector)

    def create(self, name: str, fields: Sequence[Field], batch: RecordBatch) -> IcebergRows:
        table = self._tables.create(name, *self._planned(name, fields, batch))
        return IcebergRows(table, self._config, self._connector)

    def planned(self, name: str, fields: Sequence[Field], batch: RecordBatch) -> str:
        schema, spec = self._planned(name, fields, batch)
        columns = ", ".join(
            f"{field.name} {field.field_type}{' not null' if field.required else ''}" for field in schema.fields
        )
        by = ", ".join(f"{field.transform}({schema.find_column_name(field.source_id)})" for field in spec.fields)
        return f"create table {name} ({columns}){f' partitioned by {by}' if by else ''}"

    def _planned(self, name: str, fields: Sequence[Field], batch: RecordBatch) -> tuple[TableSchema, PartitionSpec]:
        settings = self._config.settings(name)
        ids = list(settings.id_columns) or (key_fields(batch) if self._config.changes else [])
        schema = table_schema(fields, ids, force_optional=self._config.force_optional)
        try:
            spec = partition_spec(schema, [parse_partition_field(field) for field in settings.partition_by])
        except ValueError as error:
            raise ConnectError(
                f"table {name} cannot be partitioned by {', '.join(settings.partition_by)}: {error}"
            ) from error
        return schema, spec

    def kind_of(self, schema: Schema, name: str) -> str:
        return str(type_of(schema, name))

    def name_problem(self, name: str) -> str | None:
        return None if "." in name.strip(".") else "a table's name looks like shop.orders"

    def close(self) -> None:
        self._tables.close()
