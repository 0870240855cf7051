"""The event log on a real Kafka: Apache Kafka and our broker."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker.client import Admin, BatchProducer, ClientConfig, TopicPartition
from events.errors import BusUnavailable
from events.store.kafka import KafkaLog
from events.store.state import EventState
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.event_log_contract import EventLogContract, collect
from tests.support.events import MemoryLog

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["apache", "tidegate"])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if request.param == "apache":
        yield request.getfixturevalue("apache_kafka").bootstrap_servers
        return
    broker = TidegateBroker(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker.bootstrap_servers
    broker.stop()


@pytest.fixture
async def log(bootstrap: str) -> AsyncIterator[KafkaLog]:
    made = KafkaLog(ClientConfig(bootstrap))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def topic(log: KafkaLog) -> str:
    name = f"E{uuid.uuid4().hex}__e"
    await log.create(name, 3_600_000)
    return name


class TestKafkas(EventLogContract):
    """Apache Kafka and our broker, as ``bootstrap`` has them."""

    @pytest.fixture
    async def log(self, bootstrap: str) -> AsyncIterator[KafkaLog]:
        made = KafkaLog(ClientConfig(bootstrap))
        await made.start()
        self.bootstrap = bootstrap
        yield made
        await made.stop()

    async def delete_records(self, log: KafkaLog, topic: str, before: int) -> None:
        async with Admin(ClientConfig(self.bootstrap)) as admin:
            await admin.delete_records({TopicPartition(topic, 0): before})

    async def delete_topic(self, log: KafkaLog, topic: str) -> None:
        async with Admin(ClientConfig(self.bootstrap)) as admin:
            await admin.delete_topics([topic])


class TestMemory(EventLogContract):
    @pytest.fixture
    def log(self) -> MemoryLog:
        return MemoryLog()

    async def delete_records(self, log: MemoryLog, topic: str, before: int) -> None:
        log.delete_records(topic, before)

    async def delete_topic(self, log: MemoryLog, topic: str) -> None:
        log.delete(topic)


@pytest.mark.parametrize("bootstrap", ["apache"], indirect=True)
async def test_aborted_transactions_are_not_read(log: KafkaLog, topic: str, bootstrap: str) -> None:
    config = ClientConfig(bootstrap, {"transactional.id": f"t-{topic}"})
    async with BatchProducer(config) as producer:
        with contextlib.suppress(RuntimeError):
            async with producer.transaction():
                await producer.send(topic, b"k", b"aborted", partition=0)
                raise RuntimeError
        async with producer.transaction():
            await producer.send(topic, b"k", b"committed", partition=0)
    assert [record.value for record in await collect(log, topic, 0, 1)] == [b"committed"]
    assert (await log.bounds(topic)).end > 1


async def test_a_log_that_is_not_there_is_unavailable() -> None:
    log = KafkaLog(ClientConfig("127.0.0.1:1", {"request.timeout.ms": "500"}))
    with pytest.raises(BusUnavailable, match="127.0.0.1:1"):
        await log.start()


async def test_servers_share_their_state_and_find_it_again(bootstrap: str) -> None:
    logs = [KafkaLog(ClientConfig(bootstrap)) for _ in range(3)]
    for each in logs:
        await each.start()
    first, other, late = (EventState(each, lambda: 1) for each in logs)
    first.start()
    other.start()
    key = uuid.uuid4().hex
    heard = asyncio.Event()
    with other.listening(lambda changed: heard.set() if changed == f"{key}/b" else None):
        await first.put(f"{key}/a", {"n": 1})
        await first.put(f"{key}/a", {"n": 2})
        await first.put(f"{key}/gone", True)
        await first.put(f"{key}/gone", None)
        await first.put(f"{key}/b", [3])
        async with asyncio.timeout(60):
            await heard.wait()
    late.start()
    for state in (first, other, late):
        assert await state.under(f"{key}/") == {"a": {"n": 2}, "b": [3]}
    for state, each in zip((first, other, late), logs, strict=True):
        await state.stop()
        await each.stop()
