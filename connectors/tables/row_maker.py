"""Turns records into rows of their tables, which it creates and changes as the configuration allows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import ConnectError, DataError, Field, RecordBatch, SchemaType, get_logger
from connectors.tables.columns import Shape, arrow_schema, column_of
from connectors.tables.config import TableSinkConfig
from connectors.tables.errors import CommitConflict
from connectors.tables.evolution import Change, changes_for
from connectors.tables.records import Rows, change_rows, with_schema
from connectors.tables.rows import DELETE, OPERATION_FIELD, UPSERT, TableRows, TableStore

__all__ = ["RowMaker", "key_fields", "row_fields"]

logger = get_logger(__name__)

_TRIES: Final = 10
_LOOK_AGAIN_S: Final = 30.0


class RowMaker:
    """Reports rows that do not fit by their numbers in the batch, and makes all others."""

    def __init__(self, config: TableSinkConfig, store: TableStore) -> None:
        self._config, self._store = config, store
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
        if self._config.dynamic and (problem := self._store.name_problem(name)) is not None:
            raise DataError(f"{self._config.route_field} is {name!r}, and {problem}")
        rows = self._store.load(name)
        if rows is None and batch is not None:
            rows = self._created(name, batch)
        return rows

    def _no_table(self, name: str) -> ConnectError:
        text = f"there is no table {name} in {self._store.where}: create it, or set "
        kind = DataError if self._config.dynamic else ConnectError
        return kind(f"{text}{self._config.prefix}.tables.auto-create-enabled=true")

    def _created(self, name: str, batch: RecordBatch) -> TableRows | None:
        if not self._config.auto_create:
            if self._config.dynamic:
                self._missing[name] = time.monotonic()
            raise self._no_table(name)
        fields = row_fields(batch, self._config)
        return self._store.create(name, fields, batch) if fields else None

    def _id_columns(self, rows: TableRows, batch: RecordBatch) -> list[str]:
        ids = list(self._config.settings(rows.name).id_columns) or sorted(rows.identifier_columns)
        ids = ids or key_fields(batch)
        if not ids:
            raise ConnectError(
                f"rows of table {rows.name} are changed by key, and nothing says which columns those are: set "
                f"{self._config.prefix}.table.{rows.name}.id-columns, or write records with keys"
            )
        columns = [column_of(rows.columns, each, any_case=self._config.case_insensitive) for each in ids]
        for each, column in zip(ids, columns, strict=True):
            if column is None or column.children:
                raise ConnectError(f"table {rows.name} has no plain column {each}, which its id columns name")
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
        if not target.id_columns:
            target.id_columns = self._id_columns(target, batch)
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
        schema = arrow_schema(target.columns).append(OPERATION_FIELD)
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
        if only_ids:
            return self._only_ids(target, rows)
        made = self._shape.rows(rows.values, rows.fields, target.columns)
        if self._config.changes:
            for name in target.id_columns:
                if made.column(name).null_count:
                    raise DataError(f"the record has no value for {name}, which is an id column")
        return made

    def _only_ids(self, target: TableRows, rows: Rows) -> pa.Table:
        by_name = {field.name: number for number, field in enumerate(rows.fields)}
        made = []
        for column in target.columns:
            if column.name not in target.id_columns:
                made.append(pa.nulls(len(rows.numbers), column.type))
                continue
            number = by_name.get(column.name)
            values = None if number is None else pc.struct_field(rows.values, [number])
            if values is None or values.null_count:
                raise DataError(
                    f"a delete has no value for id column {column.name}: neither its key nor the row before has one"
                )
            assert number is not None
            made.append(self._shape.column(values, rows.fields[number].schema, column))
        return pa.Table.from_arrays(made, schema=arrow_schema(target.columns))

    def _follow(self, target: TableRows, fields: Sequence[Field]) -> None:
        """Change the table's schema so that it holds the fields."""
        if not self._config.evolve_schema:
            return
        for attempt in range(_TRIES):
            changes = self.schema_changes(target, fields)
            if not changes:
                return
            try:
                target.change_schema(changes)
            except CommitConflict:  # another task changes it too
                if attempt + 1 == _TRIES:
                    raise
            else:
                columns = [".".join(change.path) for change in changes]
                logger.info("the schema was changed", table=target.name, columns=columns)
            target.reload()

    def schema_changes(self, target: TableRows, fields: Sequence[Field]) -> list[Change]:
        ids = frozenset(target.identifier_columns) | frozenset(target.id_columns if self._config.changes else ())
        return changes_for(fields, target.columns, any_case=self._config.case_insensitive, keep_required=ids)


def _marked(rows: pa.Table, operation: int) -> pa.Table:
    return rows.append_column(OPERATION_FIELD, pa.repeat(pa.scalar(operation, pa.int8()), len(rows)))


def key_fields(batch: RecordBatch) -> list[str]:
    schema = batch.key_schema
    return list(schema.field_names) if schema is not None and schema.type is SchemaType.STRUCT else []


def row_fields(batch: RecordBatch, config: TableSinkConfig) -> Sequence[Field]:
    """The fields of a batch's rows: those of a change event are in its envelope."""
    schema = batch.value_schema
    assert schema is not None
    if config.changes and config.cdc_field is None and {"before", "after", "op"} <= set(schema.field_names):
        return schema.field("after").schema.fields
    return schema.fields
