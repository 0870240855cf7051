"""One broker: its topics, partitions and groups, put together; what every handler may reach."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from broker.arrivals import Arrivals
from broker.config import BrokerConfig, Listener
from broker.durability import Durability, Flushed
from broker.errors import BrokerError
from broker.groups import OFFSETS_TOPIC, GroupCoordinator
from broker.groups.committed import committed_records
from broker.groups.journal import Entry
from broker.log.config import topic_defaults
from broker.log.directory import LogDirectory
from broker.metadata import ClusterMetadata
from broker.partitions import Partitions
from broker.protocol.messages.api_versions import ApiVersion
from broker.protocol.records import Record
from broker.resources import Resources
from broker.topics import Topics

__all__ = ["Broker", "Node"]


class Node(NamedTuple):
    """A broker as clients are told of it."""

    node_id: int
    host: str
    port: int
    rack: str | None


class Broker:
    """Made within a running event loop and used by it alone. ``open`` blocks while logs are recovered."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.advertised: dict[str, Listener] = {}
        """By the name of the listener a client came in by; filled when the ports are known."""
        self.api_versions: Sequence[ApiVersion] = ()
        self.logs = LogDirectory(Path(config.log_dirs[0]), config.log_defaults)
        self.logs.open()
        self.metadata = ClusterMetadata.open(
            self.logs, node_id=config.node_id, topic_defaults=topic_defaults(config.topic_settings)
        )
        self.resources = Resources(config, self.metadata)
        self.topics = Topics(config, self.metadata, self.logs)
        self.arrivals = Arrivals()
        self.durability = Durability(background_interval_s=config.background_flush_ms / 1000)
        self.partitions = Partitions(self.topics, self.logs, self.durability, self.arrivals)
        self.groups = GroupCoordinator(_OffsetsTopic(self), config)
        self.groups.start()

    def node(self, listener: str) -> Node:
        """This broker, as a client of that listener can reach it."""
        where = self.advertised[listener]
        return Node(self.metadata.node_id, where.host, where.port, self.config.broker_rack)

    async def close(self) -> None:
        """Bring everything to the disk, marked as a clean stop."""
        self.groups.stop()
        await self.durability.close()
        self.logs.close()


class _OffsetsTopic:
    """``__consumer_offsets`` as the group coordinator sees it: made by the first append."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def partitions(self) -> int:
        topic = self._broker.metadata.topics.get(OFFSETS_TOPIC)
        return topic.partitions if topic is not None else self._broker.config.offsets_topic_partitions

    def append(self, partition: int, entries: Sequence[Entry]) -> asyncio.Future[None]:
        broker = self._broker
        broker.topics.offsets_topic()
        log = broker.partitions.find(OFFSETS_TOPIC, partition)
        before = log.size
        log.append_records([Record(key, value) for key, value in entries])
        broker.partitions.appended(log, log.size - before)
        durable = broker.partitions.durable([log])
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if durable is None:
            done.set_result(None)
        else:
            durable.add_done_callback(lambda flushed: _settle(done, flushed))
        return done

    def read(self, partition: int) -> Iterable[tuple[int, bytes | None, bytes | None]]:
        log = self._broker.logs.get(OFFSETS_TOPIC, partition)
        if log is None:
            return
        for record in committed_records(log.iter_batches()):
            yield record.offset, record.key, record.value


def _settle(done: asyncio.Future[None], flushed: asyncio.Future[Flushed]) -> None:
    if done.done():
        return
    error: BrokerError | None = None if flushed.cancelled() else next(iter(flushed.result().values()), None)
    if flushed.cancelled():
        done.cancel()
    elif error is not None:
        done.set_exception(error)
    else:
        done.set_result(None)
