"""How far connectors have come, as users see and change it: sources in the topics of their offsets, sinks in their groups."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from connect.config.worker import WorkerConfig
from connect.errors import BadRequest
from connect.herder.offset_changes import (
    Changes,
    alter_sink,
    done_message,
    parsed_sink_offsets,
    require_in_log,
    reset_sink,
)
from connect.stores import OffsetStore
from connect.stores.configs import StoredConnector
from connect.stores.offsets import canonical, offset_key
from connect.task.clients import TaskClients
from connect.task.sources.separate_offsets import merged_offsets, read_offsets, write_offsets
from connect.worker.worker import Worker
from tidegate.kit.config import parse

if TYPE_CHECKING:
    from broker.client import Admin, NewTopic

__all__ = ["Positions"]


class Positions:
    """Of any connector of the cluster. Changes are for the leader, and for a connector that is stopped."""

    def __init__(
        self,
        properties: Mapping[str, str],
        worker: Worker,
        fence: Callable[[str], Awaitable[None]],
        store: Callable[[], OffsetStore],
    ) -> None:
        """``properties`` are the worker's; ``fence`` locks out tasks of a connector that may still run somewhere."""
        self._config = parse(WorkerConfig, properties)
        self._worker, self._fence, self._store = worker, fence, store

    async def of_source(self, name: str, stored: StoredConnector) -> list[dict[str, Any]]:
        """Partition, offset and the key of the record that holds them, of each position."""
        known = [
            {"partition": offset.partition, "offset": offset.offset, "key": offset.key}
            for offset in await self._store().read(name)
        ]
        topic = self._own_topic(stored.config)
        if topic is None:
            return known
        clients = self._clients(name, stored)
        admin, consumer = clients.own_offsets_admin(), clients.own_offsets_consumer()
        separate = await read_offsets(admin, consumer, topic, name, fit=self._config.replication_fit)
        return merged_offsets(separate, known)

    async def of_sink(self, name: str, stored: StoredConnector) -> list[dict[str, Any]]:
        async with self._sink_admin(name, stored) as admin:
            committed = await admin.group_offsets(_group(name, stored.config))
        return [
            {
                "partition": {"kafka_topic": partition.topic, "kafka_partition": partition.partition},
                "offset": {"kafka_offset": offset},
            }
            for partition, offset in sorted(committed.items())
        ]

    async def change_source(self, name: str, stored: StoredConnector, changes: Changes | None) -> str:
        """Set and forget positions, all of them where ``changes`` is None; what to tell the user."""
        known = {canonical(entry["partition"]): entry for entry in await self.of_source(name, stored)}
        entries: Changes = [(entry["partition"], None) for entry in known.values()] if changes is None else changes
        changes_ = [(_required(partition), offset) for partition, offset in entries]
        taken = await self._worker.alter_offsets(stored.config, changes_, owner=stored.owner)
        if self._config.exactly_once_source.lower() == "enabled":
            await self._fence(name)
        topic = self._own_topic(stored.config)
        if topic is not None:
            keyed = [
                (str(known[canonical(p)]["key"]) if canonical(p) in known else offset_key(name, p), offset)
                for p, offset in changes_
            ]
            await write_offsets(self._clients(name, stored).own_offsets_producer(), topic.name, keyed)
        for partition, offset in changes_:
            await self._store().put(name, partition, offset)
        return done_message(reset=changes is None, by_connector=taken)

    async def change_sink(self, name: str, stored: StoredConnector, changes: Changes | None) -> str:
        """Likewise for a sink."""
        group = _group(name, stored.config)
        async with self._sink_admin(name, stored) as admin:
            if changes is None:
                offsets = dict.fromkeys(await admin.group_offsets(group))
            else:
                offsets = dict(parsed_sink_offsets(changes))
                await require_in_log(admin, offsets)  # before the connector changes what it keeps itself
            told: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]] = [
                (
                    {"kafka_topic": partition_.topic, "kafka_partition": partition_.partition},
                    None if offset is None else {"kafka_offset": offset},
                )
                for partition_, offset in offsets.items()
            ]
            taken = await self._worker.alter_offsets(stored.config, told, owner=stored.owner)
            if changes is None:
                await reset_sink(admin, name, group)
            else:
                await alter_sink(admin, name, group, offsets)
        return done_message(reset=changes is None, by_connector=taken)

    def _clients(self, name: str, stored: StoredConnector) -> TaskClients:
        """As the connector's tasks have them. Raises Forbidden where its owner may not log in any more."""
        return TaskClients(self._worker.owners.properties(stored.owner), name, 0, stored.config)

    def _sink_admin(self, name: str, stored: StoredConnector) -> Admin:
        """A client of the cluster that the sink reads from."""
        from broker.client import Admin

        return Admin(self._clients(name, stored).admin())

    def _own_topic(self, config: Mapping[str, str]) -> NewTopic | None:
        """The topic of the source's offsets, where it is not the worker's."""
        from broker.client import NewTopic

        name = config.get("offsets.storage.topic")
        if not name or (name == self._config.offset_topic and self._config.offset_file is None):
            return None
        settings = {"cleanup.policy": "compact"}
        return NewTopic(name, self._config.offset_partitions, self._config.offset_replication, settings)


def _required(partition: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if partition is None:
        raise BadRequest("The partition for a source connector offset cannot be null or missing")
    return partition


def _group(name: str, config: Mapping[str, str]) -> str:
    return config.get("consumer.override.group.id", f"connect-{name}")
