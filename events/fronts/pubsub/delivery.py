"""Shared by Subscribe and ManagedSubscribe: replay ids on the wire, flow control, and limits on response size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple, Protocol

from events.bus.bus import Event
from events.fronts.pubsub.errors import CallRefused, replay_id_refused
from events.limits.allowance import Allowance
from events.limits.errors import DeliveryLimitExceeded
from events.proto import pubsub_api_pb2 as pb
from tidegate.kit.errors import TidegateError

__all__ = [
    "MAX_PENDING",
    "Flow",
    "Portion",
    "add_events",
    "decode_replay_id",
    "deliver",
    "encode_replay_id",
    "requested",
]

MAX_PENDING: Final = 100
"""The most events that can be requested by one subscriber; larger requests are reduced to this."""
_RESPONSE_BYTES: Final = 3 * 1024 * 1024
_MOST_ANSWERS: Final = 100
"""The most answers that wait for a client that does not read; its requests are not read meanwhile."""


def encode_replay_id(replay_id: int) -> bytes:
    return replay_id.to_bytes(8, signed=True) + b"\0\0"


def decode_replay_id(data: bytes) -> int:
    """Raises Salesforce's refusal for bytes that are not a replay id."""
    if len(data) == 8 or (len(data) == 10 and data[8:] == b"\0\0"):
        return int.from_bytes(data[:8], signed=True)
    raise replay_id_refused(f"it is {len(data)} bytes ({data[:16].hex()}), where the 8 or 10 of a received one belong")


def requested(number: int) -> int:
    """How many events a request adds. Raises a refusal if it asks for none."""
    if number <= 0:
        raise CallRefused(
            "subscription.fetch.requested.events.invalid",
            f"The number of requested events is {number}; it must be greater than 0",
        )
    return min(number, MAX_PENDING)


class Flow:
    """The number of requested and undelivered events, and the answers to requests."""

    def __init__(self, pending: int) -> None:
        self.pending = pending
        self.wake = asyncio.Event()
        self.ended = False
        self.failure: TidegateError | None = None
        self.answers: asyncio.Queue[Any] = asyncio.Queue(_MOST_ANSWERS)
        """Answers to requests, to be sent as soon as possible."""

    def ask(self, number: int) -> None:
        self.pending = min(self.pending + number, MAX_PENDING)
        self.wake.set()

    async def answer(self, answer: Any) -> None:
        """Queue an answer. Returns when there is room for it."""
        await self.answers.put(answer)
        self.wake.set()

    def fail(self, error: TidegateError) -> None:
        self.failure = error
        self.wake.set()

    async def read(self, requests: AsyncIterator[Any], take: Callable[[Any], Awaitable[None]]) -> None:
        """Read further requests until the client sends no more, and pass each to ``take``."""
        try:
            async for request in requests:
                await take(request)
        except TidegateError as error:
            self.failure = error
        finally:
            self.ended = True
            self.wake.set()


class Takable(Protocol):
    """A source of events: a subscription, or a worker's share of one."""

    position: int
    """The replay id after the latest taken event."""

    @property
    def available(self) -> bool: ...

    async def take(self, max_events: int) -> list[Event]: ...


class Portion(NamedTuple):
    """The content of one response: events, an answer to a request, or neither (a keepalive)."""

    events: list[Event]
    latest: int
    answer: Any = None


async def deliver(
    subscription: Takable, flow: Flow, *, keepalive_s: float, check: Callable[[], float], allowance: Allowance
) -> AsyncGenerator[Portion, None]:
    """Deliver as many events as are requested and permitted.

    ``check`` is called before each wait: it raises when the call has to end, and returns the seconds until the next
    check. Raises DeliveryLimitExceeded if there are events but none may be delivered.
    """
    while True:
        flow.wake.clear()
        if flow.failure is not None:
            raise flow.failure
        if not flow.answers.empty():
            yield Portion([], subscription.position - 1, flow.answers.get_nowait())
            continue
        if flow.pending and subscription.available:
            if not allowance.left:
                raise DeliveryLimitExceeded
            for events in _by_size(await subscription.take(min(flow.pending, allowance.left))):
                flow.pending -= len(events)
                allowance.add(len(events))
                yield Portion(events, events[-1].replay_id)
            continue
        if flow.ended and not flow.pending:
            return
        try:
            async with asyncio.timeout(min(keepalive_s, check())):
                await flow.wake.wait()
        except TimeoutError:
            check()
            yield Portion([], subscription.position - 1)


def _by_size(events: list[Event]) -> list[list[Event]]:
    """Split into responses below any client's message limit."""
    cut: list[list[Event]] = []
    size = _RESPONSE_BYTES
    for event in events:
        size += event.size
        if size > _RESPONSE_BYTES:
            cut.append([])
            size = event.size
        cut[-1].append(event)
    return cut


def add_events(response: pb.FetchResponse | pb.ManagedFetchResponse, events: list[Event]) -> None:
    """Add events to a response. Filling them in place costs half as much as creating messages one by one."""
    add = response.events.add
    for event in events:
        made = add(replay_id=encode_replay_id(event.replay_id)).event
        made.id = event.uuid
        made.schema_id = str(event.schema_id)
        made.payload = event.payload
