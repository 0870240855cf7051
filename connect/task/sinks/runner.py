"""The work of a sink task: fetch, convert, put, commit; and hand partitions over when the group rebalances."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Protocol

from connect.api import Origin, RecordBatch, RetriableConnectError, SinkTask, TopicPartition
from connect.task.context import RunningSinkContext
from connect.task.control import TaskControl
from connect.task.error_policy import ErrorPolicy
from connect.task.measures import TaskMeasures
from connect.task.sinks.dead_letters import DeadLetters
from connect.task.sinks.measures import SinkMeasures
from connect.task.sinks.pipeline import SinkPipeline
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.client import FetchedBatches

__all__ = ["SinkConsumer", "SinkRunner"]

logger = get_logger(__name__)

_WAIT_MS: Final = 500
_POLL_MS: Final = 1
_MAX_FETCH_BYTES: Final = 8 * 1024 * 1024
_RETRY_S: Final = 0.5
_REOPEN_S: Final = 1.0
_LOOK_S: Final = 5.0
"""Between two looks for topics that do not exist; a source that starts with the sink has created its topics by then."""


class SinkConsumer(Protocol):
    """The consumer of a sink task, from its thread (``connect.task.sinks.consumer``)."""

    events: queue.Queue[tuple[str, Any, Future[None] | None]]
    """Changes of the group's share of partitions: ("revoked" | "assigned", partitions, to be settled when done), and
    ("fetched", future, None) when a fetch has ended."""

    @property
    def missing_topics(self) -> frozenset[str]:
        """Topics that the task is to read and that do not exist (yet). May be asked from any thread."""

    def start_fetch(self, max_wait_ms: int, max_bytes: int) -> Future[list[FetchedBatches]]: ...
    def seek(self, partition: TopicPartition, offset: int) -> None: ...
    def pause(self, *partitions: TopicPartition) -> None: ...
    def resume(self, *partitions: TopicPartition) -> None: ...
    def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...


class SinkRunner:
    """The Runner of a sink's task (``connect.task.lifecycle``)."""

    def __init__(
        self,
        task: SinkTask[Any],
        context: RunningSinkContext,
        control: TaskControl,
        *,
        pipeline: SinkPipeline,
        policy: ErrorPolicy,
        consumer: SinkConsumer,
        dead_letters: DeadLetters | None,
        flush_interval_ms: int,
        on_topic: Callable[[str], None],
        close: Callable[[], None],
    ) -> None:
        self._task, self._context, self._control = task, context, control
        self._pipeline, self._policy, self._consumer = pipeline, policy, consumer
        self._dead_letters, self._flush_interval_s = dead_letters, flush_interval_ms / 1000
        self._on_topic, self.close = on_topic, close
        self._delivered: dict[TopicPartition, int] = {}
        self._first: dict[TopicPartition, int] = {}
        """Where the deliveries of a partition began: what is gone back to before the first commit."""
        self._committed: dict[TopicPartition, int] = {}
        self._undelivered: list[RecordBatch] | None = None
        self._arrived: list[FetchedBatches] = []
        self._undelivered_positions: dict[TopicPartition, int] = {}
        self._fetching: Future[list[FetchedBatches]] | None = None
        self._next_commit = time.monotonic() + self._flush_interval_s
        self._is_paused = False
        self._unopened: set[TopicPartition] = set()
        """Partitions that are assigned and whose ``open`` has not succeeded yet."""
        self._next_open = 0.0
        self._topics: set[str] = set()
        self._next_look = time.monotonic() + _LOOK_S
        self._missing: frozenset[str] = frozenset()
        """Topics of which the log says already that they do not exist."""
        self._measures, self._sink = TaskMeasures(), SinkMeasures()

    def begin(self) -> None:
        self._is_paused = False
        if self._undelivered is None:
            self._resume_assigned()
        self._measures.state(paused=False)

    def pause(self) -> None:
        self._is_paused = True
        self.commit()
        self._consumer.pause(*self._context.assigned)
        self._measures.state(paused=True)

    def rest(self) -> None:
        """Rebalances go on in a pause, and the task is told that time passes."""
        self.step()

    def finish(self) -> None:
        self._close_partitions(frozenset(self._context.assigned))

    def abandon(self) -> None:
        """Rows that were not committed are delivered again to the next owner of the partitions."""

    def step(self) -> None:
        if self._unopened and time.monotonic() >= self._next_open:
            self._open_unopened()
        self._follow_task_pauses()
        self._follow_rewinds()  # also those that the task asked for on opening, before what waited for that is delivered
        if self._undelivered is not None:
            self._redeliver()
        else:
            arrived, self._arrived = self._arrived, []
            self._deliver(self._opened(arrived) or self._next_fetch(_WAIT_MS))
        if time.monotonic() >= self._next_look:
            self._tell_missing_topics()
        due = time.monotonic() >= self._next_commit or self._context.commit_requested
        if due and self._undelivered is None:
            self.commit()

    def _next_fetch(self, max_wait_ms: int) -> list[FetchedBatches]:
        """Return the next fetched batches; handles rebalances while it waits."""
        if self._fetching is None:
            self._fetching = self._consumer.start_fetch(max_wait_ms, _MAX_FETCH_BYTES)
        while True:
            kind, what, done = self._consumer.events.get()
            if kind == "fetched":
                self._fetching = None
                try:
                    fetched: list[FetchedBatches] = what.result()
                except TidegateError as error:
                    if not error.retriable:
                        raise
                    logger.warning("fetch will be repeated", connector=self._context.connector, error=str(error))
                    self._control.stopping.wait(_RETRY_S)
                    return []
                # Left out are records of partitions that have been taken away since, which their new owner reads, and records
                # that were fetched before the task asked for other positions, as it may on opening.
                partitions = self._context.assigned - self._context.rewinds.keys()
                return self._opened(
                    [part for part in fetched if TopicPartition(part.topic, part.partition) in partitions]
                )
            assert done is not None
            try:
                if kind == "revoked":
                    self._close_partitions(what)
                else:
                    self._open_partitions(what)
            finally:
                done.set_result(None)

    def _opened(self, fetched: list[FetchedBatches]) -> list[FetchedBatches]:
        """Those of partitions that the task has opened. The others wait: the consumer has moved on behind them, and may
        have fetched them before it heard that they are to be paused."""
        opened: list[FetchedBatches] = []
        for part in fetched:
            waits = TopicPartition(part.topic, part.partition) in self._unopened
            (self._arrived if waits else opened).append(part)
        return opened

    def _open_partitions(self, partitions: frozenset[TopicPartition]) -> None:
        self._unopened |= partitions - self._context.assigned
        self._context.assigned = frozenset(partitions)
        if self._is_paused:
            self._consumer.pause(*partitions)
        if self._unopened:
            self._open_unopened()

    def _open_unopened(self) -> None:
        """Nothing of a partition is fetched before the task has opened it; the others go on meanwhile."""
        try:
            with self._control.calling("open"):
                self._task.open(sorted(self._unopened))
        except RetriableConnectError as error:
            logger.warning("open will be repeated", connector=self._context.connector, error=str(error))
            self._consumer.pause(*self._unopened)
            self._next_open = time.monotonic() + _REOPEN_S
            return
        self._unopened.clear()
        if self._next_open:
            self._next_open = 0.0
            self._resume_assigned()

    def _close_partitions(self, partitions: frozenset[TopicPartition]) -> None:
        leaving = sorted(partition for partition in partitions if partition in self._context.assigned)
        if not leaving:
            return
        self.commit(leaving=leaving)
        if opened := [partition for partition in leaving if partition not in self._unopened]:
            with self._control.calling("close"):
                self._task.close(opened)
        for partition in leaving:
            self._sink.forget(partition)
            for known in (self._first, self._delivered, self._committed):
                known.pop(partition, None)
            self._context.rewinds.pop(partition, None)
            self._context.paused.discard(partition)
            self._unopened.discard(partition)
            self._forget(partition)
        self._context.assigned = self._context.assigned.difference(leaving)
        if not self._context.assigned:
            self._undelivered = None

    def _deliver(self, fetched: list[FetchedBatches]) -> None:
        positions = {TopicPartition(part.topic, part.partition): part.next_offset for part in fetched}
        for part in fetched:
            self._first.setdefault(TopicPartition(part.topic, part.partition), part.offset)
        for topic in {partition.topic for partition in positions} - self._topics:
            self._topics.add(topic)
            self._on_topic(topic)
        before = self._pipeline.read_records
        batches = self._pipeline.receive(fetched) if fetched else []
        self._sink.fetched(fetched, self._pipeline.read_records - before)
        self._put(batches, positions)

    def _put(self, batches: list[RecordBatch], positions: Mapping[TopicPartition, int]) -> None:
        began = time.monotonic()
        try:
            with self._control.calling("put"):
                self._task.put(batches)
        except RetriableConnectError as error:
            if self._undelivered is None:
                logger.warning("put will be repeated", connector=self._context.connector, error=str(error))
                self._consumer.pause(*self._context.assigned)
            self._undelivered, self._undelivered_positions = batches, dict(positions)
            return
        if self._undelivered is not None:
            self._undelivered = None
            self._resume_assigned()
        if batches:
            count = sum(len(batch) for batch in batches)
            self._measures.batch(count)
            self._sink.put(count, (time.monotonic() - began) * 1000)
        self._delivered.update(positions)
        self._sink.delivered(positions)

    def _redeliver(self) -> None:
        """Give the same batches again after a pause, in which the group hears from us."""
        self._control.stopping.wait(_RETRY_S)
        # A fetch that was under way when partitions were paused may bring something: its turn comes later.
        fetched = self._next_fetch(_POLL_MS)  # which may itself take what belongs to others out of _arrived
        self._arrived += fetched
        if self._undelivered is not None and not self._control.stopping.is_set():
            self._put(self._undelivered, self._undelivered_positions)

    def _follow_task_pauses(self) -> None:
        if self._context.pauses_changed:
            self._context.pauses_changed = False
            self._consumer.pause(*self._context.paused)
            if self._undelivered is None:
                self._resume_assigned()

    def _resume_assigned(self) -> None:
        if not self._is_paused:
            self._consumer.resume(*(self._context.assigned - self._context.paused - self._unopened))

    def _follow_rewinds(self) -> None:
        rewinds = {p: offset for p, offset in self._context.rewinds.items() if p in self._context.assigned}
        self._context.rewinds.clear()
        for partition, offset in rewinds.items():
            self._consumer.seek(partition, offset)
            self._first[partition] = self._delivered[partition] = offset
            self._committed.pop(partition, None)
            self._sink.rewound(partition, offset)
            self._forget(partition)

    def _forget(self, partition: TopicPartition) -> None:
        """Leave out what is at hand of a partition and not delivered yet."""
        self._arrived = [part for part in self._arrived if (part.topic, part.partition) != partition]
        if self._undelivered is not None:
            self._undelivered = [batch for batch in self._undelivered if batch.origin != Origin(*partition)]
            self._undelivered_positions.pop(partition, None)

    def commit(self, *, leaving: Collection[TopicPartition] = ()) -> None:
        """Commit what the task says is safe. Where it cannot say, go back to what was committed last, but not for the
        partitions that are ``leaving``."""
        self._next_commit = time.monotonic() + self._flush_interval_s
        self._context.commit_requested = False
        if not self._delivered:
            return
        positions = self._settled_positions()
        try:
            with self._control.calling("pre_commit"):
                safe = dict(self._task.pre_commit(dict(positions)))
        except RetriableConnectError as error:
            logger.warning("offsets not committed; going back", connector=self._context.connector, error=str(error))
            self._go_back(leaving)
            return
        if self._dead_letters is not None:
            try:
                self._dead_letters.wait_until_written()
            except TidegateError as error:
                if not error.retriable:
                    raise
                logger.warning("offsets not committed", connector=self._context.connector, error=str(error))
                return
        fresh = {
            partition: offset
            for partition, offset in safe.items()
            if self._committed.get(partition) != offset and offset <= positions.get(partition, -1)
        }
        if fresh and self._commit(fresh):
            self._committed.update(fresh)
            self._sink.committed(fresh)

    def _tell_missing_topics(self) -> None:
        """A sink waits for a topic for ever, as Kafka Connect's: its name may be wrong, and nothing else would show that."""
        self._next_look = time.monotonic() + _LOOK_S
        missing = self._consumer.missing_topics
        if more := missing - self._missing:
            logger.warning(
                "the sink waits for topics that do not exist", connector=self._context.connector, topics=sorted(more)
            )
        self._missing = missing

    def _settled_positions(self) -> dict[TopicPartition, int]:
        """Up to where records were delivered, less those that will be delivered again: the task no longer has these, so it cannot
        say that they are safe. That holds for a task that stops before they come, too."""
        return {p: min(offset, self._context.rewinds.get(p, offset)) for p, offset in self._delivered.items()}

    def _commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Whether the group's coordinator took them. After a rebalance it does not: the partitions' owner reads them again."""
        from broker.client.errors import FencedInstanceId, IllegalGeneration, UnknownMemberId

        with self._measures.committing() as outcome:
            try:
                with self._control.gate.passing():
                    self._consumer.commit(offsets)
            except TidegateError as error:
                if not error.retriable and not isinstance(
                    error, IllegalGeneration | UnknownMemberId | FencedInstanceId
                ):
                    raise
                self._sink.skipped()
                logger.warning("offsets not committed", connector=self._context.connector, error=str(error))
            else:
                outcome.failed = False
        return not outcome.failed

    def _go_back(self, leaving: Collection[TopicPartition]) -> None:
        for partition in self._delivered.keys() - set(leaving):
            self._context.rewinds[partition] = self._committed.get(partition, self._first[partition])

    def statistics(self) -> dict[str, Any]:
        letters = self._dead_letters.attributes() if self._dead_letters is not None else {}
        return {
            "connector-task-metrics": self._measures.attributes(),
            "sink-task-metrics": {**self._sink.attributes(), "partition-count": len(self._context.assigned)},
            "task-error-metrics": self._policy.attributes() | letters,
            "lags": self._sink.lags(),
            "missing_topics": sorted(self._consumer.missing_topics),
        }
