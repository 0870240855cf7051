"""The schema log in any Kafka: one compacted topic of one partition."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig, ClientTimeout, NewTopic
from broker.client.errors import BrokerError, InvalidReplicationFactor, MessageTooLarge, TopicAlreadyExists
from registry.errors import SchemaTooLarge, StoreError, StoreMisconfigured, StoreTimeout
from registry.store import LogRecord
from tidegate.kit.errors import ConfigError, TidegateError
from tidegate.kit.logs import logger

__all__ = ["KafkaLog"]

log = logger(__name__)


class KafkaLog:
    """A ``store.Log`` over ``broker.client``. Started once; after ``stop`` or a failed ``start`` make a new one."""

    def __init__(
        self,
        bootstrap_servers: str,
        properties: Mapping[str, str],
        *,
        topic: str,
        replication_factor: int,
        timeout_ms: int,
    ) -> None:
        defaults = {
            "client.id": "registry",
            "request.timeout.ms": str(min(timeout_ms, 30_000)),
            # A write that was given up must not sit in the producer for longer than its caller waited.
            "delivery.timeout.ms": str(timeout_ms),
            "max.request.size": str(16 * 1024 * 1024),
        }
        # What decides about order and about what is read is not for the configuration to change.
        fixed = {
            "acks": "all",
            "enable.idempotence": "true",
            "linger.ms": "0",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
        self._config = ClientConfig(bootstrap_servers, {**defaults, **properties, **fixed})
        self._topic = topic
        self._replication_factor = replication_factor
        self._producer: BatchProducer | None = None
        self._consumer: BatchConsumer | None = None
        self.cluster_id = ""

    async def start(self) -> None:
        """Make sure of the topic and connect. Raises StoreMisconfigured where trying again cannot help."""
        with _border(f"opening the schema log {self._topic} at {self._config.bootstrap_servers}"):
            async with Admin(self._config) as admin:
                await self._ensure_topic(admin)
                self.cluster_id = await admin.cluster_id()
            self._producer = await BatchProducer(self._config).start()
            self._consumer = await BatchConsumer(self._config).start()
            await self._consumer.assign([(self._topic, 0)])
            await self._consumer.seek_to_beginning((self._topic, 0))

    async def _ensure_topic(self, admin: Admin) -> None:
        wanted = NewTopic(self._topic, 1, self._replication_factor, {"cleanup.policy": "compact"})
        try:
            await admin.create_topics([wanted])
            return
        except TopicAlreadyExists:
            pass
        except InvalidReplicationFactor as error:
            brokers = len(admin.brokers())
            log.warning(
                "the schema log gets fewer replicas than configured: there are not enough brokers",
                topic=self._topic,
                configured=self._replication_factor,
                brokers=brokers,
                reason=str(error),
            )
            await admin.create_topics([NewTopic(self._topic, 1, brokers, wanted.configs)], exist_ok=True)
            return
        await self._check_topic(admin)

    async def _check_topic(self, admin: Admin) -> None:
        described = (await admin.describe_topics([self._topic]))[self._topic]
        if len(described.partitions) != 1:
            raise StoreMisconfigured(
                f"The schema log {self._topic} has {len(described.partitions)} partitions; it must have exactly 1"
            )
        policy = (await admin.describe_configs(self._topic))["cleanup.policy"].value
        if policy != "compact":
            raise StoreMisconfigured(
                f"The schema log {self._topic} has cleanup.policy={policy}, which would lose schemas; set it to compact"
            )

    async def append(self, key: bytes, value: bytes | None) -> int:
        if self._producer is None:
            raise StoreError("The schema log is not open")
        try:
            with _border(f"writing to the schema log {self._topic}"):
                return (await self._producer.send(self._topic, key, value, partition=0)).offset
        except MessageTooLarge as error:
            raise SchemaTooLarge(f"The schema is too large for the schema log: {error}") from error

    async def read(self) -> Sequence[LogRecord]:
        if self._consumer is None:
            raise StoreError("The schema log is not open")
        with _border(f"reading the schema log {self._topic}"):
            while True:
                fetched = await self._consumer.fetch(max_wait_ms=1000)
                if fetched:
                    return [
                        LogRecord(record.offset, record.key, record.value)
                        for batches in fetched
                        for record in batches.records()
                    ]

    async def stop(self) -> None:
        for client in (self._consumer, self._producer):
            if client is not None:
                with contextlib.suppress(TidegateError):
                    await client.stop()


@contextlib.contextmanager
def _border(doing: str) -> Iterator[None]:
    """Kafka's errors become the registry's; a message too large is left to the caller."""
    try:
        yield
    except (StoreError, MessageTooLarge):
        raise
    except ClientTimeout as error:
        raise StoreTimeout(f"Timed out {doing}: {error}") from error
    except ConfigError as error:
        raise StoreMisconfigured(f"Failed {doing}: {error}") from error
    except BrokerError as error:
        kind = StoreError if error.retriable else StoreMisconfigured
        raise kind(f"Failed {doing}: {error}") from error
    except TidegateError as error:
        raise StoreError(f"Failed {doing}: {error}") from error
