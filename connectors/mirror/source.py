"""Mirrors records: MirrorSourceConnector, which watches topics, and its tasks, which copy whole columns."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.api import (
    MAX_BATCH_BYTES,
    Acknowledged,
    ConnectorContext,
    Dataset,
    OffsetChanges,
    RecordBatch,
    RetriableConnectError,
    Schema,
    SchemaType,
    SourceConnector,
    SourceTask,
    TidegateError,
    TopicPartition,
    get_logger,
)
from connectors.mirror.client import Calls, Side, admin_of, client_config, close, create_compacted
from connectors.mirror.config import MirrorSourceConfig
from connectors.mirror.offset_syncs import OffsetSyncWriter
from connectors.mirror.positions import check_positions
from connectors.mirror.schedule import Schedule
from connectors.mirror.topics import MirroredTopics

if TYPE_CHECKING:
    import pyarrow as pa

    from broker.client import Admin, BatchConsumer, FetchedBatches

__all__ = ["MirrorSourceConnector", "MirrorSourceTask"]

logger = get_logger(__name__)

_SLICE_MS: Final = 200
"""The timeout of one fetch, short so that a task stops soon."""
_KEY: Final = Schema(SchemaType.BYTES, optional=True)
_VALUE: Final = Schema(SchemaType.BYTES)


class MirrorSourceTask(SourceTask[MirrorSourceConfig]):
    """Reads its partitions of the source; notes the offset of each record in the target when the producer reports it."""

    def __init__(self, config: MirrorSourceConfig, context: Any) -> None:
        super().__init__(config, context)
        self._positions: dict[TopicPartition, int] = {}
        self._consumer: BatchConsumer | None = None
        self._syncs: OffsetSyncWriter | None = None

    def start(self) -> None:
        config = self.config
        self._calls = Calls(self.context.stopping)
        self._label = config.label(f"{self.context.connector}-{self.context.task}")
        self._assigned = [_topic_partition(text) for text in config.task_partitions or ()]
        if config.emits_syncs:
            side: Side = "source" if config.syncs_location == "source" else "target"
            producer = client_config(config, side, "producer", f"{self._label}|offset-syncs-{side}-producer")
            self._syncs = OffsetSyncWriter(producer, config.syncs_topic, config.max_lag)
            self.resources.callback(self._syncs.close)

    def dataset(self, topic: str) -> Dataset | None:
        names = {self.config.policy.remote_topic(self.config.source, each.topic): each.topic for each in self._assigned}
        servers = client_config(self.config, "source", "consumer", self._label).bootstrap_servers
        return Dataset.of_topic(servers, names[topic]) if topic in names else None

    def poll(self) -> Sequence[RecordBatch]:
        if self._syncs is not None:
            self._syncs.send()
        try:
            fetches = self._fetched()
        except TidegateError as error:  # as in the original: the source may allow later what it denies now
            if self.context.stopping.is_set():
                return []
            self._close_consumer()  # rows returned together with the error are read again
            raise RetriableConnectError(f"the source cluster {self.config.source} cannot be read: {error}") from error
        batches = [batch for fetched in fetches if (batch := self._batch(fetched)) is not None]
        self._positions |= {TopicPartition(part.topic, part.partition): part.next_offset for part in fetches}
        return batches

    def _fetched(self) -> Sequence[FetchedBatches]:
        consumer = self._consumer or self._opened()
        until = time.monotonic() + self.config.poll_timeout_ms / 1000
        while not self.context.stopping.is_set():
            left_ms = int((until - time.monotonic()) * 1000)
            fetched = self._calls.run(consumer.fetch(max(0, min(left_ms, _SLICE_MS)), MAX_BATCH_BYTES))
            if fetched or left_ms <= 0:
                return fetched
        return []

    def _opened(self) -> BatchConsumer:
        from broker.client import BatchConsumer

        config = client_config(self.config, "source", "consumer", f"{self._label}|replication-consumer")
        consumer = self._consumer = BatchConsumer(config)
        self._calls.run(consumer.start())
        self._calls.run(consumer.assign(self._assigned))
        for partition in self._assigned:
            position = self._positions.get(partition, self._committed_position(partition))
            if position is not None:
                self._calls.run(consumer.seek(partition, position))
        return consumer

    def _committed_position(self, partition: TopicPartition) -> int | None:
        known = self.context.offset(self._source_partition(partition))
        offset = known.get("offset") if known is not None else None
        return int(offset) + 1 if offset is not None and int(offset) >= 0 else None

    def _close_consumer(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            close(consumer.stop())

    def _source_partition(self, partition: TopicPartition) -> dict[str, Any]:
        """The members in the order that the original writes, so that either one replaces the other's offsets."""
        return {"cluster": self.config.source, "partition": partition.partition, "topic": partition.topic}

    def _batch(self, fetched: FetchedBatches) -> RecordBatch | None:
        import pyarrow as pa

        columns = fetched.columns()
        if not len(columns):
            return None
        partition = TopicPartition(fetched.topic, fetched.partition)
        return RecordBatch(
            topic=self.config.policy.remote_topic(self.config.source, partition.topic),
            values=columns.values,
            value_schema=_VALUE,
            keys=columns.keys,
            key_schema=_KEY,
            timestamps_ms=_known_times(columns.timestamps_ms),
            headers=columns.headers,
            partitions=pa.repeat(pa.scalar(partition.partition, pa.int32()), len(columns)),
            offsets=columns.offsets,
            source_partition=self._source_partition(partition),
            source_offset={"offset": columns.offsets[-1].as_py()},
        )

    def acknowledged(self, rows: Sequence[Acknowledged]) -> None:
        if self._syncs is not None:
            for row in rows:
                self._syncs.acknowledged(row)

    def committed(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        if self._syncs is not None:
            self._syncs.promote()

    def stop(self) -> None:
        self._close_consumer()
        super().stop()


def _topic_partition(text: str) -> TopicPartition:
    topic, _, partition = text.rpartition("-")
    return TopicPartition(topic, int(partition))


def _known_times(column: pa.Array) -> pa.Array:
    """Null where a record has no time (-1), so that the producer's clock is used."""
    import pyarrow.compute as pc

    lowest = pc.min(column).as_py()
    return column if lowest is None or lowest >= 0 else pc.if_else(pc.less(column, 0), None, column)


class MirrorSourceConnector(SourceConnector[MirrorSourceConfig]):
    """Finds topics, creates them in the target, and distributes their partitions over tasks."""

    config_class: ClassVar[type[Any]] = MirrorSourceConfig
    task_class = MirrorSourceTask

    @classmethod
    def exactly_once(cls, config: MirrorSourceConfig) -> bool | None:
        return config.reads_committed

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        check_positions(offsets, texts=("cluster", "topic"), only_zero=False)
        return True

    def __init__(self, config: MirrorSourceConfig, properties: Mapping[str, str], context: ConnectorContext) -> None:
        super().__init__(config, properties, context)
        self._stopping = threading.Event()
        self._calls = Calls(self._stopping)
        self._topics = MirroredTopics(config, self._calls)
        self._known: list[TopicPartition] = []
        self._planned_too_early = False
        self._schedule: Schedule | None = None

    def start(self) -> None:
        config = self.config
        if not config.enabled:
            return
        label = config.label(self.context.name)
        self._source = client_config(config, "source", "admin", f"{label}|replication-source-admin")
        self._target = client_config(config, "target", "admin", f"{label}|replication-target-admin")
        schedule = self._schedule = Schedule(self._stopping, self._load, label)
        if config.syncs_acls:
            schedule.every(config.acls_s, self._sync_acls, "syncing topic ACLs", at_once=True)
        if config.syncs_configs:
            schedule.every(config.configs_s, self._sync_configs, "syncing topic configs", at_once=True)
        if config.refreshes:
            schedule.every(config.refresh_s, self._refresh, "refreshing topics")
        schedule.start()
        schedule.began.wait(config.admin_timeout_ms / 1000)

    def _load(self) -> None:
        config = self.config
        if config.emits_syncs:
            syncs = self._source if config.syncs_location == "source" else self._target
            create_compacted(self._calls, syncs, config.syncs_topic, config.syncs_replication_factor)
        with self._both() as (source, target):
            partitions = self._topics.in_source(source)
            self._topics.make(source, target, partitions)
        self._known = partitions
        if self._planned_too_early and partitions:
            self.context.request_task_reconfiguration()
        logger.info("partitions to mirror", connector=self.context.name, count=len(partitions))

    def _refresh(self) -> None:
        with self._both() as (source, target):
            partitions = self._topics.in_source(source)
            made = self._topics.make(source, target, partitions)
        if made or partitions != self._known:
            logger.info("partitions to mirror have changed", connector=self.context.name, count=len(partitions))
            self._known = partitions
            self.context.request_task_reconfiguration()

    def _sync_configs(self) -> None:
        with self._both() as (source, target):
            self._topics.sync_configs(source, target, sorted({partition.topic for partition in self._known}))

    def _sync_acls(self) -> None:
        with self._both() as (source, target):
            self._topics.sync_acls(source, target)

    @contextmanager
    def _both(self) -> Iterator[tuple[Admin, Admin]]:
        with admin_of(self._calls, self._source) as source, admin_of(self._calls, self._target) as target:
            yield source, target

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Partitions are distributed one at a time, so that those of one topic go to different tasks."""
        if not self.config.enabled:
            return []
        if self._schedule is not None and not self._schedule.began.is_set():
            self._planned_too_early = True
        count = min(max_tasks, len(self._known))
        return [
            {
                **self.properties,
                "task.assigned.partitions": ",".join(str(partition) for partition in self._known[number::count]),
                "task.index": str(number),
            }
            for number in range(count)
        ]

    def stop(self) -> None:
        self._stopping.set()
        if self._schedule is not None:
            self._schedule.stop()
