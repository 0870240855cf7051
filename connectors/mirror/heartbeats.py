"""Heartbeats: they show that records reach the target, and, once mirrored themselves, which clusters are connected."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from connect.api import ConnectorContext, OffsetChanges, RecordBatch, SourceConnector, SourceTask
from connectors.mirror.batches import batch_of
from connectors.mirror.client import Calls, client_config, create_compacted
from connectors.mirror.config import MirrorHeartbeatConfig
from connectors.mirror.positions import check_positions
from connectors.mirror.records import Heartbeat
from connectors.mirror.schedule import Schedule

__all__ = ["MirrorHeartbeatConnector", "MirrorHeartbeatTask"]


class MirrorHeartbeatTask(SourceTask[MirrorHeartbeatConfig]):
    """Writes one record per interval."""

    def poll(self) -> Sequence[RecordBatch]:
        config = self.config
        if self.context.stopping.wait(config.emit_s):
            return []
        now_ms = time.time_ns() // 1_000_000
        heartbeat = Heartbeat(config.source, config.target, now_ms)
        return [batch_of(heartbeat, config.policy.heartbeats_topic, now_ms)]


class MirrorHeartbeatConnector(SourceConnector[MirrorHeartbeatConfig]):
    """Creates the topic and starts one task."""

    config_class: ClassVar[type[Any]] = MirrorHeartbeatConfig
    task_class = MirrorHeartbeatTask

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        texts = ("sourceClusterAlias", "targetClusterAlias")
        check_positions(offsets, texts=texts, only_zero=True, partition=False)
        return True

    def __init__(self, config: MirrorHeartbeatConfig, properties: Mapping[str, str], context: ConnectorContext) -> None:
        super().__init__(config, properties, context)
        self._stopping = threading.Event()
        self._schedule: Schedule | None = None

    def start(self) -> None:
        config = self.config
        label = config.label(self.context.name)
        target = client_config(config, "target", "admin", f"{label}|heartbeats-target-admin")

        def create() -> None:
            topic = config.policy.heartbeats_topic
            create_compacted(Calls(self._stopping), target, topic, config.replication_factor)

        schedule = self._schedule = Schedule(self._stopping, create, label)
        schedule.start()
        schedule.began.wait(config.admin_timeout_ms / 1000)

    def task_properties(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self.properties] if self.config.emits and self.config.emit_s >= 0 else []

    def stop(self) -> None:
        self._stopping.set()
        if self._schedule is not None:
            self._schedule.stop()
