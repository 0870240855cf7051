"""Offsets stored in the database in the same transaction as the rows: this makes a sink exactly-once.

There is one row per partition. A task that takes over a partition raises its ``epoch``. If another task is still
working with an older epoch, its next write finds that none of the rows belong to it any more, and rolls back. The consumer
group decides which of the two keeps the partition: until it has, either may claim it again and goes on where the other was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from connect.api import ConnectError, RecordBatch, RetriableConnectError, TopicPartition
from connectors.jdbc.writers.writer import Conflict, RowsRefused, Writer
from connectors.sql.tables import TableId
from connectors.sql.write_dialects import parse_table
from connectors.tables.offsets import Mark, Offsets

__all__ = ["NOTHING", "StoredOffsets", "TakenOver"]


NOTHING: Final = Mark(-1)
"""Where nothing has been written yet."""
_MOST_RECLAIMS: Final = 5
_RECLAIMS_S: Final = 60.0
"""A partition that is taken over more often in this time has two tasks that last, and no task that lost it to a rebalance."""


class TakenOver(RetriableConnectError):
    """Another task has claimed a partition; nothing was written. The group may have moved it, or may leave it here."""


class StoredOffsets:
    """One connector's offsets. ``marks`` are those of the partitions that were claimed; -1 where nothing was written."""

    def __init__(self, table: str, connector: str) -> None:
        self._table: TableId = parse_table(table)
        self._connector = connector
        self._epochs: dict[TopicPartition, int] = {}
        self._taken_over: set[TopicPartition] = set()
        self._reclaimed: dict[TopicPartition, list[float]] = {}
        """When each partition was claimed again lately, by ``time.monotonic``."""
        self.marks: dict[TopicPartition, Mark] = {}

    def recognize(self, batches: Iterable[RecordBatch], log_end: Callable[[TopicPartition], int]) -> None:
        """Look at the batches of a ``put`` that begin before what is written, as the first ones after ``claim`` do.

        Raises ConnectError where the last record that was written is another one now, or the log ends before it: the topic
        was made anew, and records of the new one would count as written.
        """
        for batch in batches:
            assert batch.origin is not None and batch.offsets is not None
            partition = TopicPartition(batch.origin.topic, batch.origin.partition)
            mark = self.marks.get(partition, NOTHING)
            last = mark.next_offset - 1
            if mark.timestamp_ms is None or batch.offsets[0].as_py() > last:
                continue
            ends_before = batch.offsets[-1].as_py() < last  # that record is still to come, or is gone
            if log_end(partition) <= last if ends_before else mark.is_contradicted_by(batch):
                raise ConnectError(
                    f"{partition} was written up to offset {last}, as {self._table.name} says, and is another log now: the topic was "
                    f"made anew. `tidegate connectors offsets reset {self._connector} --stop --execute` has this sink read its "
                    "topics from their start"
                )

    def _name(self, writer: Writer) -> str:
        return writer.dialect.table(self._table)

    def _where(self, writer: Writer, partition: TopicPartition) -> str:
        text = writer.dialect.text
        return (
            f"connector = {text(self._connector)} AND topic = {text(partition.topic)} AND part = {partition.partition}"
        )

    def prepare(self, writer: Writer) -> None:
        """Create the table if it does not exist, or give one of an earlier version the column that it lacks."""
        known = writer.columns(self._table)
        if known is None:
            statement = (
                f"CREATE TABLE IF NOT EXISTS {self._name(writer)} (connector VARCHAR(200) NOT NULL, "
                "topic VARCHAR(249) NOT NULL, part INTEGER NOT NULL, next_offset BIGINT NOT NULL, "
                "epoch BIGINT NOT NULL, last_timestamp BIGINT, PRIMARY KEY (connector, topic, part))"
            )
        elif all(column.name.lower() != "last_timestamp" for column in known):
            statement = f"ALTER TABLE {self._name(writer)} ADD COLUMN last_timestamp BIGINT"
        else:
            return
        writer.define(statement, self._table, known)
        writer.commit()

    def claim(self, writer: Writer, partitions: Iterable[TopicPartition]) -> None:
        """Take over these partitions, and read the offset at which each continues (-1: nothing has been written yet)."""
        self.prepare(writer)
        name = self._name(writer)
        for partition in sorted(partitions):
            where = self._where(writer, partition)
            if not writer.ask(f"SELECT epoch FROM {name} WHERE {where}"):
                text = writer.dialect.text
                row = f"{text(self._connector)}, {text(partition.topic)}, {partition.partition}, -1, 0"
                try:
                    writer.run(f"INSERT INTO {name} (connector, topic, part, next_offset, epoch) VALUES ({row})")
                except RowsRefused as error:
                    raise Conflict(str(error)) from error
            writer.run(f"UPDATE {name} SET epoch = epoch + 1 WHERE {where}")
            stored, epoch, stamp = writer.ask(f"SELECT next_offset, epoch, last_timestamp FROM {name} WHERE {where}")[0]
            self._epochs[partition], self.marks[partition] = int(epoch), _mark(stored, stamp)
        writer.commit()

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._epochs.pop(partition, None)
            self._taken_over.discard(partition)
            self.marks.pop(partition, None)

    def reclaim(self, writer: Writer) -> None:
        """Claim again what another task had taken over, and go on where it was.

        Raises ConnectError where the offset in the database is lower than this task's: somebody has set it back, and rows
        between the two would be left out. Likewise where it has been taken over again and again: a connector of this name in
        another cluster counts other offsets, which would have this one leave out records.
        """
        for partition in sorted(self._taken_over):
            before = self.marks[partition].next_offset
            now = time.monotonic()
            lately = self._reclaimed[partition] = [
                at for at in self._reclaimed.get(partition, ()) if now - at < _RECLAIMS_S
            ]
            if len(lately) >= _MOST_RECLAIMS:
                raise ConnectError(
                    f"another task takes over {partition} again and again: a connector {self._connector} of another cluster writes "
                    f"to {self._name(writer)} too. Stop one of the two, or give it another tidegate.offsets.table"
                )
            lately.append(now)
            self.claim(writer, [partition])
            after = self.marks[partition].next_offset
            if after < before:
                raise ConnectError(
                    f"the offset of {partition} in {self._name(writer)} was set back from {before} to {after} "
                    "while this task wrote: restart the task, which then begins there"
                )
            self._taken_over.discard(partition)

    def refresh(self, writer: Writer) -> None:
        """Read the partitions' offsets again, to find out whether an interrupted commit succeeded."""
        for partition in list(self.marks):
            rows = writer.ask(
                f"SELECT next_offset, epoch, last_timestamp FROM {self._name(writer)} WHERE {self._where(writer, partition)}"
            )
            self._check(partition, [(int(rows[0][1]))] if rows else [])
            self.marks[partition] = _mark(rows[0][0], rows[0][2])
        writer.rollback()

    def advance(self, writer: Writer, ends: Offsets) -> None:
        """Write each partition's offset in the open transaction; locks the rows until it ends.

        Must be the first statement of a transaction, so that a task whose partition was taken over writes no rows.
        """
        name = self._name(writer)
        for partition in sorted(ends):
            where = self._where(writer, partition)
            epochs = writer.ask(f"SELECT epoch FROM {name} WHERE {where}{writer.locking}")
            self._check(partition, [int(row[0]) for row in epochs])
            end = ends[partition]
            stamp = "NULL" if end.timestamp_ms is None else end.timestamp_ms
            writer.run(f"UPDATE {name} SET next_offset = {end.next_offset}, last_timestamp = {stamp} WHERE {where}")

    def _check(self, partition: TopicPartition, epochs: list[int]) -> None:
        if epochs != [self._epochs.get(partition)]:
            self._taken_over.add(partition)
            raise TakenOver(f"another task has taken over {partition}: this one's writes are given up (fenced)")

    def put(self, writer: Writer, changes: Iterable[tuple[TopicPartition, int | None]]) -> None:
        """Set offsets on behalf of a user; None deletes one. Running tasks are fenced."""
        self.prepare(writer)
        name = self._name(writer)
        for partition, offset in changes:
            where = self._where(writer, partition)
            next_offset = -1 if offset is None else offset
            writer.run(
                f"UPDATE {name} SET next_offset = {next_offset}, last_timestamp = NULL, epoch = epoch + 1 WHERE {where}"
            )
            if offset is not None and not writer.ask(f"SELECT epoch FROM {name} WHERE {where}"):
                text = writer.dialect.text
                row = f"{text(self._connector)}, {text(partition.topic)}, {partition.partition}, {offset}, 0"
                writer.run(f"INSERT INTO {name} (connector, topic, part, next_offset, epoch) VALUES ({row})")
        writer.commit()


def _mark(next_offset: Any, timestamp_ms: Any) -> Mark:
    return Mark(int(next_offset), None if timestamp_ms is None else int(timestamp_ms))
