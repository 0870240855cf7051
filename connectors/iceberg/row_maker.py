"""Turns records into rows of their tables, which it creates and changes as the configuration allows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import ConnectError, DataError, Field, RecordBatch, SchemaType, get_logger
from connectors.iceberg.client import CommitConflict, Tables, iceberg_errors
from connectors.iceberg.columns import Shape, arrow_schema, arrow_type
from connectors.iceberg.config import IcebergSinkConfig
from connectors.iceberg.partition_fields import parse_partition_field, partition_spec
from connectors.iceberg.records import Rows, change_rows, with_schema
from connectors.iceberg.schemas import Change, changes_for, field_of, table_schema
from connectors.iceberg.table_rows import DELETE, OPERATION, UPSERT, TableRows

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema as TableSchema
    from pyiceberg.table import Table

__all__ = ["RowMaker", "planned_table", "row_fields"]

logger = get_logger(__name__)

_TRIES: Final = 10
_LOOK_AGAIN_S: Final = 30.0
_OPERATION_FIELD: Final = pa.field(OPERATION, pa.int8(), nullable=False)


class RowMaker:
    """Reports rows that do not fit by their numbers in the batch, and makes all others."""

    def __init__(self, config: IcebergSinkConfig, tables: Tables, connector: str) -> None:
        self._config, self._tables, self._connector = config, tables, connector
        self._shape = Shape(any_case=config.case_insensitive, replace_null=config.replace_null)
        self._missing: dict[str, float] = {}
        """When tables were looked for in vain."""

    def with_schema(
        self, batch: RecordBatch, refused: dict[int, Exception], first: int = 0
    ) -> Iterator[tuple[RecordBatch, int]]:
        """The batch in parts with a schema, each with the number of its first row."""
        try:
            yield with_schema(batch), first
        except DataError as error:
            if len(batch) == 1:
                refused[first] = error
                return
            half = len(batch) // 2
            yield from self.with_schema(batch.slice(0, half), refused, first)
            yield from self.with_schema(batch.slice(half), refused, first + half)

    def open(self, name: str, batch: RecordBatch | None) -> TableRows | None:
        """A table; it is created by a batch that shows its columns. None where there is none, and nothing to create it by.

        Raises DataError for a name that came from a record, and ConnectError for a configured one.
        """
        if batch is not None and time.monotonic() - self._missing.get(name, -_LOOK_AGAIN_S) < _LOOK_AGAIN_S:
            raise self._no_table(name)
        if self._config.dynamic and "." not in name.strip("."):
            raise DataError(f"{self._config.route_field} is {name!r}, and a table's name looks like shop.orders")
        table = self._tables.load(name)
        if table is None and batch is not None:
            table = self._created(name, batch)
        if table is None:
            return None
        rows = TableRows(self._tables, table, self._config, self._connector)
        if self._config.changes:
            rows.id_columns = self._id_columns(name, table, batch)
        return rows

    def _no_table(self, name: str) -> ConnectError:
        text = f"there is no table {name} in catalog {self._config.catalog_name}: create it, or set "
        kind = DataError if self._config.dynamic else ConnectError
        return kind(f"{text}iceberg.tables.auto-create-enabled=true")

    def _created(self, name: str, batch: RecordBatch) -> Table | None:
        if not self._config.auto_create:
            if self._config.dynamic:
                self._missing[name] = time.monotonic()
            raise self._no_table(name)
        fields = row_fields(batch, self._config)
        if not fields:
            return None
        return self._tables.create(name, *planned_table(self._config, name, fields, batch))

    def _id_columns(self, name: str, table: Table, batch: RecordBatch | None) -> list[str]:
        schema = table.schema()
        ids = list(self._config.settings(name).id_columns) or sorted(schema.identifier_field_names())
        ids = ids or (_key_fields(batch) if batch is not None else [])
        if not ids:
            raise ConnectError(
                f"rows of table {name} are changed by key, and nothing says which columns those are: set "
                f"iceberg.table.{name}.id-columns, or identifier fields of the table, or write records with keys"
            )
        columns = [field_of(schema.fields, each, any_case=self._config.case_insensitive) for each in ids]
        for each, column in zip(ids, columns, strict=True):
            if column is None or not column.field_type.is_primitive:
                raise ConnectError(f"table {name} has no plain column {each}, which its id columns name")
        return [column.name for column in columns if column is not None]

    def rows(
        self, target: TableRows, batch: RecordBatch, numbers: pa.Array, refused: dict[int, Exception]
    ) -> Iterator[pa.Table]:
        """The rows for a table; those that do not fit are found by halving."""
        if not self._config.changes:
            kept = batch.values.is_valid()
            if kept.false_count:
                batch, numbers = batch.filter(kept), numbers.filter(kept)
            if len(batch):
                assert batch.value_schema is not None
                upserts = Rows(batch.values, batch.value_schema.fields, numbers)
                yield from self._appended(target, upserts, refused)
            return
        upserts, deletes, wrong = change_rows(batch, target.id_columns, self._config.cdc_field)
        for number, error in wrong.items():
            refused[numbers[number].as_py()] = error
        yield from self._changed(target, upserts, deletes, numbers, refused)

    def _appended(self, target: TableRows, rows: Rows, refused: dict[int, Exception]) -> Iterator[pa.Table]:
        for made, _ in self._fitted(target, rows, rows.numbers, refused):
            yield made

    def _changed(
        self, target: TableRows, upserts: Rows, deletes: Rows, numbers: pa.Array, refused: dict[int, Exception]
    ) -> Iterator[pa.Table]:
        """All rows in their order, with what is to be done with each."""
        parts: list[tuple[pa.Table, pa.Array]] = []
        if len(upserts.numbers):
            for made, within in self._fitted(target, upserts, numbers, refused):
                parts.append((_marked(made, UPSERT), within))
        if len(deletes.numbers):
            for made, within in self._fitted(target, deletes, numbers, refused, only_ids=True):
                parts.append((_marked(made, DELETE), within))
        if not parts:
            return
        # The table's columns may have grown between the two.
        schema = arrow_schema(target.table.schema().fields).append(_OPERATION_FIELD)
        if any(not made.schema.equals(schema) for made, _ in parts):
            parts = [(target.as_now(made), within) for made, within in parts]
        together = pa.concat_tables([made for made, _ in parts])
        order = pc.sort_indices(pa.concat_arrays([within for _, within in parts]))
        yield together.take(order)

    def _fitted(
        self,
        target: TableRows,
        rows: Rows,
        numbers: pa.Array,
        refused: dict[int, Exception],
        *,
        only_ids: bool = False,
    ) -> Iterator[tuple[pa.Table, pa.Array]]:
        """Rows in the table's columns, with their numbers within the batch. ``numbers`` are those to report."""
        try:
            if not only_ids:
                self._follow(target, rows.fields)
            yield self._shaped(target, rows, only_ids=only_ids), rows.numbers
        except (DataError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            count = len(rows.numbers)
            if count == 1:
                at = rows.numbers[0].as_py()
                refused[at if numbers is rows.numbers else numbers[at].as_py()] = DataError(
                    f"table {target.name}: {error}"
                )
                return
            half = count // 2
            for some in (slice(0, half), slice(half, count)):
                own = rows.numbers[some]
                part = Rows(rows.values[some], rows.fields, own)
                yield from self._fitted(
                    target, part, own if numbers is rows.numbers else numbers, refused, only_ids=only_ids
                )

    def _shaped(self, target: TableRows, rows: Rows, *, only_ids: bool) -> pa.Table:
        schema = target.table.schema()
        if only_ids:
            return self._only_ids(target, rows, schema)
        made = self._shape.rows(rows.values, rows.fields, schema.fields)
        if self._config.changes:
            for name in target.id_columns:
                if made.column(name).null_count:
                    raise DataError(f"the record has no value for {name}, which is an id column")
        return made

    def _only_ids(self, target: TableRows, rows: Rows, schema: TableSchema) -> pa.Table:
        by_name = {field.name: number for number, field in enumerate(rows.fields)}
        made = []
        for column in schema.fields:
            if column.name not in target.id_columns:
                made.append(pa.nulls(len(rows.numbers), arrow_type(column.field_type)))
                continue
            number = by_name.get(column.name)
            values = None if number is None else pc.struct_field(rows.values, [number])
            if values is None or values.null_count:
                raise DataError(
                    f"a delete has no value for id column {column.name}: neither its key nor the row before has one"
                )
            assert number is not None
            made.append(self._shape.column(values, rows.fields[number].schema, column))
        return pa.Table.from_arrays(made, schema=arrow_schema(schema.fields))

    def _follow(self, target: TableRows, fields: Sequence[Field]) -> None:
        """Change the table's schema so that it holds the fields."""
        if not self._config.evolve_schema:
            return
        for attempt in range(_TRIES):
            changes = self.schema_changes(target.table, fields, target)
            if not changes:
                return
            try:
                _change_schema(target.table, changes, any_case=self._config.case_insensitive)
            except CommitConflict:  # another task changes it too
                if attempt + 1 == _TRIES:
                    raise
            target.reload()

    def schema_changes(self, table: Table, fields: Sequence[Field], target: TableRows | None = None) -> list[Change]:
        schema = table.schema()
        ids = frozenset(schema.identifier_field_names()) | frozenset(
            target.id_columns if target and self._config.changes else ()
        )
        return changes_for(fields, schema.fields, any_case=self._config.case_insensitive, keep_required=ids)


def _marked(rows: pa.Table, operation: int) -> pa.Table:
    return rows.append_column(_OPERATION_FIELD, pa.repeat(pa.scalar(operation, pa.int8()), len(rows)))


def _key_fields(batch: RecordBatch) -> list[str]:
    schema = batch.key_schema
    return list(schema.field_names) if schema is not None and schema.type is SchemaType.STRUCT else []


def row_fields(batch: RecordBatch, config: IcebergSinkConfig) -> Sequence[Field]:
    """The fields of a batch's rows: those of a change event are in its envelope."""
    schema = batch.value_schema
    assert schema is not None
    if config.changes and config.cdc_field is None and {"before", "after", "op"} <= set(schema.field_names):
        return schema.field("after").schema.fields
    return schema.fields


def planned_table(
    config: IcebergSinkConfig, name: str, fields: Sequence[Field], batch: RecordBatch
) -> tuple[TableSchema, PartitionSpec]:
    """The schema and the partitioning of a table that is created for a batch."""
    settings = config.settings(name)
    ids = list(settings.id_columns) or (_key_fields(batch) if config.changes else [])
    schema = table_schema(fields, ids, force_optional=config.force_optional)
    try:
        spec = partition_spec(schema, [parse_partition_field(field) for field in settings.partition_by])
    except ValueError as error:
        raise ConnectError(
            f"table {name} cannot be partitioned by {', '.join(settings.partition_by)}: {error}"
        ) from error
    return schema, spec


def _change_schema(table: Table, changes: Sequence[Change], *, any_case: bool) -> None:
    name = ".".join(table.name())
    with iceberg_errors("change the schema of", name), table.update_schema(case_sensitive=not any_case) as update:
        for change in changes:
            if change.add is not None:
                update.add_column(change.path, change.add, doc=change.doc)
            elif change.widen is not None:
                update.update_column(change.path, field_type=change.widen)
            else:
                update.make_column_optional(change.path)
    logger.info("the schema was changed", table=name, columns=[".".join(change.path) for change in changes])
