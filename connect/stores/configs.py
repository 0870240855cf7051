"""The config topic: configured connectors, and other state that workers of a group must agree on."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from connect.stores.topic import Entry, StoreLog
from connect.stores.values import decoded, encoded

if TYPE_CHECKING:
    from broker.client import KafkaRecord

__all__ = [
    "ConfigListener",
    "ConfigStore",
    "LeaderWriter",
    "RestartRequest",
    "SessionKey",
    "StoredConnector",
    "TargetState",
]


class TargetState(Enum):
    """The state that a user requested for a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(slots=True)
class StoredConnector:
    """One connector. ``tasks`` are the committed configurations of its tasks; None before the first complete commit."""

    config: dict[str, str]
    target: TargetState = TargetState.STARTED
    tasks: list[dict[str, str]] | None = None
    applied: dict[str, str] | None = None
    """The connector's configuration as it was when its tasks were committed: what they run with."""
    owner: str = ""
    """The user who put the configuration, where users are asked for."""
    applied_owner: str = ""
    """The owner by the time of ``applied``."""
    created_at: int = -1
    """The position of the config topic after the record that created the connector."""
    committed_at: int = -1
    """The position after the commit of its tasks."""
    generation: int = -1
    """The number of commits, from 0 for the first one that this worker has read."""
    pending_fencing: bool = True
    """Whether producers of tasks from before that commit may still be active (exactly-once sources)."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """The key with which workers sign their requests to each other; ``created_ms`` since 1970."""

    secret: bytes = field(repr=False)
    algorithm: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """A request to restart a connector and optionally its tasks: all of them or only failed ones."""

    connector: str
    include_tasks: bool = False
    only_failed: bool = False

    @property
    def impact(self) -> tuple[bool, bool]:
        """Of two requests for the same connector the one with the larger impact is carried out."""
        return not self.only_failed, self.include_tasks


class ConfigListener(Protocol):
    """Is notified of each record after it was applied, on the event loop; also of old records unless stated otherwise."""

    def on_connector(self, name: str) -> None:
        """The configuration, target state or tasks of a connector have changed."""

    def on_restart(self, request: RestartRequest) -> None:
        """A restart was requested; not called for records read at the start."""

    def on_logger_level(self, namespace: str, level: str) -> None:
        """A logger's level was set for all workers; not called for records read at the start."""


class LeaderWriter(Protocol):
    """Writes for the leader, if its writes must fence those of earlier leaders."""

    async def write(self, topic: str, entries: Sequence[Entry]) -> None: ...


class ConfigStore:
    """Can be read at any time. Records that only the leader may write go through ``leader_writer``, if there is one."""

    def __init__(self, log: StoreLog, listener: ConfigListener) -> None:
        self._topic = log
        self._listener = listener
        self._tasks: dict[str, dict[int, dict[str, str]]] = {}
        self._targets: dict[str, TargetState] = {}
        self._fenced: dict[str, int] = {}
        self._started = False
        self.leader_writer: LeaderWriter | None = None
        self.connectors: dict[str, StoredConnector] = {}
        self.session_key: SessionKey | None = None
        self.position = -1
        """The offset after the newest applied record; -1 before the first, as group members report it."""

    async def start(self) -> None:
        await self._topic.start(self._apply)
        self._started = True

    async def stop(self) -> None:
        await self._topic.stop()

    @property
    def failure(self) -> BaseException | None:
        """Why the topic is no longer followed; None while it is."""
        return self._topic.failure

    async def refresh(self, timeout_s: float | None = None) -> None:
        """Returns when everything currently in the topic has been applied. Raises TimeoutError."""
        async with asyncio.timeout(timeout_s):
            await self._topic.read_to_end()

    def items(self) -> Iterable[tuple[str, int]]:
        """All items to run: a name with -1 for each connector, with a number for each of its tasks."""
        for name, stored in self.connectors.items():
            yield name, -1
            for number in range(len(stored.tasks or ())):
                yield name, number

    def fenced_tasks(self, name: str) -> int | None:
        """The task count in the newest ``tasks-fencing`` record of a connector; None if there is none."""
        return self._fenced.get(name)

    async def put_connector(
        self, name: str, config: Mapping[str, str], target: TargetState | None = None, *, owner: str = ""
    ) -> None:
        """Create or change a connector; its ``target`` is written first. Kafka Connect's workers ignore the ``owner``."""
        value = {"properties": dict(config)} | ({"owner": owner} if owner else {})
        entries: list[Entry] = [(f"connector-{name}".encode(), encoded(value))]
        if target is not None:
            entries.insert(0, _target_entry(name, target))
        await self._lead(entries)

    async def remove_connector(self, name: str) -> None:
        await self._lead([(f"connector-{name}".encode(), None), (f"target-state-{name}".encode(), None)])

    async def put_target(self, name: str, target: TargetState) -> None:
        await self._topic.write(_target_entry(name, target))

    async def put_tasks(self, name: str, tasks: Sequence[Mapping[str, str]]) -> None:
        """Replace the tasks of a connector; they take effect with the commit record."""
        entries = [
            (f"task-{name}-{number}".encode(), encoded({"properties": dict(task)})) for number, task in enumerate(tasks)
        ]
        await self._lead([*entries, (f"commit-{name}".encode(), encoded({"tasks": len(tasks)}))])

    async def put_fencing(self, name: str, tasks: int) -> None:
        """Record that no producer of a task from before the newest commit can write any more."""
        await self._lead([(f"tasks-fencing-{name}".encode(), encoded({"task-count": tasks}))])

    async def put_restart(self, request: RestartRequest) -> None:
        value = {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
        await self._lead([(f"restart-connector-{request.connector}".encode(), encoded(value))])

    async def put_session_key(self, key: SessionKey) -> None:
        secret = base64.b64encode(key.secret).decode()
        value = {"key": secret, "algorithm": key.algorithm, "creation-timestamp": key.created_ms}
        await self._lead([(b"session-key", encoded(value))])

    async def put_logger_level(self, namespace: str, level: str) -> None:
        await self._topic.write((f"logger-cluster-{namespace}".encode(), encoded({"level": level})))

    async def _lead(self, entries: Sequence[Entry]) -> None:
        if self.leader_writer is None:
            await self._topic.write(*entries)
        else:
            await self.leader_writer.write(self._topic.name, entries)
            await self._topic.read_to_end()

    def _apply(self, record: KafkaRecord) -> None:
        key = (record.key or b"").decode("utf-8", "replace")
        value = decoded(record.value, self._topic.name, key)
        self.position = record.offset + 1
        if key.startswith("connector-"):
            self._apply_connector(key.removeprefix("connector-"), value, record.value is None)
        elif key.startswith("target-state-"):
            self._apply_target(key.removeprefix("target-state-"), value)
        elif key.startswith("task-"):
            connector, _, number = key.removeprefix("task-").rpartition("-")
            if value is not None and number.isdecimal():
                self._tasks.setdefault(connector, {})[int(number)] = _properties(value)
        elif key.startswith("commit-"):
            self._apply_commit(key.removeprefix("commit-"), value)
        elif key.startswith("tasks-fencing-"):
            self._apply_fencing(key.removeprefix("tasks-fencing-"), value)
        elif key == "session-key":
            self._apply_session_key(value)
        elif self._started and value is not None:
            self._apply_event(key, value)

    def _apply_connector(self, name: str, value: dict[str, Any] | None, removed: bool) -> None:
        if removed:
            self.connectors.pop(name, None)
            self._tasks.pop(name, None)
        elif value is None or not isinstance(value.get("properties"), Mapping):
            return
        else:
            if name not in self.connectors:
                target = self._targets.get(name, TargetState.STARTED)
                self.connectors[name] = StoredConnector({}, target, created_at=self.position)
            self.connectors[name].config = _properties(value)
            self.connectors[name].owner = str(value.get("owner") or "")
        self._listener.on_connector(name)

    def _apply_target(self, name: str, value: dict[str, Any] | None) -> None:
        try:
            target = TargetState((value or {}).get("state.v2") or (value or {}).get("state") or "STARTED")
        except ValueError:
            return
        self._targets[name] = target
        if name in self.connectors:
            self.connectors[name].target = target
            self._listener.on_connector(name)

    def _apply_commit(self, name: str, value: dict[str, Any] | None) -> None:
        """A commit whose tasks are incomplete (compaction removed some) is ignored: the connector is planned again."""
        count = (value or {}).get("tasks")
        tasks = self._tasks.pop(name, {})
        stored = self.connectors.get(name)
        if stored is None or not isinstance(count, int):
            return
        whole = count >= 0 and len(tasks) >= count and all(number in tasks for number in range(count))
        stored.tasks = [tasks[number] for number in range(count)] if whole else None
        stored.committed_at, stored.pending_fencing = self.position, True
        if whole:
            stored.applied, stored.applied_owner = stored.config, stored.owner
            stored.generation += 1
        self._listener.on_connector(name)

    def _apply_fencing(self, name: str, value: dict[str, Any] | None) -> None:
        count = (value or {}).get("task-count")
        if isinstance(count, int):
            self._fenced[name] = count
            if name in self.connectors:
                self.connectors[name].pending_fencing = False

    def _apply_session_key(self, value: dict[str, Any] | None) -> None:
        fields = value or {}
        key, algorithm, created = fields.get("key"), fields.get("algorithm"), fields.get("creation-timestamp")
        if not (isinstance(key, str) and isinstance(algorithm, str) and isinstance(created, int)):
            return
        try:
            self.session_key = SessionKey(base64.b64decode(key), algorithm, created)
        except (binascii.Error, ValueError):
            return

    def _apply_event(self, key: str, value: dict[str, Any]) -> None:
        if key.startswith("restart-connector-"):
            with_tasks, failed = value.get("include-tasks") is True, value.get("only-failed") is True
            self._listener.on_restart(RestartRequest(key.removeprefix("restart-connector-"), with_tasks, failed))
        elif key.startswith("logger-cluster-") and isinstance(value.get("level"), str):
            self._listener.on_logger_level(key.removeprefix("logger-cluster-"), value["level"])


def _target_entry(name: str, target: TargetState) -> Entry:
    # Workers without the stopped state read only the first member; for them it is paused.
    old = "PAUSED" if target is TargetState.STOPPED else target.value
    return f"target-state-{name}".encode(), encoded({"state": old, "state.v2": target.value})


def _properties(value: Mapping[str, Any]) -> dict[str, str]:
    properties = value.get("properties")
    return {str(k): v for k, v in properties.items() if v is not None} if isinstance(properties, Mapping) else {}
