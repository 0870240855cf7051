"""The event log on a real Kafka: Apache's and ours."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.client import Admin, BatchProducer, ClientConfig, TopicPartition
from events.errors import BusUnavailable, EventTooLarge
from events.kafka import KafkaLog
from events.log import LogRecord
from events.state import EventState
from tests.servers.tidegate_broker import TidegateBroker

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


async def collect(log: KafkaLog, topic: str, offset: int, count: int) -> list[LogRecord]:
    found: list[LogRecord] = []
    async with asyncio.timeout(60), contextlib.aclosing(log.follow(topic, offset)) as following:
        async for piece in following:
            found += piece.records
            if len(found) >= count:
                break
    return found


async def test_what_is_appended_is_read_and_followed_in_order(log: KafkaLog, topic: str) -> None:
    following = asyncio.create_task(collect(log, topic, 0, 500))
    records = [(b"k%d" % number, b"v%d" % number * 50, 1_700_000_000_000 + number) for number in range(500)]
    assert await log.append(topic, records[:250]) + await log.append(topic, records[250:]) == list(range(1, 501))
    bounds = await log.bounds(topic)
    assert (bounds.start, bounds.end, bounds.readable) == (1, 501, 501)
    assert [(record.key, record.value, record.timestamp_ms) for record in await following] == records
    read: list[LogRecord] = []
    while len(read) < 400:
        piece = await log.read(topic, 101 + len(read), 4096)
        read += piece.records
        assert piece.next_offset == 101 + len(read)
    assert [record.offset for record in read] == list(range(101, 501))


async def test_the_first_event_has_replay_id_one(log: KafkaLog, topic: str) -> None:
    bounds = await log.bounds(topic)
    assert (bounds.start, bounds.end) == (1, 1)
    assert await log.append(topic, [(b"k", b"v", 1)]) == [1]
    assert [record.value for record in (await log.read(topic, 0, 4096)).records] == [b"v"]


async def test_a_topic_keeps_events_for_as_long_as_it_is_told(log: KafkaLog, topic: str) -> None:
    assert await log.kept(topic) == 3_600_000
    await log.keep(topic, -1)
    assert await log.kept(topic) == -1


async def test_what_was_deleted_is_passed_over(log: KafkaLog, topic: str, bootstrap: str) -> None:
    for number in range(10):
        await log.append(topic, [(b"k", b"%d" % number, 1)])
    async with Admin(ClientConfig(bootstrap)) as admin:
        await admin.delete_records({TopicPartition(topic, 0): 6})
    assert (await log.bounds(topic)).start == 6
    assert [record.offset for record in (await log.read(topic, 2, 4096)).records][0] == 6
    assert [record.offset for record in await collect(log, topic, 2, 5)] == [6, 7, 8, 9, 10]


async def test_a_topic_that_is_made_anew_has_another_identity(log: KafkaLog, topic: str, bootstrap: str) -> None:
    before = (await log.bounds(topic)).identity
    assert (await log.bounds(topic)).identity == before
    async with Admin(ClientConfig(bootstrap)) as admin:
        await admin.delete_topics([topic])
        assert await log.partitions(topic) is None
    await log.create(topic, 3_600_000)
    assert (await log.bounds(topic)).identity != before


async def test_a_transaction_is_read_whole_or_not_at_all(log: KafkaLog, topic: str) -> None:
    other = f"{topic[:-3]}2__e"
    await log.create(other, 3_600_000)
    with contextlib.suppress(RuntimeError):
        async with log.transaction() as undone:
            assert await undone.append(topic, [(b"k", b"undone", 1)]) == [1]
            raise RuntimeError
    following = asyncio.create_task(collect(log, topic, 0, 3))
    async with log.transaction() as first, log.transaction() as second:
        offsets = await first.append(topic, [(b"k", b"a", 1), (b"k", b"b", 1)])
        await second.append(other, [(b"k", b"c", 1)])
        offsets += await first.append(topic, [(b"k", b"d", 1)])
        assert (await log.bounds(topic)).readable <= offsets[0]
    assert [(record.offset, record.value) for record in await following] == list(
        zip(offsets, [b"a", b"b", b"d"], strict=True)
    )
    assert [record.value for record in await collect(log, other, 0, 1)] == [b"c"]


async def test_a_transaction_that_takes_too_long_is_nothing(
    log: KafkaLog, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("events.transactions.TIMEOUT_MS", 300)
    with pytest.raises(BusUnavailable, match="none is published"):
        async with log.transaction() as transaction:
            await transaction.append(topic, [(b"k", b"v", 1)])
            await asyncio.sleep(5)
    await log.append(topic, [(b"k", b"after", 1)])
    assert [record.value for record in await collect(log, topic, 0, 1)] == [b"after"]


async def test_an_event_that_is_too_large_is_refused_alone(log: KafkaLog, topic: str) -> None:
    good, large = (b"k", b"x", 1), (b"k", b"x" * (5 * 1024 * 1024), 1)
    first, refused, last = await log.append(topic, [good, large, good])
    assert (first, last) == (1, 2)
    assert isinstance(refused, EventTooLarge)
    many = [good] * 20 + [large] + [good] * 20
    answers = await log.append(topic, many)
    assert isinstance(answers.pop(20), EventTooLarge)
    assert answers == list(range(3, 43))


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


async def test_events_are_found_by_their_time(log: KafkaLog, topic: str) -> None:
    await log.append(topic, [(b"k", b"v", 1_000 * number) for number in range(1, 4)])
    assert [await log.offset_at(topic, at) for at in (0, 2_000, 2_001, 3_001)] == [1, 2, 3, None]


async def test_servers_share_their_state_and_find_it_again(bootstrap: str) -> None:
    logs = [KafkaLog(ClientConfig(bootstrap)) for _ in range(3)]
    for each in logs:
        await each.start()
    one, other, late = (EventState(each, lambda: 1) for each in logs)
    one.start()
    other.start()
    key = uuid.uuid4().hex
    heard = asyncio.Event()
    with other.listening(lambda changed: heard.set() if changed == f"{key}/b" else None):
        await one.put(f"{key}/a", {"n": 1})
        await one.put(f"{key}/a", {"n": 2})
        await one.put(f"{key}/gone", True)
        await one.put(f"{key}/gone", None)
        await one.put(f"{key}/b", [3])
        async with asyncio.timeout(60):
            await heard.wait()
    late.start()
    for state in (one, other, late):
        assert await state.under(f"{key}/") == {"a": {"n": 2}, "b": [3]}
    for state, each in zip((one, other, late), logs, strict=True):
        await state.stop()
        await each.stop()
