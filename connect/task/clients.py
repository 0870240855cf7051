"""The Kafka clients of a task: named and set up as Kafka Connect does, on one event loop per process, used from threads."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import re
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from connect.config.connector import override_properties
from connect.config.worker import WorkerConfig, client_properties
from connect.task.control import Stopped, TaskControl
from connect.task.exactly_once import transactional_id
from tidegate.kit.config import parse
from tidegate.kit.errors import RetriableError, TidegateError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.client import Ack, ClientConfig

__all__ = ["LAST_WORDS_S", "ClientLoop", "TaskClients", "follow", "patiently", "worker_client"]

LAST_WORDS_S: Final = 1.0
"""How long a producer that is closed waits for what was not acknowledged yet: its task has waited before."""

logger = get_logger(__name__)
T = TypeVar("T")

_LOOK_S: Final = 0.2
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
_LAST_CALL_S: Final = 2.0
"""How long a call may go on once the task was told to stop, within the time that the task has for that. What is not
committed then is done again by whoever runs the task next."""
_NEXT_LAST_CALL_S: Final = 0.5
"""The same once a call has gone on for that long: the cluster is away or slow, and what comes after is to leave the group in time."""

_FOR_EVER_MS: Final = str(2**31 - 1)
_SECURITY: Final = ("sasl.", "ssl.", "security.")
_LOGIN: Final = re.compile(r"(^|\.)(sasl\.|basic\.auth\.user\.info$)")


class ClientLoop:
    """The background loop of this process (``broker.client.blocking``), as one task's thread uses it: no call outlives the
    order to stop for long, whatever the cluster does."""

    def __init__(self, control: TaskControl) -> None:
        self._control, self._gave_up = control, False

    def last_wait_s(self) -> float:
        """How long a call may go on once the task was told to stop."""
        return self._control.time_left_s(_NEXT_LAST_CALL_S if self._gave_up else _LAST_CALL_S)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start it; from any thread but the loop's own."""
        from broker.client.blocking.background import submit

        return submit(work)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it and wait for its result. Raises RetriableError where it has none some time after the task was told to stop."""
        return self.wait(self.submit(work))

    def wait(self, future: Future[T], within_s: float = math.inf) -> T:
        """The same for work that was submitted before, which may also have a deadline of its own."""
        deadline, stopping = time.monotonic() + within_s, False
        while True:
            try:
                return future.result(_LOOK_S)
            except TimeoutError:
                if future.done():  # just now, or it was the work that ran out of time
                    return future.result()
            now = time.monotonic()
            if self._control.stopping.is_set() and not stopping:
                stopping, deadline = True, min(deadline, now + self.last_wait_s())
            if now >= deadline or (stopping and self._control.cancelled):
                future.cancel()
                self._gave_up = self._gave_up or stopping
                within = "before the task had to stop" if stopping else f"within {within_s:g} s"
                raise RetriableError(f"the log did not answer {within}")

    def patiently(self, attempt: Callable[[], Coroutine[Any, Any, T]], about: str) -> T:
        """Return the result of ``attempt``; see ``patiently``."""
        return patiently(lambda: self.run(attempt()), self._control.stopping, about)


def patiently(attempt: Callable[[], T], stopping: threading.Event, about: str) -> T:
    """Return the result of ``attempt``, repeated while its error is retriable: a cluster that is away comes
    back. Raises Stopped when the task is to stop."""
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return attempt()
        except TidegateError as error:
            if not error.retriable:
                raise
            if not stopping.is_set():
                logger.warning("not possible now; trying again", about=about, error=str(error))
        if stopping.wait(pause_s):
            raise Stopped
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


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
        worker = self._worker
        if worker.get("connector.rights") == "owner" and "bootstrap.servers" in overrides:
            # The login of the owner is for this platform: another cluster could ask for it in plain text, and use it here.
            worker = {name: value for name, value in worker.items() if not _LOGIN.search(name)}
        settings = {**fixed, **client_properties(worker, kind, overrides)}
        return ClientConfig(settings.pop("bootstrap.servers", self._worker["bootstrap.servers"]), settings)

    def _at_producers_cluster(self, kind: str, fixed: Mapping[str, str]) -> ClientConfig:
        return dataclasses.replace(
            self._config(kind, fixed), bootstrap_servers=self._config("producer", {}).bootstrap_servers
        )

    def producer(self) -> ClientConfig:
        """Of a source's records; it tries for ever, since a broker that is away comes back."""
        settings = {"client.id": f"connector-producer-{self._connector}-{self._task}"}
        return self._config("producer", settings | {"acks": "all", "delivery.timeout.ms": _FOR_EVER_MS})

    def transactional_producer(self) -> ClientConfig:
        """Of a source's records and offsets together; a second one of the same task ends what the first one can do."""
        name = transactional_id(parse(WorkerConfig, self._worker).group_id, self._connector, self._task)
        return self.producer().with_properties({"transactional.id": name, "enable.idempotence": "true"})

    def offsets_producer(self) -> ClientConfig:
        """Of a source's offsets in the worker's topic, in the worker's cluster whatever the connector overrides."""
        settings = {"client.id": f"connector-offsets-{self._connector}-{self._task}", "acks": "all"}
        return worker_client(self._worker, "producer").with_properties(settings)

    def own_offsets_producer(self) -> ClientConfig:
        """Of a source's offsets in a topic of its own, in the cluster of its records."""
        return self.producer().with_properties({"client.id": f"connector-offsets-{self._connector}-{self._task}"})

    def own_offsets_consumer(self) -> ClientConfig:
        """Reads such a topic, without what a transaction that was not committed left there."""
        settings = {"client.id": f"connector-offsets-{self._connector}-{self._task}"}
        return self._at_producers_cluster("consumer", settings).with_properties({"isolation.level": "read_committed"})

    def own_offsets_admin(self) -> ClientConfig:
        """Creates such a topic."""
        return self._at_producers_cluster("admin", {"client.id": f"connector-offsets-{self._connector}-{self._task}"})

    def dead_letter_producer(self) -> ClientConfig:
        settings = {"client.id": f"connector-dlq-producer-{self._connector}-{self._task}"}
        return self._config("producer", settings | {"acks": "all", "delivery.timeout.ms": _FOR_EVER_MS})

    @property
    def consumer_id(self) -> str:
        """The ``client.id`` of the consumer, unless the connector has its own for all its tasks."""
        return f"connector-consumer-{self._connector}-{self._task}"

    def consumer(self) -> ClientConfig:
        """Of a sink, in the group ``connect-<connector>``."""
        settings = {
            "client.id": self.consumer_id,
            "group.id": f"connect-{self._connector}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            # A misspelt topic stays missing, so that the task can say so, and one whose source comes later is made as that says.
            "allow.auto.create.topics": "false",
            "fetch.max.bytes": str(8 * 1024 * 1024),
            "max.partition.fetch.bytes": str(4 * 1024 * 1024),
            # Kafka's own default would have the partitions of a killed worker rest for 45 s.
            "session.timeout.ms": "10000",
        }
        return self._config("consumer", settings)

    def admin(self) -> ClientConfig:
        return self._config("admin", {"client.id": f"connector-adminclient-{self._connector}-{self._task}"})


def follow(sent: asyncio.Future[Ack], future: Future[Ack]) -> None:
    """Have a thread's future end as the loop's does."""

    def copy_result(done: asyncio.Future[Ack]) -> None:
        if done.cancelled():
            future.cancel()
        elif (error := done.exception()) is not None:
            future.set_exception(error)
        else:
            future.set_result(done.result())

    sent.add_done_callback(copy_result)
