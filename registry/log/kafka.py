"""The schema log in any Kafka: a compacted topic with one partition."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from broker.client import Admin, BatchConsumer, ClientConfig, ClientTimeout, FencedWriter, NewTopic, TopicPartition
from broker.client.errors import (
    BrokerError,
    InvalidProducerEpoch,
    InvalidReplicationFactor,
    MessageTooLarge,
    ProducerFenced,
    TopicAlreadyExists,
)
from registry.errors import SchemaTooLarge, StoreError, StoreMisconfigured, StoreTimeout
from registry.log.store import Fenced, LogRecord
from tidegate.kit.errors import ConfigError, TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["KafkaLog"]

logger = get_logger(__name__)


class KafkaLog:
    """A ``store.Log`` over ``broker.client``. Start it once; after ``stop`` or a failed ``start`` create a new one."""

    def __init__(
        self,
        bootstrap_servers: str,
        properties: Mapping[str, str],
        *,
        topic: str,
        group_id: str,
        replication_factor: int,
        timeout_ms: int,
    ) -> None:
        defaults = {
            "client.id": "registry",
            # Half the time of a write, so that a lost answer can be requested again.
            "request.timeout.ms": str(min(max(timeout_ms // 2, 500), 30_000)),
            # An abandoned write must not stay in the producer longer than its caller waited.
            "delivery.timeout.ms": str(timeout_ms),
            "max.request.size": str(16 * 1024 * 1024),
        }
        # Settings that determine order and visibility can't be configured.
        fixed = {
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
        self._config = ClientConfig(bootstrap_servers, {**defaults, **properties, **fixed})
        self._topic = topic
        self._replication_factor = replication_factor
        self._where = TopicPartition(topic, 0)
        self._writer_id = f"{group_id}-{topic}"
        self._writer: FencedWriter | None = None
        self._admin: Admin | None = None
        self._consumer: BatchConsumer | None = None
        self.cluster_id = ""

    async def start(self) -> None:
        """Check the topic and connect. Raises StoreMisconfigured if a retry can't help."""
        with _translating(f"opening the schema log {self._topic} at {self._config.bootstrap_servers}"):
            self._admin = await Admin(self._config).start()
            await self._ensure_topic(self._admin)
            self.cluster_id = await self._admin.cluster_id()
            self._writer = await FencedWriter(self._config, self._where, self._writer_id).start()
            self._consumer = await BatchConsumer(self._config).start()
            await self._consumer.assign([(self._topic, 0)])
            await self._consumer.seek_to_beginning((self._topic, 0))

    async def _ensure_topic(self, admin: Admin) -> None:
        topic = NewTopic(self._topic, 1, self._replication_factor, {"cleanup.policy": "compact"})
        try:
            await admin.create_topics([topic])
            return
        except TopicAlreadyExists:
            await admin.await_topics([self._topic])  # another registry may have created it just now
        except InvalidReplicationFactor as error:
            brokers = len(admin.brokers())
            logger.warning(
                "the schema log gets fewer replicas than configured: there are not enough brokers",
                topic=self._topic,
                configured=self._replication_factor,
                brokers=brokers,
                reason=str(error),
            )
            await admin.create_topics([NewTopic(self._topic, 1, brokers, topic.configs)], exist_ok=True)
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

    async def claim(self) -> None:
        with _translating(f"claiming the schema log {self._topic}"):
            await self._open_writer.claim()

    async def append(self, records: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int) -> int:
        try:
            with _translating(f"writing to the schema log {self._topic}"):
                return await self._open_writer.write(records, timestamp_ms=timestamp_ms)
        except MessageTooLarge as error:
            raise SchemaTooLarge(f"The schema is too large for the schema log: {error}") from error

    @property
    def _open_writer(self) -> FencedWriter:
        if self._writer is None:
            raise StoreError("The schema log is not open")
        return self._writer

    async def end(self) -> int:
        if self._admin is None:
            raise StoreError("The schema log is not open")
        with _translating(f"asking for the end of the schema log {self._topic}"):
            return (await self._admin.end_offsets([self._where]))[self._where]

    async def read(self) -> tuple[Sequence[LogRecord], int]:
        if self._consumer is None:
            raise StoreError("The schema log is not open")
        with _translating(f"reading the schema log {self._topic}"):
            while True:
                fetched = await self._consumer.fetch(max_wait_ms=1000)
                if fetched:
                    records = [
                        LogRecord(record.offset, record.key, record.value, record.timestamp_ms)
                        for batches in fetched
                        for record in batches.records()
                    ]
                    return records, fetched[-1].next_offset

    async def stop(self) -> None:
        for client in (self._consumer, self._writer, self._admin):
            if client is not None:
                with contextlib.suppress(TidegateError):
                    await client.stop()


@contextlib.contextmanager
def _translating(doing: str) -> Iterator[None]:
    """Translates Kafka's errors into the registry's, except for a message that is too large."""
    try:
        yield
    except (StoreError, MessageTooLarge):
        raise
    except (ProducerFenced, InvalidProducerEpoch) as error:
        raise Fenced(f"Leader not known. Another registry took over the schema log: {error}") from error
    except ClientTimeout as error:
        raise StoreTimeout(f"Timed out {doing}: {error}") from error
    except ConfigError as error:
        raise StoreMisconfigured(f"Failed {doing}: {error}") from error
    except BrokerError as error:
        kind = StoreError if error.retriable else StoreMisconfigured
        raise kind(f"Failed {doing}: {error}") from error
    except TidegateError as error:
        raise StoreError(f"Failed {doing}: {error}") from error
