"""A connector is a class with typed keys that plans tasks, and a task class that moves batches.

A complete source that counts::

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

from connect.api.contents import SinkContents
from connect.data.batch import Record, RecordBatch, TopicPartition
from connect.data.errors import ConnectError
from tidegate.kit.datasets import Dataset
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
    "JobTaskContext",
    "OffsetChanges",
    "OffsetRange",
    "SinkConnector",
    "SinkTask",
    "SinkTaskContext",
    "SourceConnector",
    "SourceJobTask",
    "SourceJobTaskContext",
    "SourceTask",
    "SourceTaskContext",
    "Task",
    "TaskContext",
    "TransactionContext",
    "Written",
]

ConfigT = TypeVar("ConfigT")
OffsetChanges: TypeAlias = Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
"""Source partitions with their new positions; None deletes a position."""


class ConnectorContext(Protocol):
    """The runtime's interface for connectors."""

    @property
    def name(self) -> str:
        """The connector's name."""
        ...

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The committed position of a source partition; None if there is none."""
        ...

    def request_task_reconfiguration(self) -> None:
        """Request a new plan, because ``task_properties`` would return other values now. Thread-safe."""
        ...


class TaskContext(Protocol):
    """The runtime's interface for all tasks. Use it on the task's own thread; ``stopping`` is thread-safe."""

    @property
    def connector(self) -> str: ...

    @property
    def task(self) -> int:
        """The task's number, from 0."""
        ...

    @property
    def properties(self) -> Mapping[str, str]:
        """The task's configuration as text, with placeholders resolved; it contains secrets."""
        ...

    @property
    def stopping(self) -> threading.Event:
        """Set when the task must stop: wait on it instead of sleeping."""
        ...

    @property
    def kafka(self) -> ClientConfig:
        """The client configuration of the worker's log. A job task's has the isolation level of the sink's consumer."""
        ...

    def registry(self) -> RegistryClient:
        """A client for the worker's schema registry. Raises ConnectError if the worker has none."""
        ...

    @property
    def registry_properties(self) -> Mapping[str, str]:
        """The settings of a client of the worker's schema registry, for an engine that makes its own; empty if the worker has none.

        They may contain a password.
        """
        ...

    def progress(
        self,
        done: int,
        total: int | None = None,
        *,
        unit: str = "rows",
        note: str = "",
        seconds_left: float | None = None,
        parts: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Report the progress of long work; the worker shows it until the next call.

        ``parts`` are what the work consists of, such as the tables of a snapshot: JSON objects with ``name``, ``state``
        and, where known, ``done``, ``total``, ``percent`` and ``seconds_left``.
        """
        ...


class TransactionContext(Protocol):
    """Ends a source's transactions, with ``transaction.boundary=connector`` (KIP-618).

    Use it on the task's own thread.
    """

    def commit(self, after: RecordBatch | None = None) -> None:
        """Commit after a batch that ``poll`` is about to return; without a batch, after everything it returns or
        returned last.
        """
        ...

    def abort(self, after: RecordBatch | None = None) -> None:
        """Like ``commit``, but drops the transaction's records. Its positions are committed anyway."""
        ...


class SourceTaskContext(TaskContext, Protocol):
    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The committed position of a source partition; None if there is none."""
        ...

    @property
    def transaction(self) -> TransactionContext | None:
        """None unless the task has to end its transactions itself."""
        ...

    def count_skipped(self, rows: int, *, dead_letters: int = 0) -> None:
        """Count rows of the external system that the task leaves out, as those that ``errors.tolerance=all`` leaves out, and
        how many of them it returns from ``poll`` for a dead letter topic.
        """
        ...


class SourceJobTaskContext(TaskContext, Protocol):
    def create_topic(self, topic: str) -> int:
        """Create a topic as ``topic.creation.*`` says where there is none; returns the number of its partitions."""
        ...


class ErrantRecordReporter(Protocol):
    def report(self, record: Record, error: Exception) -> None:
        """Pass one record to ``errors.*`` (dead letter queue, log) and continue; raises if errors are not tolerated
        (KIP-610).
        """
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
        """Request a commit of offsets soon, before ``offset.flush.interval.ms``."""
        ...


class JobTaskContext(TaskContext, Protocol):
    @property
    def tolerates_errors(self) -> bool:
        """Whether ``errors.tolerance`` is ``all``."""
        ...

    def leave_out(self, record: RecordBatch, error: Exception) -> None:
        """Pass a record that the engine could not decode to ``errors.*`` (dead letter queue, log); raises if errors are not tolerated.

        ``record`` is one row with keys and values as bytes, and with ``origin`` and ``offsets``. The records of a run are durable
        before the run's ends are committed.
        """
        ...

    @property
    def interrupted(self) -> threading.Event:
        """Set while the task must stop or pause: ``follow`` should return soon, at an end of its engine's work if it can."""
        ...

    def commit(self, ends: Mapping[TopicPartition, int]) -> None:
        """From ``follow``: commit the offsets up to which everything is durable, each the next offset to read.

        Records that were left out before are durable when it returns, also where ``ends`` is empty. Raises once the task was cancelled.
        """
        ...


class Task(ABC, Generic[ConfigT]):
    """The part of a connector that moves data. ``config`` is parsed from the properties planned by the connector."""

    def __init__(self, config: ConfigT, context: Any) -> None:
        self.config = config
        self.context = context
        self.resources = ExitStack()
        """Resources to release.

        ``start`` registers each one here as soon as it is open. They are closed, last in first out, before ``start`` is
        retried, and at the end.
        """

    def start(self) -> None:
        """Open everything the task needs. Retried after a RetriableConnectError."""

    def stop(self) -> None:
        """Release everything; by default ``resources``.

        This is the last call, on the task's thread, exactly once. ``start`` may have done nothing.
        """
        self.resources.close()

    def dataset(self, topic: str) -> Dataset | None:
        """Where the records of a topic come from (the topic before the transforms) or go to (after them), for the lineage.

        Called on the task's thread once for each topic, after ``start``. It opens no connection. None: it is not known.
        """
        del topic
        return None

    def cancel(self) -> None:
        """The task did not end in time: make the running call end soon, with an error.

        This is the only call from another thread, while any other call runs. It may only abort I/O (close a socket,
        cancel a statement): the task's resources stay unchanged and are released at its end. By default it does
        nothing.
        """


class Acknowledged(NamedTuple):
    """Rows of one batch with consecutive offsets in one partition, starting at ``first_offset``.

    ``offsets`` are the source's ``offsets`` of those rows that the transforms kept.
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
        """The next batches, in order; an empty list if there is nothing now (wait a little first, on
        ``context.stopping``).

        Each batch has a ``source_partition`` and ``source_offset``: that position is committed once every row of the
        batch, and of all earlier ones, was acknowledged by the log or passed to ``errors.*``. A batch without
        ``source_offset`` delays the next position of its ``source_partition``, and a batch without a partition delays
        the next position of every partition: its rows are read again together with later ones.

        If ``poll`` raises, nothing was delivered, and the next one must deliver the same rows: advance state last, when
        nothing can fail any more.
        """

    def committed(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        """These positions (partition, offset) are durable now. A source that acknowledges upstream does it here."""

    def acknowledged(self, rows: Sequence[Acknowledged]) -> None:
        """The log's offsets for rows of batches with ``offsets``; with exactly-once, after their commit.

        Called between two polls, in the order of the log's answers, and before the ``committed`` that covers the rows.
        """


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a run of a SourceJobTask. ``position`` is the source's position after it, ``topics`` are those written to.

    With a ``receipt`` the records are in transactions that are open, and it says which; without one they are visible.
    """

    position: Mapping[str, Any]
    topics: Sequence[str]
    records: int
    receipt: str = ""
    more: bool = False
    """Whether the source has more already: the next run begins at once."""


class SourceJobTask(Task[ConfigT]):
    """A source whose work an external engine does: it writes to the log itself instead of returning batches. No transform or converter
    of the connector sees its records.

    The runtime calls ``write`` by ``job.interval.ms`` or ``job.schedule``. A run that gives a receipt has two halves: the receipt is
    committed beside the position before the run, then ``publish`` makes the records visible, and the position after the run is
    committed. After a kill before the receipt's commit the run's records stay invisible, and ``write`` is called for them
    again; after it, the next task begins with ``publish``. A run without a receipt is repeated where the kill was before the
    commit of its position, so its records are there at least once.
    """

    context: SourceJobTaskContext

    @abstractmethod
    def source_partition(self) -> Mapping[str, Any]:
        """The partition that the positions belong to: all runs of a configuration have one."""

    @abstractmethod
    def write(self, position: Mapping[str, Any] | None, run_id: str) -> Written | None:
        """Write what comes after a position (None: from the beginning) and return when it is durable; None if there is nothing new.

        It must end, or fence, what an unfinished earlier ``write`` has left. Report ``context.progress`` meanwhile. It raises on
        failure. When ``context.stopping`` is set it should end the job and soon raise.
        """

    def publish(self, receipt: str) -> bool:
        """Make the records of a receipt visible; it may have happened already. Called before any ``write`` while a receipt is committed.

        False: they were dropped, all or a part of them, as transactions that were open for too long are; they are
        written again.
        """
        return True

    def preview(self, rows: int) -> Iterable[str]:
        """A description of what a first run would write, with so many rows, one line each.

        Called on a task that was not started. It must change nothing.
        """
        return ()


class SinkTask(Task[ConfigT]):
    """Writes to an external system."""

    context: SinkTaskContext

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """These partitions are assigned to this task.

        Retried after a RetriableConnectError, perhaps with more partitions; none of their records is put before it
        succeeds.
        """

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """These partitions are no longer assigned; the last commit for them is over.

        Called only for opened partitions, and not if the task has failed or was cancelled, when only ``stop`` is
        called.
        """

    @abstractmethod
    def put(self, batches: Sequence[RecordBatch]) -> None:
        """Accept the next batches, in offset order within each partition. It is also called without batches, so that
        the task can act on time.

        It may return before the data is durable: only positions that ``pre_commit`` returns are committed. After a
        RetriableConnectError the same batches are put again: keep none of them then, but keep those of earlier calls.
        """

    def flush(self) -> None:
        """Make everything put so far durable in the target."""

    def pre_commit(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The positions that may be committed. ``positions`` are those delivered so far (each the next offset to read).

        By default flushes and returns all. An omitted partition is not committed now. After a RetriableConnectError all
        uncommitted records are put again: discard them, or recognise them.
        """
        self.flush()
        return positions

    def finish(self) -> None:
        """Make everything put so far durable, even if the task would wait for more.

        Called if no worker will continue (``connect.notebook``); by default ``flush``.
        """
        self.flush()

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        """A description of what ``put`` would do, one line each in the target's terms: object names, DDL, statements.

        Called on a task that was not started. It may read the target but must change nothing.
        """
        return ()

    def contents(self, committed: Mapping[TopicPartition, int]) -> SinkContents:
        """Both sides of the sink, to compare them. ``committed`` are the group's offsets: all before is in the target.

        Called on a task that was not started. Raises ConnectError for a target that cannot be read back.
        """
        del committed
        raise ConnectError(f"{type(self).__name__.removesuffix('Task')} does not read its target back")


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Records of one topic-partition from ``start`` to before ``stop``; there may be fewer than the difference."""

    partition: TopicPartition
    start: int
    stop: int


class JobTask(Task[ConfigT]):
    """A sink whose work an external engine does: it reads ranges of the log itself instead of receiving batches.

    The runtime plans ranges from the committed offsets of the sink's group to the ends of the partitions, stores them
    with the id of the run, calls ``run`` and commits the ranges' ends when it returns. After a kill in between, the
    same run is repeated first: same id, same ranges. A job must replace its earlier output.
    """

    context: JobTaskContext

    @abstractmethod
    def run(self, ranges: Sequence[OffsetRange], run_id: str) -> None:
        """Do the job and return when its result is durable. Report ``context.progress`` meanwhile.

        ``run_id`` is 16 hexadecimal digits. A repeated run has fewer records only if topics or records were deleted
        meanwhile. Its ranges may include a topic that was removed from the connector since.

        It raises on failure. When ``context.stopping`` is set it should end the job and soon raise or return; a return
        must mean that the job is done.
        """

    @property
    def follows(self) -> bool:
        """Whether the engine plans its own ranges, as a stream with a checkpoint does. ``follow`` is called instead of ``run`` then."""
        return False

    @property
    def endless(self) -> bool:
        """Whether ``follow`` goes on until it is interrupted. Otherwise it is called when it is due and there are new records."""
        return False

    def follow(self, topics: Sequence[str]) -> None:
        """Read these topics, which exist, from where the engine knows that it was: to their ends, or until ``context.interrupted`` is set.

        It tells by ``context.commit`` how far it is. After a kill it begins again with what the engine has not finished.
        It raises on failure, and may raise when it was interrupted.
        """
        raise NotImplementedError

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        """A description of what a run over these records would do, as in ``SinkTask.preview``. Keys and values are bytes, as they lie
        in the log: the records' ``origin`` and ``offsets`` say what to read.
        """
        return ()


class Connector(ABC, Generic[ConfigT]):
    """Plans the tasks of one configured connector."""

    config_class: ClassVar[type[Any]]
    """A ``@config`` class with the connector's own keys (the runtime adds those common to all connectors)."""
    task_class: ClassVar[type[Task[Any]]]
    task_config_class: ClassVar[type[Any] | None] = None
    """The config class of tasks if the connector computes keys for them; otherwise ``config_class``."""

    def __init__(self, config: ConfigT, properties: Mapping[str, str], context: ConnectorContext) -> None:
        self.config = config
        self.properties = properties
        self.context = context

    @classmethod
    def check(cls, config: ConfigT) -> Iterable[Problem]:
        """Problems that only external systems reveal (a wrong password, a missing table), by key.

        Called by ``validate`` if every key is valid by itself. It may open connections, within 10 s.
        """
        return ()

    def start(self) -> None:
        """Open everything planning needs. It may start a thread that watches for changes."""

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """The properties of each task, at most ``max_tasks``.

        By default one task with the connector's own properties.
        """
        return [self.properties]

    def stop(self) -> None:
        """Release everything that ``start`` opened."""


class SourceConnector(Connector[ConfigT]):
    """A connector whose tasks are SourceTasks, or whose only task is a SourceJobTask."""

    @classmethod
    def exactly_once(cls, config: ConfigT) -> bool | None:
        """Whether, with this configuration, each row is delivered once if every position is committed with its rows;
        None if unknown.

        Called for ``exactly.once.support=required``. True requires that a source delivers the same rows in the same
        order again from a position, and that tasks never share a source partition.
        """
        return None

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        """A user sets these positions (None deletes) for a stopped connector.

        Raises ConnectError if they are invalid. Return True if they will be effective. With False, the default, the
        user is warned that a connector that also stores positions elsewhere needs more than that (KIP-875).
        """
        return False

    @classmethod
    def preview_properties(cls, properties: Mapping[str, str]) -> Mapping[str, str]:
        """The configuration for a preview, which must leave nothing behind in the source.

        A source that makes something there in order to follow changes (a replication slot, triggers) only reads rows
        for a preview, or removes what it makes. Placeholders are resolved.
        """
        return properties

    @classmethod
    def defines_transactions(cls, config: ConfigT) -> bool:
        """Whether its tasks use ``context.transaction``. Called for ``transaction.boundary=connector``."""
        return False


class SinkConnector(Connector[ConfigT]):
    """A connector whose tasks are SinkTasks or JobTasks.

    By default every task has the same properties, because the group protocol distributes the partitions.
    """

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        """Like ``SourceConnector.alter_offsets``, for a sink that also stores offsets in its target.

        Partitions are ``{"kafka_topic", "kafka_partition"}``, offsets ``{"kafka_offset"}``.
        """
        return False

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.properties] * (1 if issubclass(self.task_class, JobTask) else max_tasks)
