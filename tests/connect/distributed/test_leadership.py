"""Tasks of the leader only: fencing, the session key, and being the only writer of the config topic."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from broker.client import Admin, BatchProducer, ClientConfig, NewTopic, TopicPartition
from broker.client.fenced import FencedWriter
from connect.config.worker import WorkerConfig
from connect.errors import Conflict, NotFound
from connect.group.fencing import ZombieFencing
from connect.group.leadership import FencingLeaderWriter, Leadership
from connect.group.protocol import Protocol
from connect.server.standalone.logs import MemoryLog
from connect.stores import CompactedTopic, ConfigStore, TopicClients
from tidegate.kit.config import parse


class Ears:
    def on_connector(self, name): ...
    def on_restart(self, request): ...
    def on_logger_level(self, namespace, level): ...


async def config_store(*tasks):
    store = ConfigStore(MemoryLog("configs"), Ears())
    await store.start()
    await store.put_connector("c", {"name": "c"})
    for count in tasks:
        await store.put_tasks("c", [{"n": str(n)} for n in range(count)])
    return store


def test_producers_from_before_are_locked_out_once_for_all_who_ask():
    async def run():
        store, ended = await config_store(3), []

        async def end(name, count):
            await asyncio.sleep(0)
            ended.append((name, count))

        fencing = ZombieFencing(store, end, sync_timeout_s=60)
        await fencing.fence("c")  # the first time there is nobody to lock out
        assert ended == [] and store.fenced_tasks("c") == 3
        await store.put_tasks("c", [{"n": "0"}])
        await asyncio.gather(*(fencing.fence("c") for _ in range(3)))
        assert ended == [("c", 3)] and store.fenced_tasks("c") == 1
        await fencing.fence("c")
        await store.put_tasks("c", [{"n": "new"}])  # one task before, one after: its producer sees to it itself
        await fencing.fence("c")
        assert ended == [("c", 3)]
        with pytest.raises(NotFound, match="Connector d not found"):
            await fencing.fence("d")

    asyncio.run(run())


def test_fencing_that_newer_tasks_overtake_fails():
    async def run():
        store = await config_store(2)
        fencing = ZombieFencing(store, lambda name, count: store.put_tasks(name, [{}, {}, {}]), sync_timeout_s=60)
        await fencing.fence("c")
        await store.put_tasks("c", [{}, {}])
        with pytest.raises(Conflict, match="new task configurations"):
            await fencing.fence("c")
        assert store.fenced_tasks("c") == 2

    asyncio.run(run())


class Led:
    is_leader, protocol = True, Protocol.SESSIONED


def test_the_leader_makes_a_session_key_and_replaces_it_when_it_is_old():
    async def run():
        store = await config_store()
        config = parse(WorkerConfig, {"bootstrap.servers": "x", "inter.worker.key.ttl.ms": "50"})
        leadership = Leadership(config, Led(), store)
        await leadership.lead()
        keys = set()
        while len(keys) < 3:
            await asyncio.sleep(0.01)
            if store.session_key is not None:
                keys.add(store.session_key)
        await leadership.stop()
        assert {(key.algorithm, len(key.secret)) for key in keys} == {("HmacSHA256", 32)}

    asyncio.run(run())


def test_a_leader_from_before_cannot_write_the_config_topic_any_more(tidegate_broker):
    name = f"configs-{uuid.uuid4().hex[:8]}"
    client = ClientConfig(tidegate_broker.bootstrap_servers)

    async def run():
        async with Admin(client) as admin, BatchProducer(client) as producer:
            clients = TopicClients(admin, producer, client, fit=True)
            stores = [ConfigStore(CompactedTopic(clients, NewTopic(name, 1, 1)), Ears()) for _ in range(2)]
            for store in stores:
                await store.start()
            partition = TopicPartition(name, 0)
            async with FencedWriter(client, partition, name) as first, FencedWriter(client, partition, name) as two:
                for store, writer in zip(stores, (first, two), strict=True):
                    # The first one still believes that it leads.
                    store.leader_writer = FencingLeaderWriter(writer, lambda: False)
                    await store.leader_writer.claim()
                    await store.put_connector("c", {"name": "c", "by": str(stores.index(store))})
                with pytest.raises(Conflict, match="transient error and the request can be safely retried"):
                    await stores[0].put_connector("c", {"name": "c", "by": "zombie"})
                await stores[0].refresh()
                assert stores[0].connectors["c"].config == stores[1].connectors["c"].config == {"name": "c", "by": "1"}
            for store in stores:
                await store.stop()

    asyncio.run(run())


def test_records_are_kafka_connects():
    async def run():
        log = MemoryLog("configs")
        store, written = ConfigStore(log, Ears()), []
        await store.start()
        apply, log._apply = log._apply, lambda record: (written.append(record), apply(record))
        await store.put_connector("c", {"name": "c"})
        await store.put_tasks("c", [{"task.class": "T"}])
        await store.put_fencing("c", 1)
        assert [(record.key.decode(), json.loads(record.value)) for record in written] == [
            ("connector-c", {"properties": {"name": "c"}}),
            ("task-c-0", {"properties": {"task.class": "T"}}),
            ("commit-c", {"tasks": 1}),
            ("tasks-fencing-c", {"task-count": 1}),
        ]
        stored = store.connectors["c"]
        assert (stored.created_at, stored.committed_at, stored.generation, stored.pending_fencing) == (1, 3, 0, False)

    asyncio.run(run())
