"""Appends to the log: concurrent requests share batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from broker.client import Ack, BatchProducer, EncodedBatch, encode_records
from broker.client.errors import MessageTooLarge
from events.errors import BusUnavailable, EventsError, EventTooLarge
from tidegate.kit.errors import TidegateError

__all__ = ["Appender", "Record"]

Record = tuple[bytes, bytes | None, int]
"""Key, value, and timestamp in milliseconds."""

_BATCH_BYTES: Final = 500_000
_Answers = list[int | TidegateError]


@dataclass(slots=True, eq=False)
class _Request:
    records: Sequence[Record]
    told: asyncio.Future[_Answers]
    """The future that the caller waits for, and may abandon before the outcome is known."""
    is_decided: bool = field(default=False, init=False)
    late: asyncio.Future[None] | None = field(default=None, init=False)
    """Done when the outcome is known, if the caller left before."""

    def decide(self, answers: _Answers | Exception) -> None:
        self.is_decided = True
        if self.late is not None:
            self.late.set_result(None)
        if self.told.done():
            return
        if isinstance(answers, Exception):
            self.told.set_exception(answers)
        else:
            self.told.set_result(answers)


class Appender:
    """Appends to partition 0 of topics, in the order of the calls.

    A topic has one round of batches in flight; requests that arrive meanwhile form the next round. So a single request
    is sent at once, and many concurrent ones cost little each. Use it on one event loop.
    """

    def __init__(self, producer: BatchProducer, *, compression: str, timeout_s: float) -> None:
        self._producer, self._compression, self._timeout_s = producer, compression, timeout_s
        self._waiting: dict[str, deque[_Request]] = {}
        self._rounds: dict[str, asyncio.Task[None]] = {}
        self._flights: dict[str, asyncio.Future[None]] = {}
        """By topic, done when the round in flight has its answers."""
        self._late: dict[str, set[asyncio.Future[None]]] = {}

    async def append(self, topic: str, records: Sequence[Record], timeout_s: float | None = None) -> _Answers:
        """Returns for each record its offset, or why it may be missing; see ``EventLog.append``."""
        if not records:
            return []
        loop = asyncio.get_running_loop()
        request = _Request(records, loop.create_future())
        waiting = self._waiting.setdefault(topic, deque())
        waiting.append(request)
        if topic not in self._rounds:
            self._rounds[topic] = asyncio.create_task(self._run(topic), name=f"append to {topic}")
        timer = loop.call_later(self._timeout_s if timeout_s is None else timeout_s, self._give_up, topic, request)
        try:
            return await request.told
        except asyncio.CancelledError:
            self._leave(topic, request)
            raise
        finally:
            timer.cancel()

    def _give_up(self, topic: str, request: _Request) -> None:
        """Tell the caller of a request that it took too long."""
        if request.told.done():
            return
        within = f"within {self._timeout_s:g} s"  # of the publisher's request, of which less may have been left
        if self._leave(topic, request):
            about = f"The log took no event for {topic} {within}"
        else:
            about = f"The log did not acknowledge the event for {topic} {within}; it may still be published"
        request.told.set_result([BusUnavailable(about)] * len(request.records))

    def _leave(self, topic: str, request: _Request) -> bool:
        """No caller waits for a request any more. Returns whether it was not sent yet, and now never will be."""
        waiting = self._waiting.get(topic, ())
        if request in waiting:
            self._waiting[topic].remove(request)
            return True
        if not request.is_decided and request.late is None:
            topics = self._late.setdefault(topic, set())
            request.late = asyncio.get_running_loop().create_future()
            request.late.add_done_callback(topics.discard)
            topics.add(request.late)
        return False

    async def settled(self, topic: str) -> None:
        """Return once the outcome of all abandoned records is known; see ``EventLog.settled``."""
        late = self._late.get(topic)
        if late:
            await asyncio.wait(late, timeout=self._timeout_s)
            if late:
                raise BusUnavailable(f"The log has not yet answered for earlier events of {topic}")

    async def flushed(self, topic: str) -> None:
        """Return once the round in flight has its answers; see ``EventLog.flushed``."""
        flight = self._flights.get(topic)
        if flight is not None and not (await asyncio.wait([flight], timeout=self._timeout_s))[0]:
            raise BusUnavailable(f"The log has not yet answered for events of {topic} that are being published")

    def refuse_waiting(self) -> None:
        """Refuse all requests that are not in flight yet. Call it before the producer is stopped."""
        for topic, waiting in self._waiting.items():
            for request in waiting:
                request.decide(BusUnavailable(f"The service ends; nothing more is published to {topic}"))
            waiting.clear()

    async def stop(self) -> None:
        """Call it once the producer is stopped, which completes every round."""
        if self._rounds:
            _, unanswered = await asyncio.wait(self._rounds.values(), timeout=1)
            for task in unanswered:
                task.cancel()
            await asyncio.gather(*unanswered, return_exceptions=True)

    async def _run(self, topic: str) -> None:
        waiting = self._waiting[topic]
        try:
            while waiting:
                requests = list(waiting)
                waiting.clear()
                flight = self._flights[topic] = asyncio.get_running_loop().create_future()
                try:
                    answers = await self._round(topic, [record for each in requests for record in each.records])
                except BaseException as error:
                    for request in requests:
                        request.decide(error if isinstance(error, Exception) else BusUnavailable("The service ends"))
                    if not isinstance(error, Exception):
                        raise
                else:
                    first = 0
                    for request in requests:
                        last = first + len(request.records)
                        request.decide(answers[first:last])
                        first = last
                finally:
                    flight.set_result(None)
        finally:
            del self._rounds[topic], self._waiting[topic]
            self._flights.pop(topic, None)

    async def _round(self, topic: str, records: Sequence[Record]) -> _Answers:
        sent: list[tuple[int, asyncio.Future[Ack] | TidegateError]] = []
        for batch in encode_records(records, compression=self._compression, max_bytes=_BATCH_BYTES):
            sent.append((batch.count, await self._send(topic, batch)))  # noqa: PERF401 - each waits for room
        futures = [answer for _, answer in sent if isinstance(answer, asyncio.Future)]
        if futures:
            await asyncio.wait(futures)
        answers: _Answers = []
        for count, each in sent:
            answer = _answer(topic, each)
            answers += range(answer, answer + count) if isinstance(answer, int) else [answer] * count
        return answers

    async def _send(self, topic: str, batch: EncodedBatch) -> asyncio.Future[Ack] | TidegateError:
        try:
            return await self._producer.send_batch(topic, 0, batch)
        except TidegateError as error:
            return error


def _answer(topic: str, answer: asyncio.Future[Ack] | TidegateError) -> int | TidegateError:
    """The offset of a batch, or its error."""
    if isinstance(answer, asyncio.Future):
        error = answer.exception()
        if error is None:
            offset = answer.result().offset
            if offset >= 0:
                return offset
            return BusUnavailable(f"The log has events for {topic} and no longer knows at which offsets")
        if not isinstance(error, TidegateError):
            raise error
        answer = error
    if isinstance(answer, MessageTooLarge):
        return EventTooLarge(str(answer))
    if isinstance(answer, EventsError) or not answer.retriable:
        return answer
    return BusUnavailable(f"Publishing to {topic}: {answer}")
