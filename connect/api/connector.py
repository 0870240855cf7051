"""What a connector is: a class with typed keys that plans tasks, and a task class that moves batches.

A source that reads a directory of numbers, whole::

    @config
    class CounterConfig:
        topic: str = key("topic", doc="Topic to write to.")

    class CounterTask(SourceTask[CounterConfig]):
        def start(self) -> None:
            self.n = (self.context.offset({"counter": 1}) or {"n": 0})["n"]

        def poll(self) -> Sequence[RecordBatch]:
            n = self.n + 1
            row = Record(self.config.topic, n, Schema(SchemaType.INT64))
            batch = RecordBatch.from_records([row], source_partition={"counter": 1}, source_offset={"n": n})
            self.n = n
            return [batch]

    class CounterSource(SourceConnector[CounterConfig]):
        config_class, task_class = CounterConfig, CounterTask

Contract, for connectors and tasks alike
    Everything is synchronous. A connector, and each of its tasks, has one thread, from which all calls come: ``start``, the
    others one at a time, and ``stop`` as the last one. ``stop`` comes exactly once, whatever happened before, also after a
    ``start`` that failed in its first line. Wait on ``context.stopping`` instead of sleeping: once it is set, the call that
    runs should return soon.

    A task that does not end within its time (``task.shutdown.graceful.timeout.ms``) gets ``cancel`` from another thread,
    and nothing of it is committed any more. If it does not end then, its process is killed.

    An exception of any class, SystemExit too, fails the task, and its message becomes the trace that ``status`` shows. A
    RetriableConnectError from ``start``, ``open``, ``poll``, ``put``, ``flush`` or ``pre_commit`` lets the same call be made
    again after a pause. A DataError is the records' fault and goes where ``errors.*`` says.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from connect.data.batch import Record, RecordBatch, TopicPartition
from tidegate.kit.errors import Problem

if TYPE_CHECKING:
    import pyarrow as pa

    from broker.client import ClientConfig
    from registry.client import RegistryClient

__all__ = [
    "Acknowledged",
    "Connector",
    "ConnectorContext",
    "ErrantRecordReporter",
    "JobTask",
    "OffsetChanges",
    "OffsetRange",
    "SinkConnector",
    "SinkTask",
    "SinkTaskContext",
    "SourceConnector",
    "SourceTask",
    "SourceTaskContext",
    "Task",
    "TaskContext",
    "TransactionContext",
]

ConfigT = TypeVar("ConfigT")
OffsetChanges: TypeAlias = Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
"""Source partitions with the position each is to have, None where it is to be forgotten."""


class ConnectorContext(Protocol):
    """What the runtime gives a connector."""

    @property
    def name(self) -> str:
        """The connector's name."""
        ...

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The position committed for a source partition, None where there is none."""
        ...

    def request_task_reconfiguration(self) -> None:
        """Ask to be planned anew, since ``task_properties`` would answer differently now. From any thread."""
        ...


class TaskContext(Protocol):
    """What the runtime gives every task. All of it may be used from the task's own thread; ``stopping`` from any."""

    @property
    def connector(self) -> str: ...

    @property
    def task(self) -> int:
        """The task's number, from 0."""
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """The task's configuration as text, placeholders resolved; holds secrets."""
        ...

    @property
    def stopping(self) -> threading.Event:
        """Set when the task is to stop: wait on it instead of sleeping."""
        ...

    @property
    def kafka(self) -> ClientConfig:
        """How the worker reaches the log."""
        ...

    def registry(self) -> RegistryClient:
        """A client of the worker's schema registry; raises ConnectError where the worker has none."""
        ...

    def progress(self, done: int, total: int | None = None, *, unit: str = "rows", note: str = "") -> None:
        """Tell how far a long piece of work is; shown by the worker until the next call."""
        ...


class TransactionContext(Protocol):
    """Where a source's transactions end, with ``transaction.boundary=connector`` (KIP-618). From the task's own thread."""

    def commit(self, after: RecordBatch | None = None) -> None:
        """Commit after a batch that ``poll`` is about to return; without one after all that it returns, or returned last."""
        ...

    def abort(self, after: RecordBatch | None = None) -> None:
        """Likewise, but what the transaction holds is dropped. Its positions are committed all the same."""
        ...


class SourceTaskContext(TaskContext, Protocol):
    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The position committed for a source partition, None where there is none."""
        ...

    @property
    def transaction(self) -> TransactionContext | None:
        """None unless the task is to say where its transactions end."""
        ...


class ErrantRecordReporter(Protocol):
    def report(self, record: Record, error: Exception) -> None:
        """Give one record to ``errors.*`` (dead letter queue, log) and go on; raises where errors are not tolerated (KIP-610)."""
        ...


class SinkTaskContext(TaskContext, Protocol):
    @property
    def assignment(self) -> frozenset[TopicPartition]: ...

    @property
    def errant_records(self) -> ErrantRecordReporter: ...

    def rewind(self, positions: Mapping[TopicPartition, int]) -> None:
        """Deliver again from these offsets, before the next ``put``."""
        ...

    def pause(self, *partitions: TopicPartition) -> None: ...

    def resume(self, *partitions: TopicPartition) -> None: ...

    def request_commit(self) -> None:
        """Ask for a commit of offsets soon rather than at ``offset.flush.interval.ms``."""
        ...


class Task(ABC, Generic[ConfigT]):
    """The part of a connector that moves data. ``config`` is parsed from the properties that the connector planned."""

    def __init__(self, config: ConfigT, context: Any) -> None:
        self.config = config
        self.context = context
        self.resources = ExitStack()
        """What is to be released: ``start`` registers each thing here as soon as it is open. Closed, last in first out,
        before ``start`` is made again, and at the end."""

    def start(self) -> None:
        """Open what the task needs. Made again after a RetriableConnectError."""

    def stop(self) -> None:
        """Release everything; by default what is in ``resources``. The last call, from the task's thread, exactly once; of
        ``start`` nothing may have been done."""
        self.resources.close()

    def cancel(self) -> None:
        """The task did not end in time: have the call that runs end soon, by an error.

        The one call that comes from another thread, while any other runs. It may abort I/O (close a socket, cancel a
        statement) and nothing else: what the task holds stays as it is, and is released at its end. By default nothing.
        """


class Acknowledged(NamedTuple):
    """Rows of one batch that lie one behind the other in a partition of the log, the first of them at ``first_offset``.

    ``offsets`` is what the source gave as the ``offsets`` of these rows, whichever of them transforms left.
    """

    source_partition: Mapping[str, Any] | None
    offsets: pa.Array
    topic: str
    partition: int
    first_offset: int


class SourceTask(Task[ConfigT]):
    """Reads from an external system."""

    context: SourceTaskContext

    @abstractmethod
    def poll(self) -> Sequence[RecordBatch]:
        """The next batches, in order; an empty list when there is nothing now (wait a little first, on ``context.stopping``).

        Each batch says its ``source_partition`` and ``source_offset``: that position is committed once every row of
        the batch, and all before it, is acknowledged by the log or given to ``errors.*``. A batch without
        ``source_offset`` holds back the next position of its ``source_partition``, and one without a partition the next
        position of any: its rows are read again with those after it.

        A ``poll`` that raises has delivered nothing, and the next one delivers the same rows: let what it advances be
        advanced last, when nothing can fail any more.
        """

    def committed(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        """Positions (partition, offset) that are now durable: a source that acknowledges upstream does it here."""

    def acknowledged(self, rows: Sequence[Acknowledged]) -> None:
        """Where the log has put rows of batches that came with ``offsets``; with exactly-once once they are committed.

        Told between two polls, in the order in which the log answered, and before the ``committed`` that covers the rows.
        """


class SinkTask(Task[ConfigT]):
    """Writes to an external system."""

    context: SinkTaskContext

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """These partitions are now this task's. Made again after a RetriableConnectError, perhaps with others too; nothing
        of them is put before it succeeds."""

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """These are not any more: the last commit for them is over. Only those that were opened; not where the task has failed
        or was cancelled, when ``stop`` comes alone."""

    @abstractmethod
    def put(self, batches: Sequence[RecordBatch]) -> None:
        """Take the next batches, in offset order within each partition; may be called with none, so that time passes.

        May return before the data is safe: only what ``pre_commit`` returns is committed. After a RetriableConnectError the
        same batches are put again: hold none of them then, and keep what earlier calls took.
        """

    def flush(self) -> None:
        """Make everything put so far safe."""

    def pre_commit(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The positions that may be committed, given those delivered so far (each the next offset to read).

        By default flushes and returns all. A partition left out is not committed now. After a RetriableConnectError all that
        was put and not committed is put again, from the last commit on: let go of it, or know it again.
        """
        self.flush()
        return positions

    def finish(self) -> None:
        """Make everything put so far safe although more would have been waited for. Asked where no worker will go on
        (``connect.notebook``); by default ``flush``."""
        self.flush()

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        """What ``put`` of these would do, a line each in the target's words: object names, DDL, statements.

        Asked of a task that was not started. It may look at the target but changes nothing.
        """
        return ()


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Records of one topic-partition from ``start`` to before ``stop``; may hold fewer than their difference."""

    partition: TopicPartition
    start: int
    stop: int


class JobTask(Task[ConfigT]):
    """A sink whose work an outside engine does: it reads ranges of the log itself instead of being handed batches.

    The runtime plans ranges from the committed offsets of the sink's group to the ends of the partitions, writes them down
    with the id of the run, calls ``run`` and commits the ranges' ends when it returns. After a kill in between, the same
    run is repeated before anything else: the same id, the same ranges. A job must replace what it left.
    """

    context: TaskContext

    @abstractmethod
    def run(self, ranges: Sequence[OffsetRange], run_id: str) -> None:
        """Do the job and return when its result is safe; report ``context.progress`` on the way.

        ``run_id`` is 16 hexadecimal digits. A repeated run has fewer records only where topics or records of it were
        deleted meanwhile. Its ranges may include a topic that the connector has been taken off since.

        Raises when it failed; when ``context.stopping`` is set it should end the job and raise or return soon: a return
        then must mean that the job is done.
        """

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        """What a run over these records would do, as ``SinkTask.preview``."""
        return ()


class Connector(ABC, Generic[ConfigT]):
    """Plans the tasks of one configured connector."""

    config_class: ClassVar[type[Any]]
    """A ``@config`` class with the connector's own keys (the runtime adds those of every connector)."""
    task_class: ClassVar[type[Task[Any]]]
    task_config_class: ClassVar[type[Any] | None] = None
    """Where a task has keys that the connector computes; else ``config_class``."""

    def __init__(self, config: ConfigT, properties: Mapping[str, str], context: ConnectorContext) -> None:
        self.config = config
        self.properties = properties
        self.context = context

    @classmethod
    def check(cls, config: ConfigT) -> Iterable[Problem]:
        """Problems that only a look at the outside world shows (a wrong password, a missing table), by key.

        Called by ``validate`` when every key by itself is right; may open connections, within 10 s.
        """
        return ()

    def start(self) -> None:
        """Open what planning needs; may start a thread that watches for changes."""

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """The properties of each task, at most ``max_tasks`` of them. One task with the connector's own by default."""
        return [self.properties]

    def stop(self) -> None:
        """Release what ``start`` opened."""


class SourceConnector(Connector[ConfigT]):
    """A connector whose tasks are SourceTasks."""

    @classmethod
    def exactly_once(cls, config: ConfigT) -> bool | None:
        """Whether, so configured, each row is delivered once if every position is committed with its rows; None: unknown.

        Asked where ``exactly.once.support=required``. True needs a source whose rows come again, the same and in the same
        order, from a position, and tasks that never share a source partition.
        """
        return None

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        """Users want these positions (None: forget it) instead of the connector's own; the connector is stopped.

        Raises ConnectError that says what is wrong with them. True says that they will be in force; with False, the default,
        the user is told that a connector which keeps positions elsewhere too needs more than that (KIP-875).
        """
        return False

    @classmethod
    def defines_transactions(cls, config: ConfigT) -> bool:
        """Whether its tasks use ``context.transaction``. Asked where ``transaction.boundary=connector``."""
        return False


class SinkConnector(Connector[ConfigT]):
    """A connector whose tasks are SinkTasks or JobTasks. By default every task has the same properties, since the group
    protocol deals out the partitions."""

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        """As ``SourceConnector.alter_offsets``, for a sink that keeps offsets in its target too. Partitions are
        ``{"kafka_topic", "kafka_partition"}``, offsets ``{"kafka_offset"}``."""
        return False

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.properties] * (1 if issubclass(self.task_class, JobTask) else max_tasks)
