"""The work of a job task: plans ranges of the log, runs the job over them, commits their ends, and waits for the next time."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from connect.api import ConnectError, JobTask, OffsetRange, TopicPartition
from connect.config.connector import JobConfig, SinkConfig
from connect.task.control import TaskControl
from connect.task.error_policy import ErrorPolicy
from connect.task.job_history import JobHistory
from connect.task.job_times import RETRY_S, JobTimes
from connect.task.sinks.dead_letters import DeadLetters
from connect.task.sinks.job_log import Intent, JobLog, PartitionState
from tidegate.kit.errors import RetriableError
from tidegate.kit.logs import get_logger

__all__ = ["JobRunner", "planned_ranges"]

logger = get_logger(__name__)


def planned_ranges(bounds: Mapping[TopicPartition, tuple[int, int]], max_records: int) -> list[OffsetRange]:
    """The ranges of a run, at most ``max_records`` offsets in sum where that is not 0: an even share of each partition."""
    open_ = {partition: (start, stop) for partition, (start, stop) in sorted(bounds.items()) if start < stop}
    if max_records:
        room, left = max_records, len(open_)
        shares: dict[TopicPartition, int] = {}
        for partition, (start, stop) in sorted(open_.items(), key=lambda item: item[1][1] - item[1][0]):
            shares[partition] = min(stop - start, max(1, room // left)) if room else 0
            room, left = room - shares[partition], left - 1
        open_ = {p: (start, start + shares[p]) for p, (start, _) in open_.items() if shares[p]}
    return [OffsetRange(partition, start, stop) for partition, (start, stop) in open_.items()]


class _Run(NamedTuple):
    id: str
    ranges: Sequence[OffsetRange]

    @property
    def records(self) -> int:
        return sum(range_.stop - range_.start for range_ in self.ranges)

    @property
    def intents(self) -> dict[TopicPartition, Intent]:
        return {range_.partition: Intent(self.id, range_.stop) for range_ in self.ranges}


class JobRunner:
    """The Runner of a job's task (``connect.task.lifecycle``)."""

    def __init__(
        self,
        task: JobTask[Any],
        control: TaskControl,
        *,
        connector: str,
        sink: SinkConfig,
        job: JobConfig,
        offsets: JobLog,
        policy: ErrorPolicy,
        dead_letters: DeadLetters | None = None,
        on_topic: Callable[[str], None],
        close: Callable[[], None],
    ) -> None:
        self._task, self._control, self._connector = task, control, connector
        self._sink, self._job, self._log = sink, job, offsets
        self._policy, self._dead_letters = policy, dead_letters
        self._on_topic, self.close = on_topic, close
        self._runs = self._records = self._of_run = 0
        self._followed: dict[TopicPartition, int] = {}
        self._topics: set[str] = set()
        self._history = JobHistory()
        self._times = JobTimes(job, control, self._history)

    def begin(self) -> None:
        self._times.begin()

    def pause(self) -> None:
        """Nothing is under way between two steps."""

    def rest(self) -> None:
        self._control.wait_while_paused(1)

    def finish(self) -> None:
        """A run is whole or does not count; its commit is part of it."""

    def abandon(self) -> None:
        """Likewise."""

    def step(self) -> None:
        why = self._times.wait()
        if why is not None:
            once = self._follow_once if self._task.follows else self._run_once
            self._times.set_due(once(least=1 if why == "ordered" else self._job.min_records))

    def commit(self, ends: Mapping[TopicPartition, int]) -> None:
        """A task that follows has everything before these offsets done, but for records that it left out."""
        if self._dead_letters is not None:
            self._dead_letters.wait_until_written()
        with self._control.gate.passing():
            self._log.commit(ends)
        for partition, end in ends.items():
            self._records += max(0, end - self._followed.get(partition, end))
            self._of_run += max(0, end - self._followed.get(partition, end))
            self._followed[partition] = end
        self._history.reads(records=self._of_run, partitions=len(self._followed))

    def _follow_once(self, least: int) -> float:
        """Have the engine read what there is, unless it is less than ``least`` records, or until the task is interrupted; returns when
        it is due again."""
        partitions = self._log.partitions(self._sink)
        new = sum(max(0, state.end - state.start) for state in partitions.values())
        if not partitions or (new < least and not self._task.endless):
            return self._times.next_due()
        topics = sorted({partition.topic for partition in partitions})
        self._tell_topics(topics)
        self._followed = {partition: state.start for partition, state in partitions.items()}
        self._of_run = 0
        run_id = uuid.uuid4().hex[:16]
        self._history.begins(run_id, records=0, partitions=0, repeated=False)
        if (due := self._ended(run_id, lambda: self._task.follow(topics))) is not None:
            return due
        self._history.ends("done")
        self._runs += 1
        return self._times.next_due()

    def _tell_topics(self, topics: Iterable[str]) -> None:
        for topic in sorted(set(topics) - self._topics):
            self._topics.add(topic)
            self._on_topic(topic)

    def _ended(self, run_id: str, work: Callable[[], None]) -> float | None:
        """Do the work of a run; None if it is done, else when the next one is due. Raises what fails the task."""
        self._control.job_cancelled.clear()  # an order that came too late for the run before
        try:
            work()
            if self._dead_letters is not None:
                self._dead_letters.wait_until_written()
        except BaseException as error:
            if self._task.follows and self._control.interrupted.is_set():
                self._history.ends("cancelled")
                return time.time()
            if self._control.job_cancelled.is_set() and not self._control.stopping.is_set():
                self._history.ends("cancelled")
                logger.info("job cancelled", connector=self._connector, run=run_id)
                return self._times.next_due()
            if not isinstance(error, RetriableError):
                self._history.ends("failed", error)
                raise
            self._history.ends("retried", error)
            logger.warning("job will be run again", connector=self._connector, error=str(error))
            return time.time() + RETRY_S
        finally:
            self._control.job_cancelled.clear()
        return None

    def _run_once(self, least: int) -> float:
        """Run the job over what there is, unless it is less than ``least`` records; returns when it is due again."""
        partitions = self._positioned()
        run = _begun(partitions)
        repeated = run is not None
        if run is None:
            bounds = {p: (state.start, state.end) for p, state in partitions.items()}
            run = _Run(uuid.uuid4().hex[:16], planned_ranges(bounds, self._job.max_records))
            if run.records < least:
                return self._times.next_due()
            with self._control.gate.passing():
                self._log.commit({range_.partition: range_.start for range_ in run.ranges}, run.intents)
        self._tell_topics(range_.partition.topic for range_ in run.ranges)
        self._history.begins(run.id, records=run.records, partitions=len(run.ranges), repeated=repeated)
        if (due := self._ended(run.id, lambda: self._task.run(run.ranges, run.id))) is not None:
            return due
        with self._control.gate.passing():
            self._log.commit({range_.partition: range_.stop for range_ in run.ranges})
        self._history.ends("done")
        self._runs += 1
        self._records += run.records
        logger.info("job done", connector=self._connector, records=run.records, partitions=len(run.ranges))
        # Records that did not fit into this run are due at once.
        more = self._job.max_records and run.records >= self._job.max_records and self._job.schedule is None
        return time.time() if more else self._times.next_due()

    def _positioned(self) -> dict[TopicPartition, PartitionState]:
        """The partitions, each with what comes next in it. Raises ConnectError where records are missing and that is not allowed."""
        partitions = self._log.partitions(self._sink)
        lost = {partition: state for partition, state in sorted(partitions.items()) if not state.has_position}
        return partitions | self._reset(lost) if lost else partitions

    def _reset(self, lost: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, PartitionState]:
        """Commit where to go on in these, and return that. Raises ConnectError where records may not be missing."""
        policy = self._job.offset_reset
        told = "; ".join(
            f"{partition.topic}-{partition.partition} has offsets {state.first} to {state.end}, committed is {state.committed}"
            + (f" and a run to {state.intent.stop} is not done" if state.intent is not None else "")
            for partition, state in lost.items()
        )
        if policy == "none":
            raise ConnectError(
                f"records that the job has not read are gone: {told}. To go on without them, set job.offset.reset to "
                "'earliest' or 'latest'"
            )
        offsets = {p: state.end if policy == "latest" else state.first for p, state in lost.items()}
        # A topic that was made anew has a smaller end: how many records it had before cannot be known.
        missing = sum(max(0, offsets[partition] - (state.committed or 0)) for partition, state in lost.items())
        logger.warning(
            "job goes on without records that are gone",
            connector=self._connector,
            policy=policy,
            missing_records=missing,
            partitions=told,
        )
        # Committed at once: 'latest' would otherwise pass over what comes until the next run.
        intents = {
            p: state.intent
            for p, state in lost.items()
            if state.intent is not None and offsets[p] < state.intent.stop <= state.end
        }
        with self._control.gate.passing():
            self._log.commit(offsets, intents)
        return {p: state._replace(committed=offsets[p], intent=intents.get(p)) for p, state in lost.items()}

    def statistics(self) -> dict[str, Any]:
        letters = self._dead_letters.attributes() if self._dead_letters is not None else {}
        return {
            "sink-task-metrics": {"sink-record-send-total": self._records},
            "job-task-metrics": {"job-run-total": self._runs},
            "job": self._history.as_json(),
            "task-error-metrics": self._policy.attributes() | letters,
        }


def _begun(partitions: Mapping[TopicPartition, PartitionState]) -> _Run | None:
    """The run that is not done, as far as its partitions are still there."""
    begun = {partition: state.intent for partition, state in sorted(partitions.items()) if state.intent is not None}
    if not begun:
        return None
    run_id = min(intent.run_id for intent in begun.values())
    ranges = [
        OffsetRange(partition, partitions[partition].start, intent.stop)
        for partition, intent in begun.items()
        if intent.run_id == run_id
    ]
    return _Run(run_id, ranges)
