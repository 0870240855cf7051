"""Fetch sessions: responses contain only partitions that changed, and a consumer with many partitions gets records from
all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.api.routes import Context, Pending
from broker.broker import Broker
from broker.config import BrokerConfig
from broker.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from broker.fetch_sessions import EVICTABLE_AFTER_MS, FetchSessions
from broker.handlers.fetch import fetch
from broker.log.partition import PartitionLog
from broker.protocol.fetch import FetchPartition, FetchRequest, FetchResponse
from broker.protocol.records import Record, encode_batch
from broker.steps import run_through
from tests.support import broker as support
from tidegate.kit.config import parse


class Consumer:
    """Sends the requests of one session; ``told`` is its knowledge of each partition."""

    def __init__(self, broker: Broker, *, version: int = 12, isolation_level: int = 0) -> None:
        self.context = Context(broker, version, "c", "127.0.0.1", "PLAINTEXT")
        self.isolation_level = isolation_level
        self.session = 0
        self.epoch = 0
        self.offsets: dict[int, int] = {}
        self.told: dict[int, tuple[int, int, int]] = {}
        self.sizes: dict[int, int] = {}

    def request(
        self, offsets: dict[int, int] | None = None, forget: list[int] | None = None, **more: Any
    ) -> FetchRequest:
        self.offsets |= offsets or {}
        partitions = [FetchPartition(index, offset, 1 << 20) for index, offset in (offsets or {}).items()]
        more = {"max_wait_ms": 0, "isolation_level": self.isolation_level, **more}
        return FetchRequest(
            [("t", partitions)] if partitions else [],
            session_id=self.session,
            session_epoch=self.epoch,
            forgotten=[("t", forget)] if forget else (),
            **more,
        )

    async def fetch(self, *offsets: dict[int, int], **more: Any) -> list[int]:
        """The partitions that the answer names."""
        return await self.answer(fetch(self.context, self.request(*offsets, **more)))

    async def answer(self, outcome: FetchResponse | Pending) -> list[int]:
        if isinstance(outcome, Pending):
            outcome = outcome.make(await support.kept(outcome.future))  # type: ignore[assignment]
        assert isinstance(outcome, FetchResponse)
        self.session = outcome.session_id
        self.epoch += 1
        results = [partition for _, partitions in outcome.topics for partition in partitions]
        for partition in results:
            self.told[partition.partition] = (
                partition.error_code,
                partition.high_watermark,
                partition.log_start_offset,
            )
        self.sizes = {partition.partition: partition.records.size if partition.records else 0 for partition in results}
        return [partition.partition for partition in results]


Test = Callable[[Broker], Awaitable[None]]


def run(directory: Path, test: Test, **overrides: str) -> None:
    async def whole() -> None:
        broker = Broker(parse(BrokerConfig, support.settings(directory, **overrides)))
        broker.topics.create("t", partitions=4)
        with contextlib.closing(_Closing(broker)):
            await test(broker)
        await broker.close()

    asyncio.run(whole())


class _Closing:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def close(self) -> None:
        self.broker.arrivals.wake_all()


def log_of(broker: Broker, partition: int) -> PartitionLog:
    return broker.partitions.find("t", partition)


def append(broker: Broker, partition: int, count: int = 1, **fields: Any) -> None:
    records = [Record(b"key", b"value", (), 1)] * count
    broker.partitions.append(
        log_of(broker, partition), memoryview(encode_batch(records, **fields)), acks=1, transaction_version=0
    )


def test_an_answer_names_only_what_changed(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker)
        assert await consumer.fetch({0: 0, 1: 0, 2: 0}) == [0, 1, 2]
        assert consumer.session > 0
        assert await consumer.fetch() == []
        append(broker, 1)
        assert await consumer.fetch() == [1]
        assert await consumer.fetch({1: 1}) == []
        broker.topics.delete_records("t", 1, -1, broker.partitions)
        assert await consumer.fetch() == [1]
        append(broker, 3)
        assert await consumer.fetch({3: 1}) == [3]
        assert await consumer.fetch() == []

    run(tmp_path, test)


def test_records_that_were_not_fetched_are_returned_again(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker)
        append(broker, 0)
        await consumer.fetch({0: 0})
        for _ in range(3):
            assert await consumer.fetch() == [0]
        assert await consumer.fetch(forget=[0]) == []
        assert consumer.session == 0

    run(tmp_path, test)


def test_an_error_is_told_each_time_and_its_end_too(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker)
        assert await consumer.fetch({0: 0, 7: 0, 1: 5}) == [0, 7, 1]
        assert [consumer.told[index][0] for index in (0, 7, 1)] == [0, 3, 1]
        assert await consumer.fetch() == [7, 1]
        run_through(broker.metadata.grow_topic("t", 8))
        assert await consumer.fetch({1: 0}) == [7, 1]
        assert [consumer.told[index][0] for index in (7, 1)] == [0, 0]
        assert await consumer.fetch() == []
        run_through(broker.topics.delete([broker.topics.find("t")], broker.partitions, broker.groups))
        assert sorted(await consumer.fetch()) == [0, 1, 7]
        broker.topics.create("t", partitions=4)
        assert sorted(await consumer.fetch()) == [0, 1, 7]
        assert await consumer.fetch() == [7]

    run(tmp_path, test)


@pytest.mark.parametrize(
    ("session", "epoch", "version", "error"),
    [(1, 0, 12, FetchSessionIdNotFound), (0, 1, 12, InvalidFetchSessionEpoch), (0, 0, 13, FetchSessionTopicIdError)],
)
def test_a_session_that_does_not_fit_is_refused(
    tmp_path: Path, session: int, epoch: int, version: int, error: type[Exception]
) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker)
        await consumer.fetch({0: 0})
        consumer.session += session
        consumer.epoch += epoch
        consumer.context = Context(broker, version, "c", "127.0.0.1", "PLAINTEXT")
        with pytest.raises(error):
            await consumer.fetch()

    run(tmp_path, test)


def test_a_full_fetch_ends_the_session_it_names(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker)
        await consumer.fetch({0: 0})
        first, consumer.epoch = consumer.session, 0
        await consumer.fetch({0: 0})
        assert consumer.session not in (0, first)
        consumer.epoch = -1
        await consumer.fetch({0: 0})
        assert consumer.session == len(broker.fetch_sessions) == 0
        append(broker, 0)  # nobody watches any more

    run(tmp_path, test)


def test_partitions_with_much_to_give_do_not_starve_others(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker)
        for partition in range(3):
            append(broker, partition, 10)
        await consumer.fetch({0: 0, 1: 0, 2: 0})
        served = []
        for _ in range(6):
            await consumer.fetch(max_bytes=1)
            served += [partition for partition, size in consumer.sizes.items() if size]
        assert sorted(served[:3]) == sorted(served[3:]) == [0, 1, 2]

    run(tmp_path, test)


def test_a_waiting_fetch_is_woken_by_any_partition_of_its_session(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker)
        await consumer.fetch({0: 0, 1: 0})
        pending = fetch(consumer.context, consumer.request({2: 0}, max_wait_ms=60_000))
        assert isinstance(pending, Pending)
        append(broker, 2)
        assert sorted(await consumer.answer(pending)) == [2]
        pending = fetch(consumer.context, consumer.request({2: 1}, max_wait_ms=60_000, min_bytes=2000))
        assert isinstance(pending, Pending)
        append(broker, 0)
        append(broker, 1)
        assert not pending.future.done()
        append(broker, 0, 300)
        assert sorted(await consumer.answer(pending)) == [0, 1]

    run(tmp_path, test)


def test_a_fetch_that_was_overtaken_is_told_so(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker)
        await consumer.fetch({0: 0})
        pending = fetch(consumer.context, consumer.request(max_wait_ms=60_000))
        consumer.epoch += 1
        await consumer.fetch()
        assert isinstance(pending, Pending)
        with pytest.raises(InvalidFetchSessionEpoch):
            pending.make(await support.kept(pending.future))

    run(tmp_path, test)


@pytest.mark.parametrize("in_session", [True, False])
def test_readers_of_committed_records_are_woken_by_the_marker(tmp_path: Path, in_session: bool) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker, isolation_level=1)
        offsets = {0: 0}
        if in_session:
            await consumer.fetch(offsets)
            offsets = {}
        else:
            consumer.epoch = -1
        pending = fetch(consumer.context, consumer.request(offsets, max_wait_ms=60_000))
        assert isinstance(pending, Pending)
        for sequence in range(2):
            append(broker, 0, producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True)
        await asyncio.sleep(0)
        assert not pending.future.done()
        log = log_of(broker, 0)
        log.append_marker(7, 0, commit=True)
        broker.partitions.appended(log, 78)
        assert await consumer.answer(pending) == [0]
        assert consumer.sizes[0] > 78

    run(tmp_path, test)


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


def test_the_cache_gives_up_what_kafka_gives_up(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        clock = Clock()
        sessions = FetchSessions(2, broker.arrivals, clock)

        def create(size: int) -> int:
            session = sessions.create(size, uses_topic_ids=False)
            if session is None:
                return 0
            session.want([("t", [FetchPartition(index, 0, 1) for index in range(size)])])
            return session.id

        def use(session_id: int) -> None:
            request = FetchRequest([], session_id=session_id, session_epoch=sessions._sessions[session_id].epoch)
            sessions.resume(request, uses_topic_ids=False)

        small, large = create(2), create(5)
        assert create(100) == 0, "both are young"
        clock.now = EVICTABLE_AFTER_MS + 1
        use(small), use(large)
        assert create(2) == 0, "none is smaller"
        third = create(3)
        assert third
        assert small not in sessions._sessions
        clock.now = 2 * EVICTABLE_AFTER_MS + 3
        use(third)
        fourth = create(1)
        assert fourth, "the large one was unused for two minutes"
        assert set(sessions._sessions) == {third, fourth}
        assert (len(sessions), sessions.partitions, sessions.evictions) == (2, 4, 2)

    run(tmp_path, test)


def test_without_a_free_slot_every_fetch_is_a_full_one(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker)
        assert await consumer.fetch({0: 0, 1: 0}) == [0, 1]
        assert consumer.session == 0

    run(tmp_path, test, max_incremental_fetch_session_cache_slots="0")


def test_sessions_work_by_topic_id(tmp_path: Path) -> None:
    async def test(broker: Broker) -> None:
        topic_id = broker.metadata.topic("t").id
        context = Context(broker, 17, "c", "127.0.0.1", "PLAINTEXT")
        partitions = [FetchPartition(0, 0, 1000)]
        first = fetch(
            context,
            FetchRequest([(topic_id, partitions), (uuid.UUID(int=9), partitions)], session_epoch=0, max_wait_ms=0),
        )
        assert isinstance(first, FetchResponse)
        append(broker, 0)
        again = fetch(context, FetchRequest([], session_id=first.session_id, session_epoch=1, max_wait_ms=0))
        assert isinstance(again, FetchResponse)
        assert {topic: [result.error_code for result in results] for topic, results in again.topics} == {
            topic_id: [0],
            uuid.UUID(int=9): [100],
        }

    run(tmp_path, test)


def _with_records(consumer: Consumer) -> dict[int, int]:
    return {index: size for index, size in consumer.sizes.items() if size}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 3)),
        st.tuples(st.just("delete"), st.integers(0, 3)),
        st.tuples(st.just("seek"), st.integers(0, 3)),
        st.tuples(st.just("forget"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.integers(0, 3)),
        st.tuples(st.just("fetch"), st.just(0)),
    ),
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS, isolation_level=st.integers(0, 1))
def test_a_session_knows_what_full_fetches_know(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]], isolation_level: int
) -> None:
    async def test(broker: Broker) -> None:
        consumer = Consumer(broker, isolation_level=isolation_level)
        await consumer.fetch({0: 0})
        for what, partition in steps:
            if what == "append":
                append(broker, partition)
            elif what == "delete":
                broker.topics.delete_records("t", partition, -1, broker.partitions)
            elif what == "seek":
                await consumer.fetch({partition: log_of(broker, partition).log_end_offset})
            elif what == "forget" and len(consumer.offsets) > 1 and partition in consumer.offsets:
                del consumer.offsets[partition], consumer.told[partition]
                await consumer.fetch(forget=[partition])
            elif what == "wait":
                pending = fetch(consumer.context, consumer.request(max_wait_ms=60_000))
                append(broker, partition)
                broker.arrivals.wake_all()
                await consumer.answer(pending)
            else:
                await consumer.fetch()
        await consumer.fetch()
        full = Consumer(broker, isolation_level=isolation_level)
        full.epoch = -1
        await full.fetch(consumer.offsets)
        assert consumer.told == full.told
        assert _with_records(consumer) == _with_records(full)

    run(tmp_path_factory.mktemp("s"), test)
