"""Rows that a task has put for a Delta table and not committed yet. They wait in memory for the commit.

A commit is the version of the table after the one whose offsets the task has seen, or is not made at all. The offsets
stand in it as versions of applications (``txn`` in Delta's protocol), one for each partition of a topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from connect.api import TopicPartition
from connectors.delta.client import delta_errors, single_try
from connectors.delta.schemas import changed_schema, columns_of, projected
from connectors.tables.columns import Column, arrow_schema
from connectors.tables.evolution import Change
from connectors.tables.offsets import Mark, offsets_of_text, offsets_text
from connectors.tables.rows import DELETE, OPERATION, UPSERT, TableRows, last_of_each

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from connectors.delta.config import DeltaSinkConfig

__all__ = ["NO_OFFSET", "DeltaRows", "app_id_of"]

NO_OFFSET: Final = -1
"""The version for an offset that a user has deleted: versions of applications stay for ever."""
_OFFSETS: Final = "tidegate.offsets"
_OPERATION: Final = "__tidegate_operation"
"""OPERATION in the source of a merge, which is SQL."""
_LOOK_BACK: Final = 50
"""Versions that are searched for the timestamp of the last record."""


def app_id_of(connector: str, partition: TopicPartition) -> str:
    return f"tidegate:{connector}:{partition.topic}:{partition.partition}"


class DeltaRows(TableRows):
    config: DeltaSinkConfig

    def __init__(self, table: DeltaTable, config: DeltaSinkConfig, connector: str, name: str) -> None:
        super().__init__(config, connector, name)
        self.table = table
        self._columns: list[Column] = columns_of(table.schema())
        self._marks: dict[tuple[TopicPartition, int], Mark] = {}
        """The timestamps of the records before offsets that the table has or may have."""
        self._look_back()

    @property
    def columns(self) -> Sequence[Column]:
        return self._columns

    @property
    def identifier_columns(self) -> Sequence[str]:
        return ()

    def projected(self, rows: pa.Table) -> pa.Table:
        return projected(rows, arrow_schema(self._columns))

    def refresh(self) -> None:
        with delta_errors("load", self.name):
            self.table.update_incremental()
        self._columns = columns_of(self.table.schema())

    def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Mark]:
        made = {}
        with delta_errors("load", self.name):
            for partition in partitions:
                version = self.table.transaction_version(app_id_of(self.connector, partition))
                if version is not None and version != NO_OFFSET:
                    made[partition] = self._marks.get((partition, version), Mark(version))
        return made

    def _look_back(self) -> None:
        """Find the timestamps of the last records in the newest versions."""
        with delta_errors("read the history of", self.name):
            for version in self.table.history(_LOOK_BACK):
                if (text := version.get(f"{_OFFSETS}.{self.connector}")) is not None:
                    self._remember(offsets_of_text(text))

    def _remember(self, marks: Mapping[TopicPartition, Mark]) -> None:
        for partition, mark in marks.items():
            self._marks[partition, mark.next_offset] = mark

    def learn(self, partitions: Iterable[TopicPartition]) -> None:
        self._look_back()
        super().learn(partitions)

    def forget(self) -> None:
        super().forget()
        self._marks = {(partition, mark.next_offset): mark for partition, mark in self.known.items()}

    def read(self) -> Iterator[pa.Table]:
        with delta_errors("read", self.name):
            for batch in self.table.to_pyarrow_dataset().to_batches():
                yield pa.Table.from_batches([batch])

    def landed(self, ends: Mapping[TopicPartition, Mark]) -> bool:
        """Offsets and rows are of one commit: where the offsets are those after the rows, the rows are there too."""
        stored = self.offsets(ends)
        new = any(self.known.get(partition) != mark for partition, mark in ends.items())
        return new and all(stored.get(partition) == mark for partition, mark in ends.items())

    def write(self, ends: Mapping[TopicPartition, Mark]) -> None:
        self._remember(ends)
        versions = {app_id_of(self.connector, partition): mark.next_offset for partition, mark in ends.items()}
        properties = single_try({f"{_OFFSETS}.{self.connector}": offsets_text(ends)}, versions)
        rows = pa.concat_tables(self.waiting)
        with delta_errors("write", self.name):
            if not self.config.changes:
                self._append(rows, properties)
                return
            before = self.table.version()
            self._merge(last_of_each(rows, self.id_columns), properties)
            if self.table.version() == before:  # nothing had those keys, so nothing was committed
                self._commit_nothing(properties)

    def _commit_nothing(self, properties: Any) -> None:
        """A version that has offsets only."""
        schema = self.table.schema()
        self.table.create_write_transaction([], mode="append", schema=schema, commit_properties=properties)
        self.table.update_incremental()

    def _append(self, rows: pa.Table, properties: Any, **more: Any) -> None:
        from deltalake import write_deltalake

        write_deltalake(self.table, rows, mode="append", commit_properties=properties, **more)

    def _merge(self, rows: pa.Table, properties: Any) -> None:
        rows = rows.rename_columns([_OPERATION if name == OPERATION else name for name in rows.column_names])
        same = " AND ".join(f"target.{_quoted(name)} = source.{_quoted(name)}" for name in self.id_columns)
        (
            self.table.merge(
                rows,
                predicate=same,
                source_alias="source",
                target_alias="target",
                commit_properties=properties,
            )
            .when_matched_delete(f"source.{_OPERATION} = {DELETE}")
            .when_matched_update_all(f"source.{_OPERATION} = {UPSERT}", except_cols=[_OPERATION])
            .when_not_matched_insert_all(f"source.{_OPERATION} = {UPSERT}", except_cols=[_OPERATION])
            .execute()
        )

    def change_schema(self, changes: Sequence[Change]) -> None:
        """Columns are added by an empty commit. Delta's files have to have a column's type, so for one that is widened
        the whole table is written anew.
        """
        schema = changed_schema(self._columns, changes)
        properties = single_try({}, {})
        with delta_errors("change the schema of", self.name):
            if any(change.widen is not None for change in changes):
                self._rewrite(schema, properties)
            else:
                self._append(schema.empty_table(), properties, schema_mode="merge")

    def _rewrite(self, schema: pa.Schema, properties: Any) -> None:
        from deltalake import write_deltalake

        read = self.table.to_pyarrow_dataset().to_batches()

        def batches() -> Iterator[pa.RecordBatch]:
            with ThreadPoolExecutor(1) as reader:  # delta-rs writes, and cannot be called from within to read
                ahead = reader.submit(next, read, None)
                while (batch := ahead.result()) is not None:
                    ahead = reader.submit(next, read, None)
                    yield from projected(pa.Table.from_batches([batch]), schema).to_batches()

        write_deltalake(
            self.table,
            pa.RecordBatchReader.from_batches(schema, batches()),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=self.table.metadata().partition_columns,
            commit_properties=properties,
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
