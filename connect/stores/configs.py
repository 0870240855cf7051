"""Connectors as they are configured: the config topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from connect.stores.topic import CompactedTopic, TopicClients
from connect.stores.values import decoded, encoded

if TYPE_CHECKING:
    from broker.client import KafkaRecord, NewTopic

__all__ = ["ConfigStore", "StoredConnector", "TargetState"]


class TargetState(Enum):
    """What a user wants of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(slots=True)
class StoredConnector:
    """One connector. ``tasks`` are the committed configurations of its tasks; None until there was a whole commit."""

    config: dict[str, str]
    target: TargetState = TargetState.STARTED
    tasks: list[dict[str, str]] | None = None


@dataclass(slots=True)
class _Pending:
    """What came before its connector, or waits for its commit."""

    tasks: dict[int, dict[str, str]] = field(default_factory=dict)
    target: TargetState = TargetState.STARTED


class ConfigStore:
    """Read freely; ``on_change`` hears the name of each connector that a record was about."""

    def __init__(self, clients: TopicClients, topic: NewTopic, on_change: Callable[[str], None]) -> None:
        self._topic = CompactedTopic(clients, topic, self._apply)
        self._on_change = on_change
        self._pending: dict[str, _Pending] = {}
        self.connectors: dict[str, StoredConnector] = {}

    async def start(self) -> None:
        await self._topic.start()

    async def stop(self) -> None:
        await self._topic.stop()

    @property
    def failure(self) -> BaseException | None:
        """Why the topic is not followed any more; None while it is."""
        return self._topic.failure

    async def put_connector(self, name: str, config: Mapping[str, str]) -> None:
        await self._topic.write(f"connector-{name}".encode(), encoded({"properties": dict(config)}))

    async def remove_connector(self, name: str) -> None:
        await self._topic.send(f"connector-{name}".encode(), None)
        await self._topic.write(f"target-state-{name}".encode(), None)

    async def put_target(self, name: str, target: TargetState) -> None:
        # Workers older than the stopped state read the first member only; to them it is paused.
        old = "PAUSED" if target is TargetState.STOPPED else target.value
        await self._topic.write(f"target-state-{name}".encode(), encoded({"state": old, "state.v2": target.value}))

    async def put_tasks(self, name: str, tasks: Sequence[Mapping[str, str]]) -> None:
        """Replace the tasks of a connector; they count once the commit record is there."""
        for number, task in enumerate(tasks):
            await self._topic.send(f"task-{name}-{number}".encode(), encoded({"properties": dict(task)}))
        await self._topic.write(f"commit-{name}".encode(), encoded({"tasks": len(tasks)}))

    def _apply(self, record: KafkaRecord) -> None:
        key = (record.key or b"").decode("utf-8", "replace")
        value = decoded(record.value, self._topic.name, key)
        name: str | None = None
        if key.startswith("connector-"):
            name = self._apply_connector(key.removeprefix("connector-"), value)
        elif key.startswith("target-state-"):
            name = self._apply_target(key.removeprefix("target-state-"), value)
        elif key.startswith("task-"):
            connector, _, number = key.removeprefix("task-").rpartition("-")
            if value is not None and number.isdecimal():
                self._pending.setdefault(connector, _Pending()).tasks[int(number)] = _properties(value)
        elif key.startswith("commit-"):
            name = self._apply_commit(key.removeprefix("commit-"), value)
        if name is not None:
            self._on_change(name)

    def _apply_connector(self, name: str, value: dict[str, Any] | None) -> str:
        if value is None:
            self.connectors.pop(name, None)
            self._pending.pop(name, None)
        elif name in self.connectors:
            self.connectors[name].config = _properties(value)
        else:
            pending = self._pending.setdefault(name, _Pending())
            self.connectors[name] = StoredConnector(_properties(value), pending.target)
        return name

    def _apply_target(self, name: str, value: dict[str, Any] | None) -> str:
        try:
            target = TargetState((value or {}).get("state.v2") or (value or {}).get("state") or "STARTED")
        except ValueError:
            return name
        self._pending.setdefault(name, _Pending()).target = target
        if name in self.connectors:
            self.connectors[name].target = target
        return name

    def _apply_commit(self, name: str, value: dict[str, Any] | None) -> str | None:
        """A commit whose tasks are not all there (compaction took some) does not count: the connector is planned anew."""
        count = (value or {}).get("tasks")
        if name not in self.connectors or not isinstance(count, int):
            return None
        pending = self._pending.setdefault(name, _Pending()).tasks
        whole = all(number in pending for number in range(count))
        self.connectors[name].tasks = [pending[number] for number in range(count)] if whole else None
        return name


def _properties(value: Mapping[str, Any]) -> dict[str, str]:
    properties = value.get("properties")
    return {str(k): v for k, v in properties.items() if v is not None} if isinstance(properties, Mapping) else {}
