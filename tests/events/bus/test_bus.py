from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from events.bus.bus import EARLIEST, LATEST, EventBus, Outgoing, Subscription
from events.errors import BusUnavailable, InvalidReplayId
from events.store.log import LogBounds
from tests.support.events import MemoryLog

pytestmark = pytest.mark.anyio
TOPIC = "A__e"


@pytest.fixture
async def log() -> MemoryLog:
    made = MemoryLog()
    await made.create(TOPIC, -1)
    return made


@pytest.fixture
async def bus(log: MemoryLog) -> AsyncIterator[EventBus]:
    made = EventBus(log, clock_ms=lambda: 1_700_000_000_000, tail_bytes=64 * 1024)
    yield made
    await made.close()


async def publish(bus: EventBus, *bodies: bytes) -> list[object]:
    return list(await bus.publish(TOPIC, [Outgoing(f"id-{body!r}", 1, body) for body in bodies]))


async def wait(subscription: Subscription) -> None:
    """Return once there may be something to take."""
    wake = subscription.wake
    assert isinstance(wake, asyncio.Event)
    while not subscription.available:
        wake.clear()
        await wake.wait()


async def receive(subscription: Subscription, count: int) -> list[bytes]:
    payloads: list[bytes] = []
    async with asyncio.timeout(60):
        while len(payloads) < count:
            await wait(subscription)
            payloads += [event.payload for event in await subscription.take(count - len(payloads))]
    return payloads


async def test_a_replay_id_is_the_offset(bus: EventBus) -> None:
    assert await publish(bus, b"a", b"b") == [1, 2]
    subscription = await bus.subscribe(TOPIC, EARLIEST)
    (first, second) = await subscription.take(10)
    assert [(event.replay_id, event.uuid, event.schema_id, event.payload) for event in (first, second)] == [
        (1, "id-b'a'", 1, b"a"),
        (2, "id-b'b'", 1, b"b"),
    ]


async def test_latest_skips_what_was_published_before(bus: EventBus) -> None:
    await publish(bus, b"old")
    subscription = await bus.subscribe(TOPIC, LATEST)
    assert not subscription.available
    await publish(bus, b"new")
    assert await receive(subscription, 1) == [b"new"]


async def test_events_held_back_by_an_open_transaction_are_new_when_it_commits(
    bus: EventBus, log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(bus, b"old")
    bounds = await log.bounds(TOPIC)

    async def with_one_that_cannot_be_read_yet(_: str) -> LogBounds:
        return replace(bounds, end=bounds.end + 1)

    with monkeypatch.context() as patch:
        patch.setattr(log, "bounds", with_one_that_cannot_be_read_yet)
        subscription = await bus.subscribe(TOPIC, LATEST)
    await publish(bus, b"committed now")
    assert await receive(subscription, 1) == [b"committed now"]


async def test_an_id_replays_what_came_after_it(bus: EventBus) -> None:
    await publish(bus, b"0", b"1", b"2")
    assert await receive(await bus.subscribe(TOPIC, 1), 2) == [b"1", b"2"]


@pytest.mark.parametrize("replay_id", [-3, 4, 1 << 62])
async def test_an_id_that_was_never_given_out_is_refused(bus: EventBus, replay_id: int) -> None:
    await publish(bus, b"0", b"1", b"2")
    with pytest.raises(InvalidReplayId, match="you provided was invalid"):
        await bus.subscribe(TOPIC, replay_id)


async def test_an_id_whose_successors_are_gone_is_refused(bus: EventBus, log: MemoryLog) -> None:
    await publish(bus, *[b"%d" % number for number in range(10)])
    log.delete_records(TOPIC, 6)
    with pytest.raises(InvalidReplayId):
        await bus.subscribe(TOPIC, 4)
    assert await receive(await bus.subscribe(TOPIC, 5), 5) == [b"5", b"6", b"7", b"8", b"9"]
    assert await receive(await bus.subscribe(TOPIC, EARLIEST), 1) == [b"5"]


async def test_gaps_are_skipped(bus: EventBus, log: MemoryLog) -> None:
    await publish(bus, b"a")
    log.skip(TOPIC, 7)
    await publish(bus, b"b")
    log.skip(TOPIC, 2)
    subscription = await bus.subscribe(TOPIC, EARLIEST)
    assert await receive(subscription, 2) == [b"a", b"b"]
    await publish(bus, b"c")
    assert await receive(subscription, 1) == [b"c"]


async def test_a_slow_subscriber_gets_everything_in_order_though_the_window_has_moved_on(bus: EventBus) -> None:
    slow, fast = await bus.subscribe(TOPIC, LATEST), await bus.subscribe(TOPIC, LATEST)
    bodies = [b"%05d" % number + b"x" * 1000 for number in range(400)]
    for start in range(0, 400, 40):
        await publish(bus, *bodies[start : start + 40])
        assert await receive(fast, 40) == bodies[start : start + 40]
    assert await receive(slow, 400) == bodies


async def test_many_subscribers_share_one_reader(bus: EventBus, log: MemoryLog) -> None:
    subscriptions = [await bus.subscribe(TOPIC, LATEST) for _ in range(200)]
    await publish(bus, b"1", b"2")
    for subscription in subscriptions:
        assert await receive(subscription, 2) == [b"1", b"2"]
    assert log.reads == 0
    assert len([task for task in asyncio.all_tasks() if task.get_name() == f"events {TOPIC}"]) == 1


async def test_the_reader_ends_with_the_last_subscription(bus: EventBus) -> None:
    first, second = await bus.subscribe(TOPIC, LATEST), await bus.subscribe(TOPIC, LATEST)
    first.close()
    assert bus.subscriptions == 1
    second.close()
    second.close()
    assert bus.subscriptions == 0
    async with asyncio.timeout(60):
        while any(task.get_name() == f"events {TOPIC}" for task in asyncio.all_tasks()):
            await asyncio.sleep(0)


async def test_a_record_that_is_no_event_is_skipped_and_counted(log: MemoryLog) -> None:
    skipped: list[str] = []
    bus = EventBus(log, clock_ms=lambda: 0, on_skipped=skipped.append)
    for value in (None, b"", b"{}", b"\1\0\0\0\1x"):
        await log.put(TOPIC, b"k", value, 0)
    await log.put(TOPIC, b"\xff", b"\0\0\0\0\1x", 0)
    await log.put(TOPIC, None, b"\0\0\0\0\1good", 0)
    assert await receive(await bus.subscribe(TOPIC, EARLIEST), 1) == [b"good"]
    assert skipped == [TOPIC] * 5
    await bus.close()


async def test_subscribers_outlive_an_outage_of_the_log(bus: EventBus, log: MemoryLog) -> None:
    subscription = await bus.subscribe(TOPIC, LATEST)
    await publish(bus, b"before")
    assert await receive(subscription, 1) == [b"before"]
    log.down = True
    (answer,) = await publish(bus, b"lost")
    assert isinstance(answer, BusUnavailable)
    with pytest.raises(BusUnavailable):
        await bus.subscribe(TOPIC, LATEST)
    log.down = False
    await publish(bus, b"after")
    assert await receive(subscription, 1) == [b"after"]


async def test_history_that_cannot_be_read_leaves_the_position(bus: EventBus, log: MemoryLog) -> None:
    await publish(bus, b"a", b"b")
    subscription = await bus.subscribe(TOPIC, EARLIEST)
    log.down = True
    with pytest.raises(BusUnavailable):
        await subscription.take(1)
    log.down = False
    assert await receive(subscription, 2) == [b"a", b"b"]


async def test_subscribers_of_a_topic_that_was_made_anew_are_told(log: MemoryLog) -> None:
    bus = EventBus(log, clock_ms=lambda: 0, check_s=0.01)
    await publish(bus, b"a")
    before = await bus.subscribe(TOPIC, LATEST)
    log.delete(TOPIC)
    await log.create(TOPIC, 3_600_000)
    async with asyncio.timeout(60):
        await wait(before)
    with pytest.raises(InvalidReplayId):
        await before.take(1)
    before.close()
    after = await bus.subscribe(TOPIC, EARLIEST)
    await publish(bus, b"b")
    assert await receive(after, 1) == [b"b"]
    await bus.close()
