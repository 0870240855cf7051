"""The Kafka clients of a task: named and set up as Kafka Connect does, on one event loop per process, used from threads."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from connect.config import client_properties
from connect.connector_config import override_properties

if TYPE_CHECKING:
    from broker.client import ClientConfig

__all__ = ["ClientLoop", "TaskClients", "worker_client"]

T = TypeVar("T")

_FOR_EVER_MS: Final = str(2**31 - 1)
_SECURITY: Final = ("sasl.", "ssl.", "security.")


class ClientLoop:
    """The background loop of this process (``broker.client.blocking``), as a thing that can be handed over."""

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start it; from any thread but the loop's own."""
        from broker.client.blocking.background import submit

        return submit(work)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it and wait for its result."""
        from broker.client.blocking import call

        return call(work)


def worker_client(worker: Mapping[str, str], kind: str = "admin") -> ClientConfig:
    """How the worker itself reaches the log."""
    from broker.client import ClientConfig

    return ClientConfig(worker["bootstrap.servers"], client_properties(worker, kind))


class TaskClients:
    """Configurations of one task's clients: the worker's settings, then the connector's overrides as policy permits."""

    def __init__(self, worker: Mapping[str, str], connector: str, task: int, properties: Mapping[str, str]) -> None:
        self._worker, self._connector, self._task, self._properties = worker, connector, task, properties
        self._policy = worker.get("connector.client.config.override.policy", "All")

    def _config(self, kind: str, fixed: Mapping[str, str]) -> ClientConfig:
        from broker.client import ClientConfig

        overrides = override_properties(self._properties, kind)
        if self._policy == "None":
            overrides = {}
        elif self._policy == "Principal":
            overrides = {name: value for name, value in overrides.items() if name.startswith(_SECURITY)}
        settings = {**fixed, **client_properties(self._worker, kind, overrides)}
        return ClientConfig(settings.pop("bootstrap.servers", self._worker["bootstrap.servers"]), settings)

    def producer(self) -> ClientConfig:
        """Of a source's records; it tries for ever, since a broker that is away comes back."""
        own = {"client.id": f"connector-producer-{self._connector}-{self._task}"}
        return self._config("producer", own | {"acks": "all", "delivery.timeout.ms": _FOR_EVER_MS})

    def offsets_producer(self) -> ClientConfig:
        """Of a source's offsets, in the worker's cluster whatever the connector overrides."""
        own = {"client.id": f"connector-offsets-{self._connector}-{self._task}", "acks": "all"}
        return worker_client(self._worker, "producer").with_properties(own)

    def dead_letter_producer(self) -> ClientConfig:
        own = {"client.id": f"connector-dlq-producer-{self._connector}-{self._task}"}
        return self._config("producer", own | {"acks": "all", "delivery.timeout.ms": _FOR_EVER_MS})

    def consumer(self) -> ClientConfig:
        """Of a sink, in the group ``connect-<connector>``."""
        own = {
            "client.id": f"connector-consumer-{self._connector}-{self._task}",
            "group.id": f"connect-{self._connector}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "fetch.max.bytes": str(8 * 1024 * 1024),
            "max.partition.fetch.bytes": str(4 * 1024 * 1024),
            # Kafka's own default would have the partitions of a killed worker rest for 45 s.
            "session.timeout.ms": "10000",
        }
        return self._config("consumer", own)

    def admin(self) -> ClientConfig:
        return self._config("admin", {"client.id": f"connector-adminclient-{self._connector}-{self._task}"})
