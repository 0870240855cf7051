"""Tables as the sink sees them: rows that were put and are not committed yet, and how far a table has each partition."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import Field, RecordBatch, Schema, TopicPartition
from connectors.tables.columns import Column, arrow_schema
from connectors.tables.config import TableSinkConfig
from connectors.tables.errors import CommitConflict, OffsetsMoved
from connectors.tables.evolution import Change
from connectors.tables.offsets import Mark

__all__ = ["DELETE", "OPERATION", "OPERATION_FIELD", "UPSERT", "TableRows", "TableStore", "last_of_each"]

OPERATION: Final = "\0operation"
OPERATION_FIELD: Final = pa.field(OPERATION, pa.int8(), nullable=False)
UPSERT: Final = 0
DELETE: Final = 1
_TRIES: Final = 20


class TableRows(ABC):
    """One table, the rows for it, and how far it has the partitions of the connector."""

    def __init__(self, config: TableSinkConfig, connector: str, name: str) -> None:
        self.name, self.config, self.connector = name, config, connector
        self.id_columns: list[str] = []
        """The columns that identify a row, with changes by key, once they are known."""
        self.known: dict[TopicPartition, Mark] = {}
        """The offsets in the table as this task last saw them."""
        self.waiting: list[pa.Table] = []
        """Rows in memory."""
        self.waiting_bytes = 0
        self.taken_bytes = 0
        """The bytes of rows since the last commit."""

    @property
    @abstractmethod
    def columns(self) -> Sequence[Column]:
        """The table's columns as this task last saw them."""

    @property
    @abstractmethod
    def identifier_columns(self) -> Sequence[str]:
        """The columns that the table itself says identify a row."""

    @property
    def pending(self) -> bool:
        """Whether there are rows that are not committed."""
        return bool(self.waiting)

    def add(self, rows: pa.Table) -> None:
        """Keep rows with the table's columns; for changes by key with a column OPERATION."""
        rows = self.as_now(rows)
        self.waiting.append(rows)
        self.waiting_bytes += rows.nbytes
        self.taken_bytes += rows.nbytes

    def spill(self) -> None:
        """Take rows out of memory, where the format can do so before a commit."""
        return

    def reload(self) -> None:
        """See the table's newest schema, and bring the rows in memory to it."""
        self.refresh()
        self.waiting = [self.as_now(rows) for rows in self.waiting]

    def as_now(self, rows: pa.Table) -> pa.Table:
        """Rows in an older schema of the table, in the present one."""
        schema = arrow_schema(self.columns)
        changes = OPERATION in rows.column_names
        if list(rows.schema)[: len(rows.schema) - changes] == list(schema):
            return rows
        if not changes:
            return self.projected(rows)
        plain = self.projected(rows.drop_columns([OPERATION]))
        return plain.append_column(rows.schema.field(OPERATION), rows.column(OPERATION))

    @abstractmethod
    def projected(self, rows: pa.Table) -> pa.Table:
        """Rows of an older schema in the table's columns."""

    @abstractmethod
    def change_schema(self, changes: Sequence[Change]) -> None:
        """Change the table. Raises CommitConflict where another commit came first, and DataError for a type that the
        format does not have.
        """

    @abstractmethod
    def refresh(self) -> None:
        """See the table as it is now."""

    @abstractmethod
    def offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Mark]:
        """The offsets of partitions in the table as it was seen last."""

    @abstractmethod
    def read(self) -> Iterator[pa.Table]:
        """The rows of the table as it was seen last. Columns are found by name; newer ones may be missing."""

    @abstractmethod
    def landed(self, ends: Mapping[TopicPartition, Mark]) -> bool:
        """Whether a commit of the rows whose answer was lost is in the table as it was seen last."""

    @abstractmethod
    def write(self, ends: Mapping[TopicPartition, Mark]) -> None:
        """Commit all rows on top of the table as it was seen last, with these offsets; or raise CommitConflict."""

    def commit(self, ends: Mapping[TopicPartition, Mark], stopping: Callable[[float], bool]) -> None:
        """Commit all rows with the offsets after them.

        Raises OffsetsMoved where another task has moved the offsets, and RetriableConnectError where the same commit may
        succeed later.
        """
        self.spill()
        for attempt in range(_TRIES):
            self.reload()
            if self.landed(ends):
                break
            try:
                self._write(ends)
                break
            except CommitConflict:
                if attempt + 1 == _TRIES or stopping(random.uniform(0.01, 0.1 * (attempt + 1))):
                    raise
        self.known = self.offsets(self.known.keys() | ends.keys())
        self.forget()

    def _write(self, ends: Mapping[TopicPartition, Mark]) -> None:
        stored = self.offsets(ends)
        for partition in ends:
            if stored.get(partition) != self.known.get(partition):
                raise OffsetsMoved(
                    f"table {self.name} has {partition} up to {stored.get(partition)}, and this task knows "
                    f"{self.known.get(partition)}: another task has written it, or the table was rolled back"
                )
        # A table may be ahead of what is delivered again: its offsets never go back.
        later = {
            partition: mark
            for partition, mark in ends.items()
            if partition not in stored or mark.next_offset > stored[partition].next_offset
        }
        self.write(later)

    def discard(self) -> None:
        """Forget all rows that are not committed: they are delivered again."""
        self.forget()

    def forget(self) -> None:
        self.waiting = []
        self.waiting_bytes = self.taken_bytes = 0

    def learn(self, partitions: Iterable[TopicPartition]) -> None:
        """Read the offsets of partitions of which no rows wait."""
        self.reload()
        partitions = list(partitions)
        stored = self.offsets(partitions)
        self.known = {name: mark for name, mark in self.known.items() if name not in partitions} | stored


class TableStore(ABC):
    """Where the tables of a configuration are."""

    where: str
    """In words, for messages."""

    @abstractmethod
    def load(self, name: str) -> TableRows | None:
        """A table as it is now; None if there is none."""

    @abstractmethod
    def create(self, name: str, fields: Sequence[Field], batch: RecordBatch) -> TableRows:
        """Create a table for records with these fields. Another task may have been faster: then the table is its."""

    @abstractmethod
    def planned(self, name: str, fields: Sequence[Field], batch: RecordBatch) -> str:
        """A line that tells which table ``create`` makes."""

    @abstractmethod
    def kind_of(self, schema: Schema, name: str) -> str:
        """The type that a column for a field gets, in the format's words."""

    def name_problem(self, name: str) -> str | None:
        """Why a name that a record has cannot be that of a table."""
        del name
        return None

    def close(self) -> None:
        """Release connections."""


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
