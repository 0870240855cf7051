"""The work of a job task: plans ranges of the log, runs the job over them, commits their ends, and waits for the next time."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from connect.api import ConnectError, JobTask, OffsetRange, RetriableConnectError, TopicPartition
from connect.clients import ClientLoop
from connect.connector_config import JobConfig, SinkConfig
from connect.control import TaskControl
from tidegate.kit.java_regex import JavaRegex
from tidegate.kit.logs import logger

if TYPE_CHECKING:
    from broker.client import ClientConfig

__all__ = ["GroupOffsets", "JobLog", "JobRunner", "PartitionState", "planned_ranges"]

log = logger(__name__)

_RETRY_S: Final = 5.0


class PartitionState(NamedTuple):
    """Offsets of a partition: what the job has committed (None: never anything), the first one there, and the end."""

    committed: int | None
    first: int
    end: int

    @property
    def has_position(self) -> bool:
        """Whether the log still holds what comes after the committed offset."""
        return self.committed is None or self.first <= self.committed <= self.end


class JobLog(Protocol):
    """What the runner asks of the log, from its thread."""

    def partitions(self, config: SinkConfig) -> dict[TopicPartition, PartitionState]:
        """Those of the connector's topics."""
        ...

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...


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


class JobRunner:
    """The Runner of a job's task (``connect.lifecycle``)."""

    def __init__(
        self,
        task: JobTask[Any],
        control: TaskControl,
        *,
        connector: str,
        sink: SinkConfig,
        job: JobConfig,
        offsets: JobLog,
        on_topic: Callable[[str], None],
        close: Callable[[], None],
    ) -> None:
        self._task, self._control, self._connector = task, control, connector
        self._sink, self._job, self._log = sink, job, offsets
        self._on_topic, self.close = on_topic, close
        self._runs = self._records = 0
        self._topics: set[str] = set()
        self._due: float | None = None

    def begin(self) -> None:
        if self._due is None:
            self._due = self._first_due()

    def pause(self) -> None:
        """Nothing is under way between two steps."""

    def rest(self) -> None:
        self._control.wait_while_paused(1)

    def finish(self) -> None:
        """A run is whole or does not count; its commit is part of it."""

    def abandon(self) -> None:
        """Likewise."""

    def step(self) -> None:
        assert self._due is not None
        self._control.stopping.wait(max(0.0, min(self._due - time.time(), 0.5)))
        if time.time() >= self._due and not self._control.stopping.is_set():
            self._due = self._run_once()

    def _first_due(self) -> float:
        return self._next_due() if self._job.schedule is not None else time.time()

    def _next_due(self) -> float:
        """When the next run is to start, in seconds since the epoch."""
        if self._job.schedule is None:
            return time.time() + self._job.interval_ms / 1000
        from apscheduler.triggers.cron import CronTrigger

        trigger = CronTrigger.from_crontab(self._job.schedule, timezone="UTC")
        found = trigger.get_next_fire_time(None, dt.datetime.now(dt.UTC) + dt.timedelta(milliseconds=1))
        return float(found.timestamp()) if found is not None else time.time() + 86_400

    def _run_once(self) -> float:
        """Run the job over what there is; returns when it is due again."""
        ranges = planned_ranges(self._bounds(), self._job.max_records)
        count = sum(one.stop - one.start for one in ranges)
        if count < self._job.min_records:
            return self._next_due()
        for topic in sorted({one.partition.topic for one in ranges} - self._topics):
            self._topics.add(topic)
            self._on_topic(topic)
        try:
            self._task.run(ranges)
        except RetriableConnectError as error:
            log.warning("job will be run again", connector=self._connector, error=str(error))
            return time.time() + _RETRY_S
        with self._control.gate.passing():
            self._log.commit({one.partition: one.stop for one in ranges})
        self._runs += 1
        self._records += count
        log.info("job done", connector=self._connector, records=count, partitions=len(ranges))
        # What could not go into this run for its size is due at once.
        more = self._job.max_records and count >= self._job.max_records and self._job.schedule is None
        return time.time() if more else self._next_due()

    def _bounds(self) -> dict[TopicPartition, tuple[int, int]]:
        """The offsets to start from and the ends. Raises ConnectError where records are missing and that is not allowed."""
        partitions = self._log.partitions(self._sink)
        lost = {partition: state for partition, state in sorted(partitions.items()) if not state.has_position}
        if lost:
            offsets = self._reset(lost)
            partitions |= {partition: state._replace(committed=offsets[partition]) for partition, state in lost.items()}
        return {
            partition: (state.first if state.committed is None else state.committed, state.end)
            for partition, state in partitions.items()
        }

    def _reset(self, lost: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, int]:
        """Commit where to go on in these, and return it. Raises ConnectError where records may not be missing."""
        policy = self._job.offset_reset
        told = "; ".join(
            f"{partition.topic}-{partition.partition} has offsets {state.first} to {state.end}, committed is {state.committed}"
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
        log.warning(
            "job goes on without records that are gone",
            connector=self._connector,
            policy=policy,
            missing_records=missing,
            partitions=told,
        )
        # Committed at once: 'latest' would otherwise pass over what comes until the next run.
        with self._control.gate.passing():
            self._log.commit(offsets)
        return offsets

    def statistics(self) -> dict[str, Any]:
        return {
            "sink-task-metrics": {"sink-record-send-total": self._records},
            "job-task-metrics": {"job-run-total": self._runs},
        }


class GroupOffsets:
    """A JobLog over any Kafka: positions are those of the group ``connect-<connector>``."""

    def __init__(self, loop: ClientLoop, config: ClientConfig, group: str) -> None:
        from broker.client import Admin

        self._loop, self._group = loop, group
        self._admin = Admin(config)

    def start(self) -> None:
        """Connect; waits for a cluster that is away. Raises Stopped."""
        self._loop.patiently(self._admin.start, "starting a job's admin client")

    def partitions(self, config: SinkConfig) -> dict[TopicPartition, PartitionState]:
        return self._loop.patiently(lambda: self._partitions(config), f"offsets of group {self._group}")

    async def _partitions(self, config: SinkConfig) -> dict[TopicPartition, PartitionState]:
        from broker.client import TopicPartition as ClientPartition

        there = await self._admin.list_topics()
        wanted = [name for name in there if _takes(config, name)]
        described = await self._admin.describe_topics(wanted) if wanted else {}
        partitions = [ClientPartition(name, p.partition) for name, topic in described.items() for p in topic.partitions]
        firsts = await self._admin.beginning_offsets(partitions)
        ends = await self._admin.end_offsets(partitions)
        committed = await self._admin.group_offsets(self._group)
        return {TopicPartition(*p): PartitionState(committed.get(p), firsts[p], ends[p]) for p in partitions}

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        from broker.client import TopicPartition as ClientPartition

        given = {ClientPartition(*partition): offset for partition, offset in offsets.items()}
        self._loop.patiently(
            lambda: self._admin.alter_group_offsets(self._group, given), f"offsets of group {self._group}"
        )

    def close(self) -> None:
        self._loop.run(self._admin.stop())


def _takes(config: SinkConfig, topic: str) -> bool:
    topics: Sequence[str] = config.topics
    return topic in topics or bool(config.topics_regex and JavaRegex(config.topics_regex).fullmatch(topic))
