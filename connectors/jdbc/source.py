"""The JDBC source connector and its task."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connect.api import (
    ConnectError,
    ConnectorContext,
    Dataset,
    OffsetChanges,
    Problem,
    RecordBatch,
    RetriableConnectError,
    SourceConnector,
    SourceTask,
    TidegateError,
    get_logger,
    parse,
)
from connectors.jdbc.config import JdbcSourceConfig, JdbcSourceTaskConfig, MySqlSourceConfig, MySqlSourceTaskConfig
from connectors.jdbc.discovery import choose_tables, dialect_for, look
from connectors.jdbc.offsets import Position, find_position, require_position
from connectors.jdbc.queries import Source

if TYPE_CHECKING:
    from connectors.jdbc.drivers import RowReader
    from connectors.jdbc.reader import SourceReader
    from connectors.sql.tables import TableId

__all__ = ["JdbcSourceConnector", "JdbcSourceTask", "MySqlSourceConnector", "choose_tables"]

logger = get_logger(__name__)

_LOOK_S, _LAST_LOOK_S = 0.5, 2.0
_CHUNK_ROWS = 10_000
"""The fetch size of drivers that count rows."""


class JdbcSourceTask(SourceTask[JdbcSourceTaskConfig]):
    """Reads its tables in turn, one chunk each, and waits where there are no new rows."""

    def __init__(self, config: JdbcSourceTaskConfig, context: Any) -> None:
        super().__init__(config, context)
        self._readers: list[SourceReader] = []
        self._connection: RowReader | None = None
        self._closing = threading.Lock()
        """Held while a statement is cancelled: the connection must not be closed in that time."""
        self._turn = 0
        self._failures = 0
        self._ending = False

    def start(self) -> None:
        from connectors.jdbc.reader import SourceReader
        from connectors.sql.tables import parse_table_ids

        config = self.config
        self._database = config.database
        dialect = dialect_for(config)
        tables: list[TableId | None] = [None] if config.sql_query else [*parse_table_ids(config.tables)]
        self._readers = []
        for table in tables:
            source = Source.of(config, table)
            self._readers.append(SourceReader(config, self._database, dialect, source, self._committed(source)))
        self._cut_off_at_stop()
        self._connect()

    def _committed(self, source: Source) -> Position:
        if self.config.effective_mode == "bulk":
            return Position()
        if source.table is not None:
            return find_position(self.context.offset, source.table)
        return Position.from_offset(self.context.offset(source.partition) or {})

    def _connect(self) -> None:
        """Connect, with up to connection.attempts attempts; raises the error of the last one."""
        from connectors.jdbc.drivers import open_reader

        rows = min(self.config.batch_max_rows, _CHUNK_ROWS) * max(1, _CHUNK_ROWS // self.config.batch_max_rows)
        for attempt in range(self.config.attempts):
            try:
                self._connection = open_reader(self._database, isolation=self.config.isolation, chunk_rows=rows)
                return
            except RetriableConnectError as error:
                if attempt + 1 == self.config.attempts or self.context.stopping.wait(self.config.backoff_ms / 1000):
                    raise ConnectError(str(error)) from error
                logger.warning("connecting again", connector=self.context.connector, problem=str(error))

    def _cut_off_at_stop(self) -> None:
        """Start a thread that cancels the running statement when the task is to stop: it may run for hours, and its
        rows are read again from the position after the last batch that was delivered.
        """
        stopping, over = self.context.stopping, threading.Event()

        def watch() -> None:
            while not over.is_set():
                if stopping.wait(_LOOK_S) or self._ending:
                    self.cancel()  # repeatedly: another statement may start just after it
                    over.wait(_LOOK_S)

        watcher = threading.Thread(target=watch, name=f"statements of {self.context.connector}", daemon=True)
        watcher.start()
        self.resources.callback(watcher.join)
        self.resources.callback(over.set)

    def dataset(self, topic: str) -> Dataset | None:
        from connectors.sql.tables import parse_table_ids

        if self.config.sql_query:
            return self._database.dataset()
        tables = (
            table for table in parse_table_ids(self.config.tables) if Source.of(self.config, table).topic == topic
        )
        return next((self._database.dataset(*table) for table in tables), None)

    def poll(self) -> Sequence[RecordBatch]:
        deadline = time.monotonic() + self.config.poll_linger_ms / 1000
        while not self.context.stopping.is_set():
            reader = self._next_reader()
            due = reader.due if reader is not None else deadline
            if reader is None or due > time.monotonic():
                self.context.stopping.wait(max(min(due, deadline) - time.monotonic(), 0))
                if due >= deadline:
                    return []
                continue
            try:
                batches = self._read(reader)
            except TidegateError as error:
                if self.context.stopping.is_set():
                    return []
                if isinstance(error, RetriableConnectError):
                    self._after_failure(error)
                raise
            if batches or time.monotonic() >= deadline:
                return batches
        return []

    def _next_reader(self) -> SourceReader | None:
        """The reader with an open statement, as a connection runs one at a time; else the next reader that is due, else
        the one that is due first.
        """
        count = len(self._readers)
        for reader in self._readers:
            if reader.reading:
                return reader
        now = time.monotonic()
        for step in range(count):
            reader = self._readers[(self._turn + step) % count]
            if reader.due <= now:
                self._turn = (self._turn + step + 1) % count
                return reader
        return min(self._readers, key=lambda reader: reader.due, default=None)

    def _read(self, reader: SourceReader) -> list[RecordBatch]:
        if self._connection is None:
            self._connect()
        assert self._connection is not None
        batches = reader.next(self._connection)
        self._failures = 0
        return batches

    def _after_failure(self, error: RetriableConnectError) -> None:
        self._failures += 1
        self._disconnect()
        if 0 <= self.config.retry_attempts < self._failures:
            message = f"{error} ({self._failures} failures in a row, query.retry.attempts={self.config.retry_attempts})"
            raise ConnectError(message) from error

    def _disconnect(self) -> None:
        for reader in self._readers:
            reader.abandon()
        with self._closing:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def cancel(self) -> None:
        with self._closing:
            if self._connection is not None:
                self._connection.cancel()

    def stop(self) -> None:
        """After a failure rows may still be read ahead; that is cancelled too."""
        self._ending = True
        self.cancel()
        self._disconnect()
        super().stop()


class JdbcSourceConnector(SourceConnector[JdbcSourceConfig]):
    """Distributes tables over tasks, and checks for new and dropped tables regularly."""

    config_class = JdbcSourceConfig
    task_class = JdbcSourceTask
    task_config_class = JdbcSourceTaskConfig

    def __init__(self, config: JdbcSourceConfig, properties: Mapping[str, str], context: ConnectorContext) -> None:
        super().__init__(config, properties, context)
        self._stopping = threading.Event()
        self._monitor: threading.Thread | None = None
        self._tables: list[TableId] | None = None

    @classmethod
    def check(cls, config: JdbcSourceConfig) -> Iterable[Problem]:
        from connectors.jdbc.validation import problems

        return problems(config)

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        config: JdbcSourceConfig = parse(cls.config_class, properties)
        changed = any(offset is not None for _, offset in offsets)
        tables = look(config) if changed and not config.sql_query else []
        for partition, offset in offsets:
            require_position(partition, offset, tables)
        return True

    def start(self) -> None:
        if not self.config.sql_query:
            self._monitor = threading.Thread(target=self._watch, name=f"tables of {self.context.name}", daemon=True)
            self._monitor.start()

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        if self.config.sql_query:
            return [self.properties]
        if self._tables is None:
            self._tables = look(self.config)
        tables = self._tables
        if not tables:
            logger.warning("no table is there to be read", connector=self.context.name, **_filters(self.config))
        count = min(max_tasks, len(tables))
        shares = [tables[i * len(tables) // count : (i + 1) * len(tables) // count] for i in range(count)]
        return [{**self.properties, "tables": ",".join(table.quoted() for table in share)} for share in shares]

    def _watch(self) -> None:
        while not self._stopping.wait(self.config.table_poll_interval_ms / 1000):
            try:
                tables = look(self.config)
            except TidegateError as error:
                logger.warning("could not look for new tables", connector=self.context.name, problem=str(error))
                continue
            if self._tables is not None and tables != self._tables:
                self._tables = tables
                self.context.request_task_reconfiguration()

    def stop(self) -> None:
        self._stopping.set()
        if self._monitor is not None:
            self._monitor.join(_LAST_LOOK_S)


class MySqlSourceConnector(JdbcSourceConnector):
    """Confluent Cloud's MySqlSource."""

    config_class = MySqlSourceConfig
    task_config_class = MySqlSourceTaskConfig


def _filters(config: JdbcSourceConfig) -> dict[str, list[str]]:
    by_key = {"whitelist": config.whitelist, "blacklist": config.blacklist, "include": config.include}
    return {name: value for name, value in by_key.items() if value}
