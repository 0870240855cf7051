"""The parts that the source tasks of all databases share: first the snapshot, then the log, with signals, notifications
and heartbeats in between.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

import pyarrow as pa

from connect.api import ConnectError, Dataset, RecordBatch, RetriableConnectError, SourceTask, get_logger
from connectors.debezium.accepted import given_without_effect
from connectors.debezium.config import CaptureConfig
from connectors.debezium.envelope import topic_name
from connectors.debezium.events import ContextHeaders, heartbeat
from connectors.debezium.incremental.snapshots import Chunks, IncrementalSnapshots
from connectors.debezium.notifications import Notifications, SnapshotReport
from connectors.debezium.signals.channels import channels_of
from connectors.debezium.snapshot_progress import SnapshotProgress, without_tables

__all__ = ["CaptureTask", "Changes", "snapshot_pending"]

logger = get_logger(__name__)
CaptureConfigT = TypeVar("CaptureConfigT", bound=CaptureConfig)
_TELL_S: Final = 1.0
"""The time between two reports of a snapshot's progress."""


def snapshot_pending(offset: Mapping[str, Any]) -> bool:
    """Whether an offset, ours or any version of the original's, was written before the initial snapshot was complete.

    A snapshot that a signal asked for (BLOCKING) is not restarted.
    """
    done = offset.get("last_snapshot_record") or offset.get("snapshot_completed")
    return bool(offset.get("snapshot")) and str(offset["snapshot"]).upper() != "BLOCKING" and not done


class Changes(NamedTuple):
    """The next part of the log, and the state after it, which becomes the task's once the rows are handed over."""

    batches: Sequence[RecordBatch]
    offset: dict[str, Any]
    """The offset after the rows; where there are no rows, the one before."""
    current_offset: dict[str, Any]
    """The offset up to which the log was read; it moves even where nothing was captured."""
    position: int
    """That offset as a number that grows with the log."""


class CaptureTask(SourceTask[CaptureConfigT]):
    """Reads one database's log.

    Subclasses implement the abstract methods, which ``poll`` and ``stop`` call. After a failure ``_close_connections``
    runs, and the next poll starts again from ``_offset``: nothing may change ``_offset`` before the poll's rows are
    handed over.
    """

    connector: ClassVar[str]
    """The connector's name in source blocks and headers."""

    def __init__(self, config: CaptureConfigT, context: Any) -> None:
        super().__init__(config, context)
        self._partition = {"server": config.prefix}
        self._headers = ContextHeaders(config.prefix, self.connector, context.task, enabled=config.extended_headers)
        self._offset: dict[str, Any] = {}
        self._snapshot: Any = None
        self._pieces: Iterator[list[RecordBatch]] | None = None
        self._notifications = Notifications(config)
        self._report: SnapshotReport | None = None
        self._progress: SnapshotProgress | None = None
        self._names: dict[str, str] = {}
        """The full name of each table of the snapshot, by its topic."""
        self._next_told = 0.0
        self._signals: IncrementalSnapshots | None = None
        self._first, self._finished, self._skipped = True, False, False
        self._next_heartbeat = 0.0
        self._failures = 0
        """The number of consecutive polls that failed because the database did not answer."""
        self._closing = threading.Lock()
        """Held while connections are closed, and while ``cancel`` uses them."""

    def dataset(self, topic: str) -> Dataset | None:
        config, start = self.config, f"{self.config.prefix}{self.config.delimiter}"
        table = topic.removeprefix(start)
        if not topic.startswith(start) or table == config.transaction_topic:
            return None
        return self._dataset(table.replace(config.delimiter, "."))

    # methods that a database implements

    @abstractmethod
    def _dataset(self, table: str) -> Dataset:
        """The dataset of a table, whose name is as in topics."""

    @abstractmethod
    def _errors(self) -> AbstractContextManager[None]:
        """A context that converts the driver's errors into ours."""

    @abstractmethod
    def _chunks(self) -> Chunks:
        """The reader for incremental snapshots. Called once."""

    @abstractmethod
    def _follows(self) -> bool:
        """Whether the log is being followed."""

    @abstractmethod
    def _begin(self) -> Sequence[RecordBatch]:
        """Connect, and then either begin a snapshot (``_take_tables``), or follow the log from ``_offset``, or set
        ``_finished``.
        """

    @abstractmethod
    def _end_snapshot(self) -> None:
        """Called when all of the snapshot was handed out: set ``_offset`` to the position after it."""

    @abstractmethod
    def _changes(self) -> Changes:
        """The next part of the log, waiting up to ``poll.interval.ms``.

        Changes no state that outlives ``_close_connections``.
        """

    @abstractmethod
    def _current_offset(self) -> dict[str, Any]:
        """The offset up to which the log was read."""

    def _handed_over(self, changes: Changes) -> None:
        """Called when this poll returns the rows of these changes and can no longer fail."""
        self._offset = changes.offset

    @abstractmethod
    def _run(self, statement: str) -> None:
        """Run an SQL statement from the configuration."""

    @abstractmethod
    def _close_connections(self) -> None:
        """Close everything that is open except the snapshot. Raises nothing."""

    @abstractmethod
    def _abort(self) -> None:
        """Called from another thread: make a running database call end with an error. Raises nothing."""

    # the shared part

    def start(self) -> None:
        config = self.config
        if unused := given_without_effect(type(config), self.context.properties):
            logger.info("these keys have no effect here", connector=self.context.connector, keys=unused)
        table = config.signal_collection if "source" in config.signal_channels else None
        self._signals = IncrementalSnapshots(
            self._chunks(),
            channels_of(config, self.context.kafka),
            self._notifications,
            partition=self._partition,
            signal_topic=topic_name(config.prefix, *table.split(".", 1), delimiter=config.delimiter) if table else None,
            chunk_size=config.chunk_size,
            channel_interval_s=config.signal_interval_ms / 1000,
        )
        self.resources.callback(self._signals.close_channels)
        self._offset = self._signals.resume(self.context.offset(self._partition) or {})
        self._next_heartbeat = time.monotonic() + config.heartbeat_interval_ms / 1000

    @property
    def at_rest(self) -> bool:
        """Whether there is nothing more to read: the snapshot of ``snapshot.mode=initial_only`` has ended."""
        return self._finished

    @property
    def snapshot_topics(self) -> dict[str, str]:
        """The full names of the tables that the last snapshot read, by their topics; also of those without rows."""
        read = frozenset[str]() if self._progress is None else self._progress.tables
        return {topic: name for topic, name in self._names.items() if name in read}

    def poll(self) -> Sequence[RecordBatch]:
        if self._finished:
            self.context.stopping.wait(self.config.poll_interval_ms / 1000)
            return []
        told = self._notifications.mark()
        try:
            with self._errors():
                batches = self._next()
        except BaseException as error:
            self._notifications.forget_since(told)
            self._disconnect()
            if isinstance(error, RetriableConnectError):
                self._tried(error)
            raise
        self._failures = 0
        return batches

    def _tried(self, error: RetriableConnectError) -> None:
        """Wait before the next attempt; raises ConnectError where no attempts are left."""
        self._failures += 1
        most = self.config.max_retries
        if 0 <= most < self._failures:
            message = f"{error} (failed {self._failures} times in a row, and errors.max.retries={most})"
            raise ConnectError(message) from error
        self.context.stopping.wait((self.config.retry_wait_ms or 0) / 1000)

    def _tell_missing(self, patterns: Sequence[str]) -> None:
        """Log the configured tables that do not exist; they may be created later, so this is no error."""
        if patterns:
            logger.warning(
                "no table has a name of table.include.list", connector=self.context.connector, names=patterns
            )

    def _guard(self, said: str | None, *, fail: bool) -> None:
        """Report a problem with the number of captured tables, if there is one."""
        if said is not None and fail:
            raise ConnectError(said)
        if said is not None:
            logger.warning(said, connector=self.context.connector)

    def _next(self) -> Sequence[RecordBatch]:
        signals = self._signals
        assert signals is not None
        if self._pieces is not None:
            return self._next_piece(self._pieces)
        if not self._follows():
            begun = self._begin()
            if self._report is None and not self._skipped:
                self._skipped = True
                self._notifications.tell(SnapshotReport.AGGREGATE, "SKIPPED")
            return [*begun, *self._notifications.taken()]
        if (blocked := signals.blocked(self._current_offset())) is not None:
            return blocked
        changes = self._with_heartbeat(self._changes())
        made = signals.streamed(changes.batches, changes.current_offset, changes.position, time.monotonic())
        self._handed_over(changes)
        return [*made, *self._notifications.taken()]

    def _take_tables(
        self,
        pieces: Iterator[list[RecordBatch]],
        tables: Mapping[str, str],
        progress: SnapshotProgress,
        *,
        in_order: bool,
    ) -> None:
        """Hand out the batches of a snapshot, then close ``_snapshot``. ``tables`` maps topics to full table names."""
        self._pieces = pieces
        self._progress, self._names = progress, dict(tables)
        self._report = SnapshotReport(self._notifications, tables, in_order=in_order)
        logger.info(
            "a snapshot goes on" if progress.resumed else "a snapshot begins",
            connector=self.context.connector,
            tables=len(tables),
            position=without_tables(self._offset),
        )
        self._tell_progress(progress)

    def _tell_progress(self, progress: SnapshotProgress) -> None:
        self._next_told = time.monotonic() + _TELL_S
        self.context.progress(**progress.told())

    def _next_piece(self, pieces: Iterator[list[RecordBatch]]) -> Sequence[RecordBatch]:
        progress = self._progress
        assert self._report is not None and progress is not None
        batches = next(pieces, None)
        if batches is not None:
            self._report.delivered(batches)
            for batch in batches:
                if batch.topic in self._names:
                    progress.delivered(self._names[batch.topic], len(batch))
            if batches and batches[-1].source_offset is not None:
                self._offset = dict(batches[-1].source_offset)
            if time.monotonic() >= self._next_told:
                self._tell_progress(progress)
            return [*self._notifications.taken(), *batches]
        self._pieces = None
        self._snapshot.close()
        self._snapshot = None
        if self.context.stopping.is_set():
            return []
        self._report.completed()
        self._tell_progress(progress)
        self._finished = self.config.snapshot_mode.lower() == "initial_only"
        logger.info("the snapshot is complete", connector=self.context.connector)
        self._end_snapshot()
        if not self._finished:
            self.context.stopping.wait(self.config.streaming_delay_ms / 1000)
        moved = [] if progress.rows and not progress.resumed else [self._moved(self._offset)]
        return [*self._notifications.taken(), *moved]

    def _moved(self, offset: Mapping[str, Any]) -> RecordBatch:
        """A batch without records that only moves the offset: the snapshot may have had no row that does."""
        none = pa.array([], pa.string())
        return RecordBatch("snapshot", none, None, source_partition=self._partition, source_offset=dict(offset))

    def _with_heartbeat(self, changes: Changes) -> Changes:
        config = self.config
        interval = config.heartbeat_interval_ms / 1000
        if not interval or time.monotonic() < self._next_heartbeat:
            return changes
        self._next_heartbeat = time.monotonic() + interval
        if config.heartbeat_query:
            self._run(config.heartbeat_query)
        topic = f"{config.heartbeat_prefix}{config.delimiter}{config.prefix}"
        beat = heartbeat(topic, config.prefix, self._partition, changes.current_offset)
        return changes._replace(batches=[*changes.batches, beat], offset=changes.current_offset)

    def _disconnect(self) -> None:
        with self._closing:
            snapshot, self._snapshot = self._snapshot, None
            self._close_connections()
        if snapshot is not None:
            snapshot.close()
        if self._pieces is not None and self._report is not None:
            self._report.aborted()
        self._pieces = None
        if self._signals is not None:
            self._signals.close()

    def committed(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        if self._signals is not None:
            self._signals.committed([offset for _, offset in offsets])

    def cancel(self) -> None:
        with self._closing:
            self._abort()

    def stop(self) -> None:
        self._disconnect()
        super().stop()
        self._clean_up()

    def _clean_up(self) -> None:
        """Remove objects from the database that must not remain after the task has stopped."""
