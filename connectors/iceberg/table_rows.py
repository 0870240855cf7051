"""Rows that a task has put for an Iceberg table and not committed yet.

Appended rows are written to data files as they grow; rows that change others by key wait in memory for the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import TopicPartition
from connectors.iceberg.client import iceberg_errors
from connectors.iceberg.columns import columns_of, iceberg_type
from connectors.iceberg.commits import FileChanges, Outcome, commit_files, ensure_branch
from connectors.iceberg.copy_on_write import Rewriter
from connectors.iceberg.data_files import DataFileWriter, projected
from connectors.iceberg.offsets import offsets_property, stored_offsets
from connectors.iceberg.schemas import type_of
from connectors.tables.columns import Column
from connectors.tables.errors import OffsetsMoved
from connectors.tables.evolution import Change
from connectors.tables.offsets import Mark, offsets_text
from connectors.tables.rows import OPERATION, UPSERT, TableRows, last_of_each

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from connectors.iceberg.config import IcebergSinkConfig

__all__ = ["IcebergRows"]


class IcebergRows(TableRows):
    config: IcebergSinkConfig

    def __init__(self, table: Table, config: IcebergSinkConfig, connector: str) -> None:
        super().__init__(config, connector, ".".join(table.name()))
        self.table = table
        self.branch = config.settings(self.name).branch
        self._columns: tuple[int, Sequence[Column]] | None = None
        """Of the schema with this id."""
        self._writers: list[DataFileWriter] = []
        """One for each schema that the table had since the last commit."""
        self._rewriter: Rewriter | None = None
        self._rows_file: DataFileWriter | None = None
        self._outcome = Outcome()

    @property
    def columns(self) -> Sequence[Column]:
        schema = self.table.schema()
        if self._columns is None or self._columns[0] != schema.schema_id:
            self._columns = schema.schema_id, columns_of(schema)
        return self._columns[1]

    @property
    def identifier_columns(self) -> Sequence[str]:
        return sorted(self.table.schema().identifier_field_names())

    @property
    def pending(self) -> bool:
        return bool(self.waiting or self._writers)

    def spill(self) -> None:
        """Changes by key stay in memory."""
        if not self.waiting or self.config.changes:
            return
        if not self._writers or self._writers[-1].schema.schema_id != self.table.schema().schema_id:
            self._writers.append(DataFileWriter(self.table, self.config.write_props))
        self._writers[-1].write(pa.concat_tables(self.waiting))
        self.waiting, self.waiting_bytes = [], 0

    def projected(self, rows: pa.Table) -> pa.Table:
        return projected(rows, self.table.schema().fields)

    def change_schema(self, changes: Sequence[Change]) -> None:
        any_case = self.config.case_insensitive
        with (
            iceberg_errors("change the schema of", self.name),
            self.table.update_schema(case_sensitive=not any_case) as update,
        ):
            for change in changes:
                if change.add is not None:
                    made = type_of(change.add, ".".join(change.path))
                    update.add_column(change.path, made, doc=change.add.doc)
                elif change.widen is not None:
                    update.update_column(change.path, field_type=iceberg_type(change.widen))
                else:
                    update.make_column_optional(change.path)

    def refresh(self) -> None:
        with iceberg_errors("load", self.name):
            self.table = self.table.refresh()

    def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Mark]:
        stored = stored_offsets(self.table, self.branch, self.connector)
        return {partition: stored[partition] for partition in partitions if partition in stored}

    def read(self) -> Iterator[pa.Table]:
        snapshot = self.table.metadata.snapshot_by_name(self.branch) or self.table.current_snapshot()
        if snapshot is None:
            return
        with iceberg_errors("read", self.name):
            for batch in self.table.scan(snapshot_id=snapshot.snapshot_id).to_arrow_batch_reader():
                yield pa.Table.from_batches([batch])

    def landed(self, ends: Mapping[TopicPartition, Mark]) -> bool:
        del ends
        return self._outcome.landed(self.table)

    def write(self, ends: Mapping[TopicPartition, Mark]) -> None:
        ensure_branch(self.table, self.branch)
        spec = self.table.spec().spec_id
        if any(writer is not None and writer.spec.spec_id != spec for writer in (*self._writers, self._rows_file)):
            raise OffsetsMoved(f"table {self.name} has another partitioning: its files are written anew")
        text = offsets_text(stored_offsets(self.table, self.branch, self.connector) | dict(ends))
        properties = {offsets_property(self.connector): text}
        commit_files(self.table, self.branch, self._file_changes(), properties, self._outcome)

    def _file_changes(self) -> FileChanges:
        if not self.config.changes:
            return FileChanges([file for writer in self._writers for file in writer.finish()])
        if self._rewriter is None:
            rows = last_of_each(pa.concat_tables(self.waiting), self.id_columns)
            self._rewriter = Rewriter(rows.select(self.id_columns), self.config.write_props)
            upserts = rows.filter(pc.equal(rows.column(OPERATION), UPSERT)).drop_columns([OPERATION])
            self._rows_file = DataFileWriter(self.table, self.config.write_props)
            if len(upserts):
                self._rows_file.write(self.projected(upserts))
            self._rows_file.finish()
        assert self._rows_file is not None
        removed, added = self._rewriter.changes(self.table, self.branch)
        return FileChanges([*added, *self._rows_file.finish()], removed)

    def discard(self) -> None:
        delete = not self._outcome.uncertain
        for writer in (*self._writers, self._rows_file, self._rewriter):
            if writer is not None:
                writer.discard(delete=delete)
        self.forget()

    def forget(self) -> None:
        super().forget()
        self._writers, self._rewriter, self._rows_file = [], None, None
        self._outcome = Outcome()
