"""The stores' records, byte for byte as Kafka Connect's, over a real log."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client import Admin, BatchProducer, ClientConfig, KafkaRecord, NewTopic
from connect.stores import (
    CompactedTopic,
    ConfigStore,
    OffsetStore,
    State,
    Status,
    StatusStore,
    TargetState,
    TopicClients,
)


class Heard:
    """A ConfigListener that remembers."""

    def __init__(self):
        self.connectors, self.restarts, self.levels = [], [], []

    def on_connector(self, name):
        self.connectors.append(name)

    def on_restart(self, request):
        self.restarts.append(request)

    def on_logger_level(self, namespace, level):
        self.levels.append((namespace, level))


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def stores(tidegate_broker, heard):
    """Runs a coroutine with functions that make the stores, anew each time, over three topics of the test's own."""
    names = [f"{kind}-{uuid.uuid4().hex[:8]}" for kind in ("configs", "offsets", "status")]
    config = ClientConfig(tidegate_broker.bootstrap_servers)

    def run(work):
        async def with_clients():
            async with Admin(config) as admin, BatchProducer(config) as producer:
                clients = TopicClients(admin, producer, config, fit=True)
                logs = [
                    CompactedTopic(clients, NewTopic(name, 2 if n else 1, 3, {"cleanup.policy": "compact"}))
                    for n, name in enumerate(names)
                ]
                opened = [ConfigStore(logs[0], heard), OffsetStore(logs[1]), StatusStore(logs[2])]
                for store in opened:
                    await store.start()
                try:
                    return await work(*opened, producer)
                finally:
                    for store in opened:
                        await store.stop()

        return asyncio.run(with_clients())

    run.names = names
    return run


def test_written_records_are_there_after_a_restart(stores):
    async def write(configs, offsets, statuses, _):
        await configs.put_connector("c-1", {"name": "c-1", "x": "é"})
        await configs.put_target("c-1", TargetState.STOPPED)
        await configs.put_tasks("c-1", [{"n": "0"}, {"n": "1"}])
        await configs.put_connector("gone", {"name": "gone"})
        await configs.remove_connector("gone")
        await offsets.put("c-1", {"b": 1, "a": 2}, {"n": 1})
        await statuses.put_connector("c-1", Status(State.FAILED, "w", trace="why", version="1"))
        await statuses.put_task("c-1", 3, Status(State.RUNNING, "w"))
        await statuses.put_topic("c-1", 0, "t:1")

    async def read(configs, offsets, statuses, _):
        assert list(configs.connectors) == ["c-1"]
        stored = configs.connectors["c-1"]
        assert stored.config == {"name": "c-1", "x": "é"} and stored.target is TargetState.STOPPED
        assert stored.tasks == [{"n": "0"}, {"n": "1"}]
        (record,) = await offsets.read("c-1")
        assert (record.partition, record.offset, record.key) == ({"b": 1, "a": 2}, {"n": 1}, '["c-1",{"b":1,"a":2}]')
        assert statuses.connectors["c-1"].trace == "why" and statuses.tasks["c-1"][3].state is State.RUNNING
        assert statuses.topics["c-1"] == {"t:1"}

    stores(write)
    stores(read)


def test_a_position_is_overwritten_under_the_key_it_has(stores):
    async def write(_, offsets, __, ___):
        await offsets.put("c", {"b": 1, "a": 2}, {"n": 1})
        await offsets.put("c", {"a": 2, "b": 1}, {"n": 2})
        (record,) = await offsets.read("c")
        assert record.key == '["c",{"b":1,"a":2}]' and record.offset == {"n": 2}
        await offsets.put("c", {"a": 2, "b": 1}, None)
        assert await offsets.read("c") == []

    stores(write)


def test_a_commit_whose_tasks_are_not_all_there_does_not_count(stores):
    async def write(configs, _, __, producer):
        await configs.put_connector("c", {"name": "c"})
        await producer.send(stores.names[0], b"task-c-1", json.dumps({"properties": {}}).encode())
        await producer.send(stores.names[0], b"commit-c", b'{"tasks":2}')
        await configs.put_target("c", TargetState.PAUSED)
        assert configs.connectors["c"].tasks is None and configs.connectors["c"].target is TargetState.PAUSED

    stores(write)


@given(
    key=st.sampled_from(
        ["connector-c", "task-c-0", "task-c", "commit-c", "target-state-c", "session-key", "status-connector-c",
         "status-task-c-0", "status-task-x", "status-topic-t:connector-c", "status-topic-", '["c",{"a":1}]', "[1]", "{}"]
    ).map(str.encode) | st.none() | st.binary(max_size=20),
    value=st.none() | st.binary(max_size=20) | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(
            st.sampled_from(["properties", "tasks", "state", "state.v2", "generation", "trace"]), inner, max_size=3),
        max_leaves=6,
    ).map(lambda value: json.dumps(value).encode()),
)  # fmt: skip
def test_any_record_is_applied_or_left_aside(key, value):
    for store in (ConfigStore(None, Heard()), OffsetStore(_Named()), StatusStore(_Named())):
        store._topic, store._started = _Named(), True
        for _ in range(2):
            store._apply(KafkaRecord("t", 0, 0, 0, key, value))


class _Named:
    name = "t"
