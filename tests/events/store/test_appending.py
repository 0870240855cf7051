"""How the appends of many requests share batches, with a producer that the test controls."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from broker.client import Ack, BatchProducer, EncodedBatch
from broker.client.errors import MessageTooLarge
from events.errors import BusUnavailable, EventTooLarge
from events.store.appending import Appender

pytestmark = pytest.mark.anyio
RECORD = (b"k", b"v", 1)


class Producer:
    """Takes batches; ``answer`` gives the oldest one's answer: offsets from 100 on, or an error."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self._open: list[tuple[int, asyncio.Future[Ack]]] = []
        self._end = 100

    async def send_batch(self, topic: str, partition: int, batch: EncodedBatch) -> asyncio.Future[Ack]:
        future: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
        self.taken.append(batch.count)
        self._open.append((batch.count, future))
        return future

    def answer(self, error: Exception | None = None) -> None:
        count, future = self._open.pop(0)
        if error is not None:
            future.set_exception(error)
            return
        future.set_result(Ack("t", 0, self._end, -1))
        self._end += count


async def turn() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def producer() -> Producer:
    return Producer()


def appender(producer: Producer, timeout_s: float = 60) -> Appender:
    return Appender(cast(BatchProducer, cast(Any, producer)), compression="none", timeout_s=timeout_s)


async def test_events_that_arrive_during_an_append_share_the_next_batch(producer: Producer) -> None:
    made = appender(producer)
    asked = [asyncio.create_task(made.append("t", [RECORD] * count)) for count in (1, 2, 3)]
    await turn()
    late = [asyncio.create_task(made.append("t", [RECORD] * count)) for count in (1, 4)]
    await turn()
    assert producer.taken == [6]
    producer.answer()
    await turn()
    assert producer.taken == [6, 5]
    producer.answer()
    assert await asyncio.gather(*asked) == [[100], [101, 102], [103, 104, 105]]
    assert await asyncio.gather(*late) == [[106], [107, 108, 109, 110]]


async def test_a_refusal_is_told_to_the_requests_of_its_batch(producer: Producer) -> None:
    made = appender(producer)
    asked = asyncio.create_task(made.append("t", [RECORD, (b"k", b"x" * 600_000, 1), RECORD]))
    await turn()
    assert producer.taken == [1, 1, 1]
    for error in (None, MessageTooLarge("too large"), None):
        producer.answer(error)
    first, refused, last = await asked
    assert (first, last) == (100, 101) and isinstance(refused, EventTooLarge)
    assert await made.append("t", []) == []


async def test_sent_events_may_be_stored_and_waiting_ones_are_not_sent_after_a_timeout(producer: Producer) -> None:
    made = appender(producer, timeout_s=0.01)
    sent = asyncio.create_task(made.append("t", [RECORD]))
    await turn()
    (waiting,) = await made.append("t", [RECORD])
    assert isinstance(waiting, BusUnavailable) and "took no event" in str(waiting)
    (unknown,) = await sent
    assert isinstance(unknown, BusUnavailable) and "may still be published" in str(unknown)
    with pytest.raises(BusUnavailable, match="not yet answered"):
        await made.settled("t")
    producer.answer()
    await made.settled("t")
    assert producer.taken == [1]


async def test_a_fault_in_one_round_reaches_its_requests_and_not_the_next(producer: Producer) -> None:
    made = appender(producer)
    broken = asyncio.create_task(made.append("t", [RECORD]))
    await turn()
    good = asyncio.create_task(made.append("t", [RECORD]))
    await turn()
    producer.answer(RuntimeError("unforeseen"))
    with pytest.raises(RuntimeError, match="unforeseen"):
        await broken
    await turn()
    producer.answer()
    assert await good == [100]


async def test_at_the_end_what_waits_is_refused(producer: Producer) -> None:
    made = appender(producer)
    sent = asyncio.create_task(made.append("t", [RECORD]))
    await turn()
    waiting = asyncio.create_task(made.append("t", [RECORD]))
    await turn()
    made.refuse_waiting()
    producer.answer()
    await made.stop()
    assert await sent == [100]
    with pytest.raises(BusUnavailable, match="The service ends"):
        await waiting


@pytest.mark.parametrize("turns", range(8))
async def test_a_caller_that_leaves_while_the_answer_arrives_owes_nothing(producer: Producer, turns: int) -> None:
    made = appender(producer, timeout_s=0.05)
    asked = asyncio.create_task(made.append("t", [RECORD]))
    await turn()
    producer.answer()
    for _ in range(turns):
        await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    await turn()
    await made.settled("t")
