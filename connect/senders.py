"""A task's producers, used from its thread: of a source's records and offsets, and of dead letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from connect.clients import ClientLoop, TaskClients
from connect.connector_config import TopicGroup
from connect.stores.values import encoded
from connect.topics import create_topic
from tidegate.kit.config import parse

if TYPE_CHECKING:
    from broker.client import Ack, Admin, BatchProducer, ClientConfig, EncodedBatch, NewTopic

__all__ = ["DeadLetterSender", "KafkaOffsets", "KafkaSender", "TopicRules"]


class TopicRules:
    """How the topics of a source are created: by ``topic.creation.*``, else with the broker's defaults."""

    def __init__(self, groups: Mapping[str, Mapping[str, str]], *, enabled: bool, fit: bool) -> None:
        self._groups = {name: (parse(TopicGroup, values), values) for name, values in groups.items()}
        self.enabled, self.fit = enabled, fit

    def topic(self, name: str) -> NewTopic:
        from broker.client import NewTopic

        own = {"replication.factor", "partitions", "include", "exclude"}
        for group, values in self._groups.values():
            if group.takes(name):
                configs = {key: value for key, value in values.items() if key not in own}
                return NewTopic(name, group.partitions, group.replication_factor, configs)
        return NewTopic(name, -1, -1)


class KafkaSender:
    """The Sender of a source task."""

    def __init__(self, loop: ClientLoop, clients: TaskClients, rules: TopicRules) -> None:
        from broker.client import Admin, BatchProducer

        self._loop, self._rules = loop, rules
        self._counts: dict[str, int] = {}
        config = clients.producer()
        settings = config.producer()
        self.compression, self.max_request_bytes = settings.compression_type, settings.max_request_size
        self._admin: Admin = loop.run(Admin(clients.admin()).start())
        self._producer: BatchProducer = loop.run(BatchProducer(config).start())

    def partition_count(self, topic: str) -> int:
        if topic not in self._counts:
            if self._rules.enabled:
                self._loop.run(create_topic(self._admin, self._rules.topic(topic), fit=self._rules.fit))
            self._counts[topic] = len(self._loop.run(self._producer.partitions(topic)))
        return self._counts[topic]

    def send_batch(self, topic: str, partition: int, batch: EncodedBatch) -> Future[Ack]:
        future: Future[Ack] = Future()
        self._loop.run(self._send(topic, partition, batch, future))
        return future

    async def _send(self, topic: str, partition: int, batch: EncodedBatch, future: Future[Ack]) -> None:
        sent = await self._producer.send_batch(topic, partition, batch)

        def settle(done: Any) -> None:
            if done.cancelled():
                future.cancel()
            elif (error := done.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(done.result())

        sent.add_done_callback(settle)

    def close(self) -> None:
        self._loop.run(self._producer.stop())
        self._loop.run(self._admin.stop())


class KafkaOffsets:
    """The OffsetWriter of a source task."""

    def __init__(self, loop: ClientLoop, config: ClientConfig, topic: str) -> None:
        from broker.client import BatchProducer

        self._loop, self._topic = loop, topic
        self._producer: BatchProducer = loop.run(BatchProducer(config).start())

    def write(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        self._loop.run(self._write(offsets))

    async def _write(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        sent = [await self._producer.enqueue(self._topic, key, encoded(dict(value))) for key, value in offsets.items()]
        for future in sent:
            await future

    def close(self) -> None:
        self._loop.run(self._producer.stop())


class DeadLetterSender:
    """Sends single records to a sink's dead letter queue, which it creates if it is missing."""

    def __init__(self, loop: ClientLoop, clients: TaskClients, topic: NewTopic, *, fit: bool) -> None:
        from broker.client import BatchProducer

        self._loop = loop
        self._producer: BatchProducer = loop.run(BatchProducer(clients.dead_letter_producer()).start())
        loop.run(self._created(clients.admin(), topic, fit))

    @staticmethod
    async def _created(config: ClientConfig, topic: NewTopic, fit: bool) -> None:
        from broker.client import Admin

        async with Admin(config) as admin:
            await create_topic(admin, topic, fit=fit)

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        timestamp_ms: int | None,
    ) -> Future[Ack]:
        return self._loop.submit(self._producer.send(topic, key, value, headers, timestamp_ms=timestamp_ms))

    def close(self) -> None:
        self._loop.run(self._producer.stop())
