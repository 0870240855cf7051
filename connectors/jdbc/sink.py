"""The JDBC sink connectors and their task."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.api import (
    MAX_BATCH_BYTES,
    ConnectError,
    Dataset,
    OffsetChanges,
    Origin,
    Problem,
    RecordBatch,
    RetriableConnectError,
    SinkConnector,
    SinkContents,
    SinkTask,
    TidegateError,
    TopicPartition,
    get_logger,
)
from connectors.jdbc.debezium_sink_config import DebeziumSinkConfig
from connectors.jdbc.sink_config import JdbcSinkConfig, MySqlSinkConfig
from connectors.jdbc.sink_settings import SinkConfig
from connectors.sql.errors import login_fault
from connectors.sql.write_dialects import write_dialect

if TYPE_CHECKING:
    from connectors.jdbc.sink_offsets import StoredOffsets
    from connectors.jdbc.writers.writer import Writer
    from connectors.sql.urls import Database

__all__ = ["DebeziumSinkConnector", "JdbcSinkConnector", "JdbcSinkTask", "MySqlSinkConnector"]

logger = get_logger(__name__)


def _connected(config: SinkConfig, database: Database | None = None) -> Writer:
    """The writer of a configuration, or of another database."""
    from connectors.jdbc.writers import open_writer

    settings, database = config.settings, database or config.database
    dialect = write_dialect(database.kind, quoting=settings.quoting, hold_lock=settings.hold_lock)
    return open_writer(database, dialect, timezone=settings.timezone, batch_rows=settings.batch_size)


def _without_new_file(database: Database) -> Database:
    """A database to look at that a look does not create: an empty one in memory for a file that could be created."""
    if database.kind not in ("sqlite", "duckdb") or database.name == ":memory:":
        return database
    file = Path(database.name)
    can_be_created = not file.exists() and os.access(file.parent, os.W_OK)
    return replace(database, name=":memory:") if can_be_created else database


_LINGER_S: Final = 0.2
"""The longest time that rows wait for more while more keep coming: a transaction with few rows costs almost as much as
one with many.
"""


class JdbcSinkTask(SinkTask[Any]):
    """Writes all records since the last transaction in one new transaction, once they reach ``MAX_BATCH_BYTES`` or no
    more arrive immediately.
    """

    def __init__(self, config: Any, context: Any) -> None:
        super().__init__(config, context)
        self._writer: Writer | None = None
        self._closing = threading.Lock()
        """Held while a statement is cancelled: the connection must not be closed in that time."""
        self._unwritten: list[RecordBatch] = []
        """Batches that were put and are not written yet."""
        self._wrote = 0.0
        self._offsets: StoredOffsets | None = None

    def start(self) -> None:
        from connectors.jdbc.sink_rows import RowShaper

        self._settings = self.config.settings
        self._shaper = RowShaper(self._settings)
        if self._settings.offsets_table:
            from connectors.jdbc.sink_offsets import StoredOffsets

            self._offsets = StoredOffsets(self._settings.offsets_table, self.context.connector)
        self._patiently(lambda writer: writer.rollback())

    def dataset(self, topic: str) -> Dataset | None:
        dataset: Dataset = self.config.database.dataset(*self._shaper.table_of(topic, None))
        return dataset

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        if self._offsets is not None:
            offsets = self._offsets
            self._patiently(lambda writer: offsets.claim(writer, partitions))
            marks = {partition: offsets.marks[partition] for partition in partitions}
            self.context.rewind({partition: mark.start for partition, mark in marks.items() if mark.next_offset >= 0})

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        gone = {Origin(*partition) for partition in partitions}
        self._unwritten = [batch for batch in self._unwritten if batch.origin not in gone]
        if self._offsets is not None:
            self._offsets.release(partitions)

    def put(self, batches: Sequence[RecordBatch]) -> None:
        filled = [batch for batch in batches if len(batch)]
        pending = [*self._unwritten, *filled]
        waited = time.monotonic() - self._wrote >= _LINGER_S
        if not filled or waited or sum(batch.nbytes for batch in pending) >= MAX_BATCH_BYTES:
            self._write_all(pending)  # records come again if this fails, so they are not kept before it succeeds
        else:
            self._unwritten = pending

    def flush(self) -> None:
        pending, self._unwritten = self._unwritten, []  # records since the last commit come again if this fails
        self._write_all(pending)

    def _write_all(self, batches: Sequence[RecordBatch]) -> None:
        if batches:
            self._patiently(lambda writer: self._write(writer, batches))
            self._unwritten, self._wrote = [], time.monotonic()

    def _write(self, writer: Writer, batches: Sequence[RecordBatch]) -> None:
        from connectors.jdbc.sink_writing import write

        if self._offsets is not None:
            self._offsets.reclaim(writer)
        report = self.context.errant_records.report
        write(writer, self._shaper, self._settings, batches, self._offsets, report, self._log_end)

    def _log_end(self, partition: TopicPartition) -> int:
        from broker.client import TopicPartition as LogPartition
        from broker.client.blocking import Admin

        try:
            with Admin(self.context.kafka) as admin:
                (end,) = admin.end_offsets([LogPartition(*partition)]).values()
        except TidegateError as error:
            raise RetriableConnectError(f"the end of {partition}: {error}") from error
        return end

    def _patiently(self, act: Any) -> None:
        """Do something with the connection, retried up to max.retries times after errors that a retry may solve.

        Raises TakenOver at once: the worker repeats the call, but first hears from the group whether the partition is still here.
        """
        from connectors.jdbc.sink_offsets import TakenOver
        from connectors.jdbc.writers.writer import Conflict

        attempt = 0
        while True:
            try:
                writer, fresh = (self._writer, False) if self._writer is not None else (self._connect(), True)
                if fresh and self._offsets is not None and self._offsets.marks:
                    self._offsets.refresh(writer)
                act(writer)
                return
            except TakenOver:
                self._after_failure(lost=False)
                raise
            except RetriableConnectError as error:
                attempt += 1
                self._after_failure(lost=not isinstance(error, Conflict))
                if attempt > self._settings.max_retries:
                    raise ConnectError(f"{error} (tried {attempt} times)") from error
                logger.warning("trying again", connector=self.context.connector, problem=str(error), attempt=attempt)
                short = isinstance(error, Conflict)
                pause_ms = random.uniform(10, 100 * attempt) if short else self._settings.retry_backoff_ms
                if self.context.stopping.wait(pause_ms / 1000):
                    raise
            except BaseException:
                self._after_failure(lost=False)
                raise

    def _connect(self) -> Writer:
        for attempt in range(self._settings.connect_attempts):
            try:
                self._writer = _connected(self.config)
                break
            except RetriableConnectError:
                last = attempt + 1 == self._settings.connect_attempts
                if last or self.context.stopping.wait(self._settings.connect_backoff_ms / 1000):
                    raise
        assert self._writer is not None
        return self._writer

    def _after_failure(self, *, lost: bool) -> None:
        """Roll the transaction back, or close the connection where it is lost."""
        if self._writer is None:
            return
        try:
            if not lost:
                self._writer.rollback()
                return
        except TidegateError:
            pass
        self._disconnect()

    def _disconnect(self) -> None:
        with self._closing:
            writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        from connectors.jdbc.sink_rows import RowShaper
        from connectors.jdbc.sink_writing import described

        with closing(_connected(self.config)) as writer:
            settings = self.config.settings
            return described(writer, RowShaper(settings), settings, [batch for batch in batches if len(batch)])

    def contents(self, committed: Mapping[TopicPartition, int]) -> SinkContents:
        from connectors.jdbc.contents import JdbcContents

        return JdbcContents(self.config.settings, lambda: _connected(self.config), self.context.connector, committed)

    def cancel(self) -> None:
        with self._closing:
            if self._writer is not None:
                self._writer.cancel()

    def stop(self) -> None:
        self._disconnect()
        super().stop()


class _SinkConnector(SinkConnector[Any]):
    task_class = JdbcSinkTask
    creation: ClassVar[str] = "auto.create"
    """The key that controls whether missing tables are created, with its value for doing so."""
    creating: ClassVar[str] = "true"

    @classmethod
    def check(cls, config: SinkConfig) -> Iterable[Problem]:
        """Connect once, so that a wrong password or database name is reported before a task fails."""
        try:
            with closing(_connected(config, _without_new_file(config.database))) as writer:
                yield from cls._table_problems(config, writer)
                return
        except TidegateError as error:
            known = error.__cause__ is not None and login_fault(error.__cause__) == "password"
            problem = Problem("connection.password" if known else "connection.url", str(error))
        yield problem

    @classmethod
    def _table_problems(cls, config: SinkConfig, writer: Writer) -> Iterable[Problem]:
        """Topics whose table is missing and may not be created.

        With transformations the topic names are unknown, so nothing is checked.
        """
        from connectors.jdbc.sink_rows import RowShaper

        settings = config.settings
        if settings.auto_create or config.transforms or "${source." in settings.table_format:
            return
        shaper = RowShaper(settings)
        for topic in config.topics:
            table = shaper.table_of(topic, None)
            if writer.columns(table) is None:
                yield Problem(
                    cls.creation,
                    f"there is no table {table} in {config.database} for topic {topic!r}: create it, correct the key that names "
                    f"tables, or set {cls.creation}={cls.creating} to have it made",
                )

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        from connect.api import parse
        from connectors.jdbc.sink_offsets import StoredOffsets

        config: SinkConfig = parse(cls.config_class, properties)
        table = config.settings.offsets_table
        if table:
            changes = [
                (
                    TopicPartition(str(partition["kafka_topic"]), int(partition["kafka_partition"])),
                    None if offset is None else int(offset["kafka_offset"]),
                )
                for partition, offset in offsets
            ]
            with closing(_connected(config)) as writer:
                StoredOffsets(table, properties.get("name", "")).put(writer, changes)
        return True


class JdbcSinkConnector(_SinkConnector):
    """Confluent's and Aiven's JDBC sink."""

    config_class = JdbcSinkConfig


class MySqlSinkConnector(_SinkConnector):
    """Confluent Cloud's MySqlSink."""

    config_class = MySqlSinkConfig


class DebeziumSinkConnector(_SinkConnector):
    """Debezium's JDBC sink."""

    config_class = DebeziumSinkConfig
    creation, creating = "schema.evolution", "basic"
