"""Rows that a task has put for a table and not committed yet."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import RetriableConnectError, TopicPartition, get_logger
from connectors.iceberg.client import CommitConflict, Tables, iceberg_errors
from connectors.iceberg.columns import arrow_schema
from connectors.iceberg.commits import FileChanges, Outcome, commit_files, ensure_branch
from connectors.iceberg.copy_on_write import Rewriter
from connectors.iceberg.data_files import DataFileWriter, projected
from connectors.iceberg.offsets import Mark, offsets_property, offsets_text, stored_offsets

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from connectors.iceberg.config import IcebergSinkConfig

__all__ = ["DELETE", "OPERATION", "UPSERT", "OffsetsMoved", "TableRows"]

logger = get_logger(__name__)

OPERATION: Final = "\0operation"
UPSERT: Final = 0
DELETE: Final = 1
_TRIES: Final = 20


class OffsetsMoved(RetriableConnectError):
    """The table has other offsets than this task knows: rows have to be delivered anew from there."""


class TableRows:
    """One table, the rows for it, and how far it has the partitions of the connector.

    Appended rows are written to data files as they grow; rows that change others by key wait in memory for the commit.
    """

    def __init__(self, tables: Tables, table: Table, config: IcebergSinkConfig, connector: str) -> None:
        name = ".".join(table.name())
        self.name, self._tables, self.table = name, tables, table
        self._config, self._connector = config, connector
        self.branch = config.settings(name).branch
        self.known = stored_offsets(table, self.branch, connector)
        """The offsets in the table as this task last saw them."""
        self._rows: list[pa.Table] = []
        self._writers: list[DataFileWriter] = []
        """One for each schema that the table had since the last commit."""
        self._rewriter: Rewriter | None = None
        self._rows_file: DataFileWriter | None = None
        self._outcome = Outcome()
        self.waiting_bytes = 0
        """The bytes of rows in memory."""
        self.taken_bytes = 0
        """The bytes of rows since the last commit."""

    @property
    def pending(self) -> bool:
        return bool(self._rows or self._writers)

    def add(self, rows: pa.Table) -> None:
        """Keep rows with the table's ``arrow_schema``; for changes by key with a column OPERATION."""
        rows = self.as_now(rows)
        self._rows.append(rows)
        self.waiting_bytes += rows.nbytes
        self.taken_bytes += rows.nbytes

    def spill(self) -> None:
        """Write the rows in memory to files, unless they are changes by key."""
        if not self._rows or self._config.changes:
            return
        if not self._writers or self._writers[-1].schema.schema_id != self.table.schema().schema_id:
            self._writers.append(DataFileWriter(self.table, self._config.write_props))
        self._writers[-1].write(pa.concat_tables(self._rows).combine_chunks())
        self._rows, self.waiting_bytes = [], 0

    def reload(self) -> None:
        """See the table's newest schema, and bring the rows in memory to it."""
        with iceberg_errors("load", self.name):
            self.table = self.table.refresh()
        self._rows = [self.as_now(rows) for rows in self._rows]

    def as_now(self, rows: pa.Table) -> pa.Table:
        """Rows in an older schema of the table, in the present one."""
        fields = self.table.schema().fields
        changes = OPERATION in rows.column_names
        if list(rows.schema)[: len(rows.schema) - changes] == list(arrow_schema(fields)):
            return rows
        if not changes:
            return projected(rows, fields)
        plain = projected(rows.drop_columns([OPERATION]), fields)
        return plain.append_column(rows.schema.field(OPERATION), rows.column(OPERATION))

    def commit(self, ends: Mapping[TopicPartition, Mark], stopping: Callable[[float], bool]) -> None:
        """Commit all rows with the offsets after them.

        Raises OffsetsMoved where another task has moved the offsets, and RetriableConnectError where the same commit may
        succeed later.
        """
        self.spill()
        for attempt in range(_TRIES):
            with iceberg_errors("load", self.name):
                self.table = self.table.refresh()
            if self._outcome.landed(self.table):
                break
            try:
                self._try(ends)
                break
            except CommitConflict:
                if attempt + 1 == _TRIES or stopping(random.uniform(0.01, 0.1 * (attempt + 1))):
                    raise
        self.known = stored_offsets(self.table, self.branch, self._connector)
        self._forget()

    def _try(self, ends: Mapping[TopicPartition, Mark]) -> None:
        ensure_branch(self.table, self.branch)
        stored = stored_offsets(self.table, self.branch, self._connector)
        for partition in ends:
            if stored.get(partition) != self.known.get(partition):
                raise OffsetsMoved(
                    f"table {self.name} has {partition} up to {stored.get(partition)}, and this task knows "
                    f"{self.known.get(partition)}: another task has written it, or the table was rolled back"
                )
        spec = self.table.spec().spec_id
        if any(writer is not None and writer.spec.spec_id != spec for writer in (*self._writers, self._rows_file)):
            raise OffsetsMoved(f"table {self.name} has another partitioning: its files are written anew")
        # A table may be ahead of what is delivered again: its offsets never go back.
        for partition, mark in ends.items():
            if partition not in stored or mark.next_offset > stored[partition].next_offset:
                stored[partition] = mark
        text = offsets_text(stored)
        properties = {offsets_property(self._connector): text}
        commit_files(self.table, self.branch, self._file_changes(), properties, self._outcome)

    def _file_changes(self) -> FileChanges:
        if not self._config.changes:
            return FileChanges([file for writer in self._writers for file in writer.finish()])
        if self._rewriter is None:
            rows = last_of_each(pa.concat_tables(self._rows), self.id_columns)
            self._rewriter = Rewriter(rows.select(self.id_columns), self._config.write_props)
            upserts = rows.filter(pc.equal(rows.column(OPERATION), UPSERT)).drop_columns([OPERATION])
            self._rows_file = DataFileWriter(self.table, self._config.write_props)
            if len(upserts):
                self._rows_file.write(projected(upserts, self.table.schema().fields))
            self._rows_file.finish()
        assert self._rows_file is not None
        removed, added = self._rewriter.changes(self.table, self.branch)
        return FileChanges([*added, *self._rows_file.finish()], removed)

    id_columns: list[str]
    """The columns that identify a row, with changes by key."""

    def discard(self) -> None:
        """Forget all rows that are not committed: they are delivered again."""
        delete = not self._outcome.uncertain
        for writer in (*self._writers, self._rows_file, self._rewriter):
            if writer is not None:
                writer.discard(delete=delete)
        self._forget()

    def stored(self) -> dict[TopicPartition, Mark]:
        """The offsets in the table now."""
        fresh = self._tables.load(self.name)
        return stored_offsets(fresh, self.branch, self._connector) if fresh is not None else {}

    def learn(self, partitions: Iterable[TopicPartition]) -> None:
        """Read the offsets of partitions that were just assigned, and of which no rows wait."""
        stored = self.stored()
        for partition in partitions:
            self.known.pop(partition, None)
            if partition in stored:
                self.known[partition] = stored[partition]

    def _forget(self) -> None:
        self._rows, self._writers, self._rewriter, self._rows_file = [], [], None, None
        self._outcome = Outcome()
        self.waiting_bytes = self.taken_bytes = 0


def last_of_each(rows: pa.Table, keys: list[str]) -> pa.Table:
    """The last row of every key, in their order."""
    numbers = pa.array(range(len(rows)), pa.int64())
    last = (
        pa.table([*(rows.column(name) for name in keys), numbers], names=[*keys, "\0row"])
        .group_by(keys)
        .aggregate([("\0row", "max")])
        .column("\0row_max")
        .combine_chunks()
    )
    return rows if len(last) == len(rows) else rows.take(last.take(pc.sort_indices(last)))
