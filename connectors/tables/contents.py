"""Both sides of a sink to tables: its own code turns records into rows, and the tables' rows are read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import ConnectError, RecordBatch, SinkContents, TargetRows, TopicPartition
from connectors.tables.columns import arrow_schema
from connectors.tables.config import TableSinkConfig
from connectors.tables.routing import Router
from connectors.tables.row_maker import RowMaker
from connectors.tables.rows import DELETE, OPERATION, UPSERT, TableRows, TableStore, last_of_each

__all__ = ["TableContents"]

_ROWS: Final = 20_000
"""Rows that are turned into Python's values at once."""


class TableContents(SinkContents):
    """A table is read as it is when its first record comes, or at ``positions``: its offsets and its rows are of one commit."""

    def __init__(self, config: TableSinkConfig, store: TableStore, committed: Mapping[TopicPartition, int]) -> None:
        self._config: Any = replace(config, evolve_schema=False, auto_create=False)  # type: ignore[type-var]
        self._store, self._committed = store, committed
        self._maker, self._router = RowMaker(self._config, store), Router(self._config)
        self._tables: dict[str, TableRows] = {}
        self._partitions: list[TopicPartition] = []

    def positions(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        self._partitions = list(partitions)
        for name in self._config.tables:
            self._table(name)
        made: dict[TopicPartition, int] = {}
        for table in self._tables.values():
            for partition, mark in table.offsets(partitions).items():
                made[partition] = max(made.get(partition, 0), mark.next_offset)
        return made

    def positions_after(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int] | None:
        """Nothing comes after the commit that is read; a table that states no offsets has records of unknown offsets."""
        if all(table.offsets(partitions) for table in self._tables.values()):
            return self.positions(partitions)
        return None

    def _table(self, name: str) -> TableRows:
        if name not in self._tables:
            table = self._store.load(name)
            if table is None:
                raise ConnectError(f"there is no table {name} in {self._store.where}")
            self._tables[name] = table
        return self._tables[name]

    def expected(self, batch: RecordBatch) -> Iterator[TargetRows]:
        refused: dict[int, Exception] = {}
        for part, first in self._maker.with_schema(batch, refused):
            for name, mask in self._router.routes(part):
                some = part if mask is None else part.filter(mask)
                numbers = pa.array(range(first, first + len(part)), pa.int64())
                table = self._table(name)
                some, numbers = self._there(table, some, numbers if mask is None else numbers.filter(mask))
                if len(some):
                    for made in self._maker.rows(table, some, numbers, refused):
                        yield from self._changes(table, made)
        self.refused += len(refused)

    def _there(self, table: TableRows, batch: RecordBatch, numbers: pa.Array) -> tuple[RecordBatch, pa.Array]:
        """The records that the table has, if it says which: those before its offset or that of the group."""
        assert batch.origin is not None and batch.offsets is not None
        marks = table.offsets(self._partitions)
        if not marks:
            return batch, numbers
        partition = TopicPartition(batch.origin.topic, batch.origin.partition)
        stated = marks[partition].next_offset if partition in marks else 0
        before = pc.less(batch.offsets, max(stated, self._committed.get(partition, 0)))
        return (batch, numbers) if not before.false_count else (batch.filter(before), numbers.filter(before))

    def _changes(self, table: TableRows, made: pa.Table) -> Iterator[TargetRows]:
        if not self._config.changes:
            for rows in made.to_batches():
                yield TargetRows(table.name, "append", rows)
            return
        last = last_of_each(made, table.id_columns)
        for operation, action in ((DELETE, "delete"), (UPSERT, "replace")):
            rows = last.filter(pc.equal(last.column(OPERATION), operation)).drop_columns([OPERATION])
            if len(rows):
                columns = rows if operation == UPSERT else rows.select(table.id_columns)
                yield TargetRows(table.name, action, _columns(columns), table.id_columns)  # type: ignore[arg-type]

    def stored(self) -> Iterator[TargetRows]:
        for name, table in self._tables.items():
            if self._config.changes and not table.id_columns:
                continue  # no record has shown what identifies a row
            for rows in table.read():
                aligned = _aligned(rows, table)
                for batch in aligned.to_batches(max_chunksize=_ROWS):
                    yield TargetRows(name, "append", batch, table.id_columns)

    def close(self) -> None:
        self._store.close()


def _aligned(rows: pa.Table, table: TableRows) -> pa.Table:
    """Rows as they were read, in the types that rows for the table have."""
    schema = arrow_schema(table.columns)
    there = set(rows.column_names)
    columns = [
        rows.column(field.name).cast(field.type) if field.name in there else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _columns(rows: pa.Table) -> dict[str, Sequence[Any]]:
    return {name: column.to_pylist() for name, column in zip(rows.column_names, rows.columns, strict=True)}
