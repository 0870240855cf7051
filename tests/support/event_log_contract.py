"""The contract of every event log, both Kafka's and the in-memory double that other tests use."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from typing import Any

import pytest

from events.errors import BusUnavailable, EventTooLarge
from events.store.log import LogRecord

__all__ = ["EventLogContract", "collect"]


async def collect(log: Any, topic: str, offset: int, count: int) -> list[LogRecord]:
    """The next records that a follower of the topic gets, at least so many."""
    records: list[LogRecord] = []
    async with asyncio.timeout(60), contextlib.aclosing(log.follow(topic, offset)) as following:
        async for piece in following:
            records += piece.records
            if len(records) >= count:
                break
    return records


class EventLogContract:
    """Inherit it as ``Test...`` with a fixture ``log`` (a started ``events.store.log.EventLog`` and ``events.store.catalog.TopicStore``)."""

    async def delete_records(self, log: Any, topic: str, before: int) -> None:
        """Do what retention does: records before this offset are gone."""
        raise NotImplementedError

    async def delete_topic(self, log: Any, topic: str) -> None:
        raise NotImplementedError

    @pytest.fixture
    async def topic(self, log: Any) -> str:
        name = f"E{uuid.uuid4().hex}__e"
        await log.create(name, 3_600_000)
        return name

    async def test_appended_events_are_read_and_followed_in_order(self, log: Any, topic: str) -> None:
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

    async def test_the_first_event_has_replay_id_one(self, log: Any, topic: str) -> None:
        bounds = await log.bounds(topic)
        assert (bounds.start, bounds.end) == (1, 1)
        assert await log.append(topic, [(b"k", b"v", 1)]) == [1]
        assert [record.value for record in (await log.read(topic, 0, 4096)).records] == [b"v"]

    async def test_a_topic_keeps_events_for_as_long_as_it_is_told(self, log: Any, topic: str) -> None:
        assert await log.retention_ms(topic) == 3_600_000
        await log.keep(topic, -1)
        # Apache Kafka answers before each of its brokers applies a change.
        async with asyncio.timeout(60):
            while await log.retention_ms(topic) != -1:
                await asyncio.sleep(0.05)

    async def test_deleted_events_are_skipped(self, log: Any, topic: str) -> None:
        for number in range(10):
            await log.append(topic, [(b"k", b"%d" % number, 1)])
        await self.delete_records(log, topic, 6)
        assert (await log.bounds(topic)).start == 6
        assert next(record.offset for record in (await log.read(topic, 2, 4096)).records) == 6
        assert [record.offset for record in await collect(log, topic, 2, 5)] == [6, 7, 8, 9, 10]

    async def test_a_topic_that_is_made_anew_has_another_identity(self, log: Any, topic: str) -> None:
        before = (await log.bounds(topic)).identity
        assert (await log.bounds(topic)).identity == before
        await self.delete_topic(log, topic)
        assert await log.partitions(topic) is None
        await log.create(topic, 3_600_000)
        assert (await log.bounds(topic)).identity != before

    async def test_a_transaction_is_read_whole_or_not_at_all(self, log: Any, topic: str) -> None:
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
        self, log: Any, topic: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("events.store.transactions.TIMEOUT_MS", 300)
        with pytest.raises(BusUnavailable, match="none is published"):
            async with log.transaction() as transaction:
                await transaction.append(topic, [(b"k", b"v", 1)])
                await asyncio.sleep(5)
        await log.append(topic, [(b"k", b"after", 1)])
        assert [record.value for record in await collect(log, topic, 0, 1)] == [b"after"]

    async def test_an_event_that_is_too_large_is_refused_alone(self, log: Any, topic: str) -> None:
        good, large = (b"k", b"x", 1), (b"k", b"x" * (5 * 1024 * 1024), 1)
        first, refused, last = await log.append(topic, [good, large, good])
        assert (first, last) == (1, 2)
        assert isinstance(refused, EventTooLarge)
        many = [good] * 20 + [large] + [good] * 20
        answers = await log.append(topic, many)
        assert isinstance(answers.pop(20), EventTooLarge)
        assert answers == list(range(3, 43))

    async def test_events_are_found_by_their_time(self, log: Any, topic: str) -> None:
        await log.append(topic, [(b"k", b"v", 1_000 * number) for number in range(1, 4)])
        assert [await log.offset_at(topic, at) for at in (0, 2_000, 2_001, 3_001)] == [1, 2, 3, None]

    async def test_a_topic_that_is_there_is_left_as_it_is(self, log: Any, topic: str) -> None:
        await log.append(topic, [(b"k", b"v", 1)])
        before = await log.bounds(topic)
        await log.create(topic, 1)
        after = await log.bounds(topic)
        assert after == before, (after, before)
        kept = await log.retention_ms(topic)
        assert kept == 3_600_000, kept
        assert await log.partitions(topic) == 1

    async def test_what_was_being_appended_is_readable_once_it_is_flushed(self, log: Any, topic: str) -> None:
        await log.flushed(topic)
        first = await log.readable(topic)
        appending = asyncio.create_task(log.append(topic, [(b"k", b"v", 1)] * 100))
        for _ in range(3):
            await asyncio.sleep(0)  # so that it is being sent
        await log.flushed(topic)
        assert await log.readable(topic) == (await log.bounds(topic)).readable == first + 100
        assert await appending == list(range(first, first + 100))

    async def test_appended_events_are_settled(self, log: Any, topic: str) -> None:
        appending = [asyncio.create_task(log.append(topic, [(b"k", b"%d" % n, 1)])) for n in range(20)]
        await asyncio.sleep(0)
        await log.settled(topic)
        offsets = [offset for (offset,) in await asyncio.gather(*appending)]
        assert sorted(offsets) == list(range(1, 21)) and (await log.bounds(topic)).end == 21

    async def test_an_open_transaction_holds_its_readers_back_and_an_aborted_one_leaves_a_gap(
        self, log: Any, topic: str
    ) -> None:
        await log.append(topic, [(b"k", b"before", 1)])
        with pytest.raises(RuntimeError):
            async with log.transaction() as transaction:
                (appended,) = await transaction.append(topic, [(b"k", b"undone", 1)])
                await log.append(topic, [(b"k", b"after", 1)])
                bounds = await log.bounds(topic)
                assert bounds.readable == appended < bounds.end
                assert [record.value for record in (await log.read(topic, 0, 4096)).records] == [b"before"]
                raise RuntimeError
        assert [record.value for record in await collect(log, topic, 0, 2)] == [b"before", b"after"]
        bounds = await log.bounds(topic)
        assert bounds.readable == bounds.end > appended + 2, "the marker takes an offset, too"
