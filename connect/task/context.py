"""The context of a running task: its name and number, its offsets, clients, and the order to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connect.api import ConnectError, ErrantRecordReporter, RecordBatch, TopicPartition, TransactionContext
from connect.stores.offsets import canonical

if TYPE_CHECKING:
    from broker.client import ClientConfig
    from registry.client import RegistryClient

__all__ = [
    "RunningJobContext",
    "RunningSinkContext",
    "RunningSourceContext",
    "RunningSourceJobContext",
    "RunningTaskContext",
]


class RunningTaskContext:
    """A TaskContext. ``registry`` are settings of a registry client; ``tell_progress`` gets what the task says of its progress, as JSON."""

    def __init__(
        self,
        connector: str,
        task: int,
        properties: Mapping[str, str],
        *,
        stopping: threading.Event,
        kafka: ClientConfig,
        registry: Mapping[str, str] | None = None,
        tell_progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.connector, self.task, self.properties = connector, task, properties
        self.stopping, self.kafka = stopping, kafka
        self._registry_settings, self._tell_progress = registry or {}, tell_progress
        self._registry: RegistryClient | None = None

    def registry(self) -> RegistryClient:
        from registry.client import RegistryClient

        if not self._registry_settings.get("schema.registry.url"):
            raise ConnectError("the worker has no schema registry: set schema.registry.url in its configuration")
        if self._registry is None:
            self._registry = RegistryClient.from_properties(self._registry_settings)
        return self._registry

    @property
    def registry_properties(self) -> Mapping[str, str]:
        return self._registry_settings

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
        if self._tell_progress is None:
            return
        told: dict[str, Any] = {"task": self.task, "done": done, "total": total, "unit": unit, "note": note}
        if seconds_left is not None:
            told["seconds_left"] = seconds_left
        if parts:
            told["parts"] = [dict(part) for part in parts]
        self._tell_progress(told)


class RunningJobContext(RunningTaskContext):
    """A JobTaskContext. ``leave_out`` gets each record that the engine could not decode, ``commit`` the offsets up to which it is
    done."""

    def __init__(
        self,
        *args: Any,
        tolerates_errors: bool,
        leave_out: Callable[[RecordBatch, Exception], None],
        interrupted: threading.Event,
        commit: Callable[[Mapping[TopicPartition, int]], None],
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.tolerates_errors, self.leave_out = tolerates_errors, leave_out
        self.interrupted, self.commit = interrupted, commit


class RunningSourceContext(RunningTaskContext):
    """A SourceTaskContext over the positions that were committed when the task started, and those since."""

    def __init__(
        self,
        *args: Any,
        offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]] = (),
        count_skipped: Callable[..., None] = lambda rows, dead_letters=0: None,
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.count_skipped = count_skipped
        self._offsets = {canonical(partition): offset for partition, offset in offsets}
        self.transaction: TransactionContext | None = None

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return self._offsets.get(canonical(partition))

    def remember(self, partition: Mapping[str, Any], offset: Mapping[str, Any]) -> None:
        """Take note of a position that has been committed."""
        self._offsets[canonical(partition)] = offset


class RunningSourceJobContext(RunningSourceContext):
    """A SourceJobTaskContext."""

    def __init__(self, *args: Any, create_topic: Callable[[str], int], **more: Any) -> None:
        super().__init__(*args, **more)
        self.create_topic = create_topic


class RunningSinkContext(RunningTaskContext):
    """A SinkTaskContext: wishes are noted here and carried out by the runner between two calls."""

    def __init__(self, *args: Any, errant_records: ErrantRecordReporter, **more: Any) -> None:
        super().__init__(*args, **more)
        self._errant_records = errant_records
        self.assigned: frozenset[TopicPartition] = frozenset()
        self.rewinds: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.pauses_changed = False
        self.commit_requested = False

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self.assigned

    @property
    def errant_records(self) -> ErrantRecordReporter:
        return self._errant_records

    def rewind(self, positions: Mapping[TopicPartition, int]) -> None:
        self.rewinds.update(positions)

    def pause(self, *partitions: TopicPartition) -> None:
        self._require_assigned(partitions)
        self.paused.update(partitions)
        self.pauses_changed = True

    def resume(self, *partitions: TopicPartition) -> None:
        self._require_assigned(partitions)
        self.paused.difference_update(partitions)
        self.pauses_changed = True

    def _require_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        foreign = [str(partition) for partition in partitions if partition not in self.assigned]
        if foreign:
            raise ConnectError(
                f"partitions {', '.join(foreign)} are not assigned to task {self.task} of {self.connector}"
            )

    def request_commit(self) -> None:
        self.commit_requested = True
