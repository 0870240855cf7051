"""The status topic: states of connectors and tasks, and the topics they have used."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from connect.stores.topic import StoreLog
from connect.stores.values import decoded, encoded

if TYPE_CHECKING:
    from broker.client import KafkaRecord

__all__ = ["State", "Status", "StatusStore"]

_FLOW: Final = "status-flow-"


class State(Enum):
    """Kafka Connect's states; STOPPED is a connector's only."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"
    DESTROYED = "DESTROYED"


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a connector or task. ``trace`` says why it failed."""

    state: State
    worker_id: str
    generation: int = 1
    trace: str | None = None
    version: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The form in the REST API."""
        shown: dict[str, Any] = {"state": self.state.value, "worker_id": self.worker_id}
        if self.version is not None:
            shown["version"] = self.version
        if self.trace:
            shown["trace"] = self.trace
        return shown


class StatusStore:
    """The newest status of everything, as far as the topic has been read.

    ``on_status`` is called with the name of a connector that has a new status, of its own or of a task, with the task's
    number.
    """

    def __init__(self, log: StoreLog, on_status: Callable[[str, int | None], None] = lambda *_: None) -> None:
        self._topic = log
        self._on_status = on_status
        self.connectors: dict[str, Status] = {}
        self.tasks: dict[str, dict[int, Status]] = {}
        self.topics: dict[str, set[str]] = {}
        self.flows: dict[str, dict[str, dict[str, Any]]] = {}
        """The flows of each connector, from where to where, by the record's key, as ``connect.task.lineage.Flow`` writes them."""

    async def start(self) -> None:
        await self._topic.start(self._apply)

    async def stop(self) -> None:
        await self._topic.stop()

    @property
    def failure(self) -> BaseException | None:
        """Why the topic is no longer followed; None while it is."""
        return self._topic.failure

    async def put_connector(self, name: str, status: Status | None, *, safe: bool = False) -> None:
        """Returns when it is applied; None deletes.

        A ``safe`` status is dropped if another worker has written a newer one meanwhile: the last status of the old
        owner must not follow the first one of the new owner.
        """
        if safe and not _newest(self.connectors.get(name), status):
            return
        await self._topic.write((f"status-connector-{name}".encode(), _status_bytes(status)))

    async def put_task(self, name: str, task: int, status: Status | None, *, safe: bool = False) -> None:
        """Like ``put_connector``."""
        if safe and not _newest(self.tasks.get(name, {}).get(task), status):
            return
        await self._topic.write((f"status-task-{name}-{task}".encode(), _status_bytes(status)))

    async def put_topic(self, name: str, task: int, topic: str) -> None:
        """Record that a connector uses a topic."""
        now_ms = int(time.time() * 1000)
        value = {"topic": {"name": topic, "connector": name, "task": task, "discoverTimestamp": now_ms}}
        await self._topic.write((f"status-topic-{topic}:connector-{name}".encode(), encoded(value)))

    def has_flow(self, name: str, flow: Mapping[str, Any]) -> bool:
        return self.flows.get(name, {}).get(_flow_key(name, flow)) == flow

    async def put_flow(self, name: str, flow: Mapping[str, Any]) -> None:
        """Record what a connector moves. Kafka Connect's workers pass over these records."""
        await self._topic.write((_flow_key(name, flow).encode(), encoded({"connector": name, "flow": flow})))

    async def forget_topics(self, name: str) -> None:
        """Delete what is recorded of a connector's topics, and of what it moved."""
        topics = [f"status-topic-{topic}:connector-{name}" for topic in sorted(self.topics.get(name, ()))]
        await self._topic.write(*((key.encode(), None) for key in (*topics, *self.flows.get(name, ()))))

    async def forget(self, name: str, tasks: list[int], *, connector: bool) -> None:
        """Delete the statuses of tasks, and optionally of the connector."""
        keys = [f"status-task-{name}-{task}" for task in tasks]
        if connector:
            keys.append(f"status-connector-{name}")
        await self._topic.write(*((key.encode(), None) for key in keys))

    def _apply_flow(self, key: str, value: Mapping[str, Any] | None) -> None:
        if value is None:
            for flows in self.flows.values():
                flows.pop(key, None)
            return
        name, flow = value.get("connector"), value.get("flow")
        if isinstance(name, str) and isinstance(flow, dict) and isinstance(flow.get("topic"), str):
            self.flows.setdefault(name, {})[key] = flow

    def _apply(self, record: KafkaRecord) -> None:
        key = (record.key or b"").decode("utf-8", "replace")
        value = decoded(record.value, self._topic.name, key)
        if key.startswith("status-topic-"):
            topic, _, name = key.removeprefix("status-topic-").partition(":connector-")
            used = self.topics.setdefault(name, set())
            used.discard(topic) if value is None else used.add(topic)
        elif key.startswith(_FLOW):
            self._apply_flow(key, value)
        elif key.startswith("status-connector-"):
            name = key.removeprefix("status-connector-")
            _keep(self.connectors, name, value)
            self._on_status(name, None)
        elif key.startswith("status-task-"):
            name, _, number = key.removeprefix("status-task-").rpartition("-")
            if number.isdecimal():
                _keep(self.tasks.setdefault(name, {}), int(number), value)
                self._on_status(name, int(number))


def _flow_key(name: str, flow: Mapping[str, Any]) -> str:
    named = json.dumps([name, flow["topic"], flow["dataset"]])
    return f"{_FLOW}{hashlib.sha256(named.encode()).hexdigest()[:32]}"


def _newest(known: Status | None, status: Status | None) -> bool:
    return (
        known is None or status is None or known.worker_id == status.worker_id or known.generation <= status.generation
    )


def _status_bytes(status: Status | None) -> bytes | None:
    if status is None:
        return None
    return encoded(
        {
            "state": status.state.value,
            "trace": status.trace,
            "worker_id": status.worker_id,
            "generation": status.generation,
            "version": status.version,
        }
    )


def _keep(known: dict[Any, Status], name: Any, value: dict[str, Any] | None) -> None:
    try:
        state = State((value or {}).get("state", "DESTROYED"))
    except ValueError:
        return
    if value is None or state is State.DESTROYED:
        known.pop(name, None)
        return
    generation, trace, version = value.get("generation"), value.get("trace"), value.get("version")
    known[name] = Status(
        state,
        str(value.get("worker_id", "")),
        generation if isinstance(generation, int) else 0,
        str(trace) if trace else None,
        str(version) if version else None,
    )
