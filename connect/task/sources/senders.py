"""A task's producers, used from its thread: of a source's records and offsets, and of dead letters."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, Protocol

from connect.api import ConnectError
from connect.config.connector import TopicGroup
from connect.stores.topics import create_topic
from connect.stores.values import encoded
from connect.task.clients import LAST_WORDS_S, ClientLoop, TaskClients, follow
from tidegate.kit.config import parse
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.client import Ack, BatchProducer, ClientConfig, EncodedBatch, NewTopic

__all__ = ["KafkaOffsets", "KafkaSender", "TopicRules", "TransactionalSender"]

logger = get_logger(__name__)


class OffsetCopy(Protocol):
    """Takes positions that another topic has already."""

    def write_copy(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        """Write them as well as that can be done; a failure is only logged."""
        ...


class TopicRules:
    """How the topics of a source are created: by ``topic.creation.*``, else with the broker's defaults."""

    def __init__(self, groups: Mapping[str, Mapping[str, str]], *, enabled: bool, fit: bool) -> None:
        self._groups = {name: (parse(TopicGroup, values), values) for name, values in groups.items()}
        self.enabled, self.fit = enabled, fit

    def topic(self, name: str) -> NewTopic:
        from broker.client import NewTopic

        rule_keys = {"replication.factor", "partitions", "include", "exclude"}
        for group, values in self._groups.values():
            if group.takes(name):
                configs = {key: value for key, value in values.items() if key not in rule_keys}
                return NewTopic(name, group.partitions, group.replication_factor, configs)
        return NewTopic(name, -1, -1)


_LIMIT_AGE_S: Final = 10.0


class KafkaSender:
    """The Sender of a source task."""

    def __init__(
        self, loop: ClientLoop, clients: TaskClients, rules: TopicRules, producer: ClientConfig | None = None
    ) -> None:
        from broker.client import Admin, BatchProducer

        self._loop, self._rules = loop, rules
        self._counts: dict[str, int] = {}
        self._limits: dict[str, tuple[str | None, float]] = {}
        self._explaining: set[asyncio.Future[Ack]] = set()
        config = producer or clients.producer()
        settings = config.producer()
        self.compression, self.max_request_bytes = settings.compression_type, settings.max_request_size
        self._admin, self._producer = Admin(clients.admin()), BatchProducer(config)

    def start(self) -> None:
        """Connect; waits for a cluster that is away. Raises Stopped."""
        self._loop.patiently(self._admin.start, "starting a source's admin client")
        self._loop.patiently(self._producer.start, "starting a source's producer")

    def partition_count(self, topic: str) -> int:
        if topic not in self._counts:
            self._counts[topic] = self._loop.patiently(lambda: self._partition_count(topic), f"topic {topic}")
        return self._counts[topic]

    async def _partition_count(self, topic: str) -> int:
        if self._rules.enabled:
            await create_topic(self._admin, self._rules.topic(topic), fit=self._rules.fit)
        return len(await self._producer.partitions(topic))

    def send_batch(self, topic: str, partition: int, batch: EncodedBatch) -> Future[Ack]:
        future: Future[Ack] = Future()
        self._loop.patiently(lambda: self._send(topic, partition, batch, future), f"sending to {topic}-{partition}")
        return future

    async def _send(self, topic: str, partition: int, batch: EncodedBatch, future: Future[Ack]) -> None:
        sent = await self._producer.send_batch(topic, partition, batch)
        sent.add_done_callback(lambda done: self._end(done, topic, batch, future))

    def _end(self, done: asyncio.Future[Ack], topic: str, batch: EncodedBatch, future: Future[Ack]) -> None:
        from broker.client.errors import MessageTooLarge

        if not done.cancelled() and isinstance(error := done.exception(), MessageTooLarge):
            told = asyncio.ensure_future(self._raise_with_limit(error, topic, batch))
            self._explaining.add(told)
            told.add_done_callback(self._explaining.discard)
            done = told
        follow(done, future)

    async def _raise_with_limit(self, error: Exception, topic: str, batch: EncodedBatch) -> Ack:
        """Raises the broker's error with the size, the limit, and the keys that would change it."""
        from broker.client.errors import MessageTooLarge

        limit = ""
        with contextlib.suppress(TidegateError):  # the connector's user may not be allowed to ask
            limit = f", more than max.message.bytes={await self._message_limit(topic)} of topic {topic}"
        count = "one record" if batch.count == 1 else f"{batch.count:,} records"
        change = f"raise max.message.bytes of topic {topic}"
        if len(batch) > self.max_request_bytes:
            change += f" and producer.override.max.request.size (now {self.max_request_bytes})"
        elif batch.count > 1:
            change += ", or lower producer.override.max.request.size, which bounds what is sent at once"
        raise MessageTooLarge(
            f"{error} {count} of {len(batch):,} bytes{limit}: {change}, or let errors.tolerance=all leave such "
            "records out"
        ) from error

    async def _message_limit(self, topic: str) -> str | None:
        """Asked for at most once in ten seconds: many records may be refused."""
        known, asked = self._limits.get(topic, (None, -_LIMIT_AGE_S))
        if time.monotonic() - asked < _LIMIT_AGE_S:
            return known
        value = (await self._admin.describe_configs(topic))["max.message.bytes"].value
        self._limits[topic] = value, time.monotonic()
        return value

    def close(self) -> None:
        self._loop.run(self._producer.stop(LAST_WORDS_S))
        self._loop.run(self._admin.stop())


class TransactionalSender(KafkaSender):
    """The Sender of an exactly-once source, and its Transactions: positions go to ``offset_topic`` with the records.

    ``start`` leaves the producer alone, since that fences the task's forerunner: ``take_over`` does it.
    """

    def __init__(
        self,
        loop: ClientLoop,
        clients: TaskClients,
        rules: TopicRules,
        offset_topic: str,
        copy: OffsetCopy | None = None,
    ) -> None:
        super().__init__(loop, clients, rules, clients.transactional_producer())
        self._offset_topic, self._copy = offset_topic, copy
        self._open = False

    def start(self) -> None:
        self._loop.patiently(self._admin.start, "starting a source's admin client")

    def take_over(self) -> None:
        """From here on no other producer of this task can write or commit. Waits for a cluster that is away. Raises Stopped."""
        self._loop.patiently(self._producer.start, "starting a source's transactional producer")

    @property
    def is_open(self) -> bool:
        return self._open

    def partition_count(self, topic: str) -> int:
        if topic == self._offset_topic:
            raise ConnectError(
                "Source tasks may not produce to their own offsets topics when exactly-once support is enabled: "
                f"{topic} is this one's"
            )
        return super().partition_count(topic)

    def send_batch(self, topic: str, partition: int, batch: EncodedBatch) -> Future[Ack]:
        self._begin()
        return super().send_batch(topic, partition, batch)

    def _begin(self) -> None:
        if not self._open:
            self._loop.run(self._producer.begin_transaction())
            self._open = True

    def commit(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        """Raises ConnectError where the transaction cannot be committed: its outcome is then for the next task to find."""
        self._begin()
        try:
            self._loop.run(self._commit(offsets))
        except TidegateError as error:
            raise ConnectError(f"{_REASONS.get(type(error).__name__, _NOT_COMMITTED)}: {error}") from error
        self._open = False
        if self._copy is not None:
            self._copy.write_copy(offsets)

    async def _commit(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        await _written(self._producer, self._offset_topic, offsets)
        await self._producer.commit_transaction()

    def abort(self) -> None:
        self._open = False
        self._loop.run(self._producer.abort_transaction())


async def _written(
    producer: BatchProducer, topic: str, offsets: Mapping[bytes, Mapping[str, Any]]
) -> list[asyncio.Future[Ack]]:
    return [await producer.enqueue(topic, key, encoded(dict(value))) for key, value in offsets.items()]


_NOT_COMMITTED: Final = "offsets and records could not be committed"
_EXPIRED: Final = (
    "records could not be written before their transaction expired, or another task took this one's place. If it was the "
    "time: raise producer.override.transaction.timeout.ms, lower transaction.boundary.interval.ms, or use "
    "transaction.boundary=poll"
)
_REASONS: Final = {"InvalidProducerEpoch": _EXPIRED, "ProducerFenced": _EXPIRED}


class KafkaOffsets:
    """The OffsetWriter of a source task. Where ``copy`` is given, positions go there too, as well as that can be done."""

    def __init__(self, loop: ClientLoop, config: ClientConfig, topic: str, copy: OffsetCopy | None = None) -> None:
        from broker.client import BatchProducer

        self._loop, self._topic, self._copy = loop, topic, copy
        self._producer = BatchProducer(config)

    def start(self) -> None:
        """Connect; waits for a cluster that is away. Raises Stopped."""
        self._loop.patiently(self._producer.start, "starting the producer of a source's offsets")

    def write(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        self._loop.run(self._write(offsets))
        if self._copy is not None:
            self._copy.write_copy(offsets)

    def write_copy(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        """Write what another topic has already; a failure is only logged."""
        try:
            self._loop.run(self._write(offsets))
        except TidegateError as error:
            logger.warning("the worker's offset topic did not take a copy", topic=self._topic, error=str(error))

    async def _write(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        for future in await _written(self._producer, self._topic, offsets):
            await future

    def close(self) -> None:
        self._loop.run(self._producer.stop(LAST_WORDS_S))
