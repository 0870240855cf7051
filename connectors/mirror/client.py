"""Clients of the two clusters, and calls to them that end when the task stops."""

from __future__ import annotations

import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from connect.api import RetriableConnectError, TidegateError
from connectors.mirror.config import MirrorConfig

if TYPE_CHECKING:
    from broker.client import Admin, BatchConsumer, ClientConfig, KafkaRecord, TopicPartition

__all__ = ["Calls", "Side", "TopicReader", "admin_of", "client_config", "close", "create_compacted"]

T = TypeVar("T")
Side = Literal["source", "target"]
_LOOK_S: Final = 0.2
_CLUSTER_KEYS: Final = ("security.", "ssl.", "sasl.")
_NOT_OF_CLIENTS: Final = ("poll.timeout.ms", "timeout.ms", "override.")


def client_config(
    config: MirrorConfig, side: Side, kind: Literal["admin", "consumer", "producer"], role: str
) -> ClientConfig:
    """Configuration of a client of one cluster. ``role`` is the end of its client.id; the names are the original's."""
    from broker.client import ClientConfig

    cluster = config.source_cluster if side == "source" else config.target_cluster
    servers = config.source_servers if side == "source" else config.target_servers
    settings = {name: value for name, value in cluster.items() if name.startswith(_CLUSTER_KEYS)}
    for properties in (getattr(config, f"{kind}s"), getattr(config, f"{side}_{kind}s")):
        settings |= {name: value for name, value in properties.items() if not name.startswith(_NOT_OF_CLIENTS)}
    if kind == "consumer":
        settings = {"auto.offset.reset": "earliest", **settings, "enable.auto.commit": "false"}
    given_id = settings.get("client.id")
    settings["client.id"] = f"{given_id}|{role}" if given_id else role
    return ClientConfig(settings.pop("bootstrap.servers", ",".join(servers or ())), settings)


class Calls:
    """Runs the clients' coroutines from a thread; calls are cancelled when ``stopping`` is set."""

    def __init__(self, stopping: threading.Event) -> None:
        self.stopping = stopping

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result.

        Raises RetriableConnectError where the cluster is unreachable or the task is stopping.
        """
        from broker.client.blocking import submit

        future = submit(work)
        while True:
            try:
                return future.result(_LOOK_S)
            except TimeoutError:
                if not future.done() and self.stopping.is_set():
                    future.cancel()
                    raise RetriableConnectError("stopped before the cluster had answered") from None
            except TidegateError as error:
                if error.retriable:
                    raise RetriableConnectError(str(error)) from error
                raise


@contextmanager
def admin_of(calls: Calls, config: ClientConfig) -> Iterator[Admin]:
    """An admin client that is closed at the end of the block."""
    from broker.client import Admin

    admin = Admin(config)
    try:
        calls.run(admin.start())
        yield admin
    finally:
        close(admin.stop())


def create_compacted(calls: Calls, config: ClientConfig, topic: str, replication_factor: int) -> None:
    """Create a compacted topic with one partition, unless it exists."""
    from broker.client import NewTopic

    with admin_of(calls, config) as admin:
        new = NewTopic(topic, 1, replication_factor, {"cleanup.policy": "compact"})
        calls.run(admin.create_topics([new], exist_ok=True))


class TopicReader:
    """Reads partition 0 of a topic, continuing where the last call ended."""

    def __init__(self, calls: Calls, consumer: ClientConfig, admin: ClientConfig, topic: str) -> None:
        self._calls, self._consumer_config, self._admin_config = calls, consumer, admin
        self._topic = topic
        self._consumer: BatchConsumer | None = None
        self._position = -1

    def new_records(self) -> Iterator[KafkaRecord]:
        """The records up to the topic's current end that were not read before; none where the topic does not exist."""
        from broker.client import TopicPartition

        partition = TopicPartition(self._topic, 0)
        with admin_of(self._calls, self._admin_config) as admin:
            if self._topic not in self._calls.run(admin.list_topics(internal=True)):
                return
            end = self._calls.run(admin.end_offsets([partition]))[partition]
            start = self._calls.run(admin.beginning_offsets([partition]))[partition]
        if not start <= self._position <= end:  # at the first call, and after the topic was recreated
            self.close()
            self._position = start
        try:
            while self._position < end and not self._calls.stopping.is_set():
                consumer = self._consumer or self._opened(partition)
                for fetched in self._calls.run(consumer.fetch(max_wait_ms=int(1000 * _LOOK_S))):
                    yield from fetched.records()
                    self._position = fetched.next_offset
        except TidegateError:
            self.close()
            raise

    def _opened(self, partition: TopicPartition) -> BatchConsumer:
        from broker.client import BatchConsumer

        consumer = self._consumer = BatchConsumer(self._consumer_config)
        self._calls.run(consumer.start())
        self._calls.run(consumer.assign([partition]))
        self._calls.run(consumer.seek(partition, self._position))
        return consumer

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            close(consumer.stop())


def close(work: Coroutine[Any, Any, None]) -> None:
    """Close a client, with a short timeout."""
    from broker.client.blocking import call

    with suppress(TidegateError, TimeoutError):
        call(work, timeout_s=2)
