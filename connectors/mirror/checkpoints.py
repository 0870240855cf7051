"""Consumer groups' offsets: MirrorCheckpointConnector, which finds groups, and its tasks, which translate their offsets
(KIP-382, KIP-545).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from connect.api import (
    ConnectorContext,
    OffsetChanges,
    RecordBatch,
    RetriableConnectError,
    SourceConnector,
    SourceTask,
    TidegateError,
    TopicPartition,
    get_logger,
)
from connectors.mirror.batches import batch_of
from connectors.mirror.client import Calls, Side, TopicReader, admin_of, client_config, create_compacted
from connectors.mirror.config import MirrorCheckpointConfig
from connectors.mirror.positions import check_positions
from connectors.mirror.records import Checkpoint, MalformedRecord
from connectors.mirror.schedule import Schedule
from connectors.mirror.translation import OffsetSyncStore

if TYPE_CHECKING:
    from broker.client import Admin, KafkaRecord

__all__ = ["MirrorCheckpointConnector", "MirrorCheckpointTask"]

logger = get_logger(__name__)


class MirrorCheckpointTask(SourceTask[MirrorCheckpointConfig]):
    """Handles some of the groups. It reads its own earlier checkpoints from the checkpoint topic."""

    def start(self) -> None:
        config, calls = self.config, Calls(self.context.stopping)
        label = self._label = config.label(f"{self.context.connector}-{self.context.task}")
        self._calls, self._groups = calls, config.task_groups or []
        self._source = client_config(config, "source", "admin", f"{label}|checkpoint-source-admin")
        self._target = client_config(config, "target", "admin", f"{label}|checkpoint-target-admin")
        side: Side = "source" if config.syncs_location == "source" else "target"
        self._syncs_topic = TopicReader(
            calls,
            client_config(config, side, "consumer", f"{label}|offset-syncs-{side}-consumer"),
            client_config(config, side, "admin", f"{label}|offset-syncs-{side}-admin"),
            config.syncs_topic,
        )
        self.resources.callback(self._syncs_topic.close)
        self._written: dict[str, dict[TopicPartition, Checkpoint]] | None = None
        self._syncs = OffsetSyncStore(only_latest=True)
        now = time.monotonic()
        self._emit_due, self._sync_due = now + config.emit_s, now + config.sync_s

    def poll(self) -> Sequence[RecordBatch]:
        config = self.config
        synced = config.syncs_offsets and config.sync_s > 0
        due = min(self._emit_due, self._sync_due) if synced else self._emit_due
        if self.context.stopping.wait(max(0.0, due - time.monotonic())):
            return []
        try:
            written = self._load()
            if synced and time.monotonic() >= self._sync_due:
                self._sync_due = max(self._sync_due + config.sync_s, time.monotonic())
                self._sync_group_offsets(written)
            if time.monotonic() >= self._emit_due:
                batches = self._checkpoints(written)
                self._emit_due = max(self._emit_due + config.emit_s, time.monotonic())
                return batches
        except TidegateError as error:
            if self.context.stopping.is_set():
                return []
            raise RetriableConnectError(f"positions cannot be taken over now: {error}") from error
        return []

    def _load(self) -> dict[str, dict[TopicPartition, Checkpoint]]:
        """The checkpoints written before this task started, and since."""
        if self._written is None:
            config = self.config
            consumer = client_config(config, "target", "consumer", f"{self._label}|checkpoints-target-consumer")
            reader = TopicReader(self._calls, consumer, self._target, config.checkpoints_topic)
            readable = True
            checkpoints: dict[str, dict[TopicPartition, Checkpoint]] = {}
            try:
                self._take(reader.new_records(), checkpoints)
            except RetriableConnectError:
                raise
            except TidegateError as error:  # unreadable: groups then continue with what is mirrored from now on
                logger.warning("checkpoints cannot be read", topic=config.checkpoints_topic, error=str(error))
                readable = False
            finally:
                reader.close()
            self._syncs, self._written = OffsetSyncStore(only_latest=not readable), checkpoints
        return self._written

    def _take(self, records: Iterable[KafkaRecord], checkpoints: dict[str, dict[TopicPartition, Checkpoint]]) -> None:
        for record in records:
            try:
                checkpoint = Checkpoint.read(record.key, record.value)
            except MalformedRecord as error:
                logger.warning(
                    "a checkpoint is passed over", topic=record.topic, offset=record.offset, error=str(error)
                )
                continue
            if checkpoint.group in self._groups:
                checkpoints.setdefault(checkpoint.group, {})[checkpoint.partition] = checkpoint

    def _checkpoints(self, written: dict[str, dict[TopicPartition, Checkpoint]]) -> list[RecordBatch]:
        """The new checkpoints of all groups, which ``written`` is updated with."""
        self._syncs.read(self._syncs_topic.new_records())
        now_ms = time.time_ns() // 1_000_000
        newer: list[Checkpoint] = []
        with admin_of(self._calls, self._source) as source:
            for group in self._groups:
                known = written.get(group, {})
                for partition, (offset, metadata) in self._calls.run(source.group_offsets_with_notes(group)).items():
                    made = self._checkpoint(group, TopicPartition(*partition), offset, metadata)
                    if made is not None and _is_newer(made, known.get(made.partition)):
                        newer.append(made)
        batches = [batch_of(made, self.config.checkpoints_topic, now_ms) for made in newer]
        for made in newer:  # once handed over they count as written
            written.setdefault(made.group, {})[made.partition] = made
        return batches

    def _checkpoint(self, group: str, partition: TopicPartition, offset: int, metadata: str) -> Checkpoint | None:
        if not self.config.takes_topic(partition.topic):
            return None
        downstream = self._syncs.downstream(partition, offset)
        if downstream is None:
            return None
        return Checkpoint(
            group,
            TopicPartition(self._topic_in_target(partition.topic), partition.partition),
            offset,
            downstream,
            metadata,
        )

    def _topic_in_target(self, topic: str) -> str:
        policy = self.config.policy
        if policy.source_of(topic) == self.config.target:  # it came from there
            return policy.original_topic(topic)
        return policy.remote_topic(self.config.source, topic)

    def _sync_group_offsets(self, written: Mapping[str, Mapping[TopicPartition, Checkpoint]]) -> None:
        """Set the offsets of groups without members in the target, unless they are further ahead there."""
        with admin_of(self._calls, self._target) as target:
            for group, checkpoints in written.items():
                if checkpoints:
                    try:
                        self._sync_group(target, group, checkpoints)
                    except RetriableConnectError:
                        raise
                    except TidegateError as error:  # a member may have joined just now
                        logger.warning("positions of a group could not be set", group=group, error=str(error))

    def _sync_group(self, target: Admin, group: str, checkpoints: Mapping[TopicPartition, Checkpoint]) -> None:
        from broker.client import TopicPartition as LogPartition

        state = self._calls.run(target.describe_group(group)).state
        if state not in ("Empty", "Dead"):
            logger.info(
                "positions of a group are left alone, since it is in use in the target", group=group, state=state
            )
            return
        now = self._calls.run(target.group_offsets(group)) if state == "Empty" else {}
        there = {LogPartition(*partition): checkpoint for partition, checkpoint in checkpoints.items()}
        further = {
            partition: checkpoint
            for partition, checkpoint in there.items()
            if checkpoint.downstream > now.get(partition, -1)
        }
        if further:
            offsets = {partition: checkpoint.downstream for partition, checkpoint in further.items()}
            notes = {partition: checkpoint.metadata for partition, checkpoint in further.items()}
            self._calls.run(target.alter_group_offsets(group, offsets, notes))


def _is_newer(made: Checkpoint, known: Checkpoint | None) -> bool:
    """A group may move back only where it also moved back in the source."""
    return known is None or made.upstream < known.upstream or made.downstream > known.downstream


class MirrorCheckpointConnector(SourceConnector[MirrorCheckpointConfig]):
    """Finds groups and distributes them over tasks."""

    config_class: ClassVar[type[Any]] = MirrorCheckpointConfig
    task_class = MirrorCheckpointTask

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        check_positions(offsets, texts=("group", "topic"), only_zero=True)
        return True

    def __init__(
        self, config: MirrorCheckpointConfig, properties: Mapping[str, str], context: ConnectorContext
    ) -> None:
        super().__init__(config, properties, context)
        self._stopping = threading.Event()
        self._calls = Calls(self._stopping)
        self._known: list[str] = []
        self._planned_too_early = False
        self._schedule: Schedule | None = None

    def start(self) -> None:
        config = self.config
        if not config.enabled:
            return
        label = config.label(self.context.name)
        self._source = client_config(config, "source", "admin", f"{label}|checkpoint-source-admin")
        self._target = client_config(config, "target", "admin", f"{label}|checkpoint-target-admin")
        self._schedule = Schedule(self._stopping, self._load, label)
        if config.refreshes:
            self._schedule.every(config.refresh_s, self._refresh, "refreshing consumer groups")
        self._schedule.start()
        self._schedule.began.wait(config.admin_timeout_ms / 1000)

    def _load(self) -> None:
        create_compacted(self._calls, self._target, self.config.checkpoints_topic, self.config.replication_factor)
        self._known = self._groups()
        if self._planned_too_early and self._known:
            self.context.request_task_reconfiguration()
        logger.info("consumer groups to follow", connector=self.context.name, count=len(self._known))

    def _refresh(self) -> None:
        groups = self._groups()
        if groups != self._known:
            logger.info("consumer groups to follow have changed", connector=self.context.name, count=len(groups))
            self._known = groups
            self.context.request_task_reconfiguration()

    def _groups(self) -> list[str]:
        """The consumer groups that have an offset in a mirrored topic, sorted."""
        config, groups = self.config, []
        with admin_of(self._calls, self._source) as source:
            for group in self._calls.run(source.list_groups()):
                of_consumers = group.type in ("", "classic", "consumer") and group.protocol_type in ("", "consumer")
                if of_consumers and config.takes_group(group.group_id):
                    positions = self._calls.run(source.group_offsets(group.group_id))
                    if any(config.takes_topic(partition.topic) for partition in positions):
                        groups.append(group.group_id)
        return groups

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Groups with adjacent names go to the same task."""
        config = self.config
        if not config.enabled or config.emit_s < 0:
            return []
        if self._schedule is not None and not self._schedule.began.is_set():
            self._planned_too_early = True
        known = self._known
        count = min(max_tasks, len(known))
        return [
            {**self.properties, "task.assigned.groups": ",".join(part), "task.index": str(number)}
            for number, part in enumerate(_parts(known, count))
        ]

    def stop(self) -> None:
        self._stopping.set()
        if self._schedule is not None:
            self._schedule.stop()


def _parts(groups: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    start = 0
    for number in range(count):
        size = len(groups) // count + (number < len(groups) % count)
        yield groups[start : start + size]
        start += size
