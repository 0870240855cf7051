"""Shared subscriptions: several workers on one managed subscription; each event goes to one of them.

When a worker's stream ends, however it ends, its uncommitted events go to other workers. Uncommitted events are stored
individually, so that events committed out of order are not repeated after a restart; so their number is limited. One
events server at a time distributes a subscription's events; it holds a lease in the servers' shared state.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from events.bus.bus import Event, EventBus, Subscription
from events.errors import BusUnavailable, SubscriptionElsewhere, SubscriptionTakenOver
from events.subscriptions.managed import ManagedSubscription, ManagedSubscriptions, SharedPosition
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["MOST_OPEN", "SharedSubscriptions", "Worker"]

logger = get_logger(__name__)

_LEASE_MS: Final = 10_000
_RENEW_S: Final = 3.0
MOST_OPEN: Final = 1000
"""The most uncommitted events of a worker; it gets no more until it commits."""
_MOST_OPEN_IN_ALL: Final = 50_000
"""The same over all workers, because their numbers are written with each commit."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(eq=False, slots=True)
class Worker:
    """One stream's share, with the interface of a Subscription."""

    dealer: _Dealer
    wake: asyncio.Event
    fail: Callable[[TidegateError], None]
    position: int
    in_progress: dict[int, Event] = field(default_factory=dict)
    """Uncommitted events of this worker, in the order of delivery."""

    @property
    def available(self) -> bool:
        return len(self.in_progress) < MOST_OPEN and self.dealer.available

    async def take(self, max_events: int) -> list[Event]:
        events = await self.dealer.take(self, min(max_events, MOST_OPEN - len(self.in_progress)))
        if events:
            self.position = events[-1].replay_id + 1
        return events

    async def commit(self, replay_id: int) -> None:
        """Mark this worker's events up to this one, in topic order, as done. When this returns, that is stored."""
        await self.dealer.commit(self, replay_id)

    def close(self) -> None:
        self.dealer.left(self)


class _Dealer:
    """Distributes the events of one subscription, on the server that holds its lease."""

    def __init__(
        self,
        name: str,
        subscription: Subscription,
        wake: asyncio.Event,
        before: SharedPosition,
        managed: ManagedSubscriptions,
    ) -> None:
        """``wake`` is set by the subscription; ``before`` is the progress stored by the last distributor."""
        self._wake = wake
        self.name, self._subscription, self._managed = name, subscription, managed
        self._before, self._left_open = before, frozenset(before.open)
        self._returned: dict[int, Event] = {}
        self._turn = asyncio.Lock()
        self.workers: set[Worker] = set()
        self.tasks: list[asyncio.Task[None]] = []

    @property
    def position(self) -> int:
        """The offset of the next event to read."""
        return self._subscription.position

    @property
    def available(self) -> bool:
        return (bool(self._returned) or self._subscription.available) and not self._full

    @property
    def _full(self) -> bool:
        return sum(len(worker.in_progress) for worker in self.workers) >= _MOST_OPEN_IN_ALL

    async def take(self, worker: Worker, max_events: int) -> list[Event]:
        if self._returned:
            events = [self._returned.pop(number) for number in sorted(self._returned)[:max_events]]
        else:
            async with self._turn:
                taken = await self._subscription.take(max_events)
                events = [event for event in taken if not self._was_done(event.replay_id)]
        if worker not in self.workers:  # its stream ended while it waited
            self._give_back(events)
            return []
        worker.in_progress.update((event.replay_id, event) for event in events)
        return events

    def _was_done(self, number: int) -> bool:
        return number < self._before.next and number not in self._left_open

    async def commit(self, worker: Worker, replay_id: int) -> None:
        full = self._full
        for number in [number for number in worker.in_progress if number <= replay_id]:
            del worker.in_progress[number]
        worker.wake.set()
        if full:
            self.wake_all()
        await self._keep()

    async def _keep(self) -> None:
        """Store the subscription's progress."""
        new_position = self._subscription.position
        open_numbers = {number for number in self._left_open if number >= new_position} | self._returned.keys()
        for worker in self.workers:
            open_numbers |= worker.in_progress.keys()
        position = SharedPosition(max(new_position, self._before.next), tuple(sorted(open_numbers)))
        await self._managed.keep_shared(self.name, position, self._subscription.identity)

    def left(self, worker: Worker) -> None:
        self.workers.discard(worker)
        self._give_back(list(worker.in_progress.values()))
        worker.in_progress.clear()

    def _give_back(self, events: list[Event]) -> None:
        self._returned.update((event.replay_id, event) for event in events)
        self.wake_all()

    def wake_all(self) -> None:
        for worker in self.workers:
            worker.wake.set()

    async def follow(self) -> None:
        """Wake the workers whenever the topic has events."""
        while True:
            self._wake.clear()
            if self._subscription.available:
                self.wake_all()
            await self._wake.wait()

    def end(self, error: TidegateError | None = None) -> None:
        for task in self.tasks:
            task.cancel()
        self._subscription.close()
        if error is not None:
            for worker in list(self.workers):
                worker.fail(error)


class SharedSubscriptions:
    """The subscriptions that this server distributes. Use it on one event loop."""

    def __init__(self, managed: ManagedSubscriptions, bus: EventBus) -> None:
        self._managed, self._bus = managed, bus
        self._server = str(uuid.uuid4())
        self._dealers: dict[str, _Dealer] = {}
        self._turn = asyncio.Lock()

    async def join(
        self,
        subscription: ManagedSubscription,
        topic: str,
        wake: asyncio.Event,
        fail: Callable[[TidegateError], None],
    ) -> Worker:
        """Add a worker. Raises SubscriptionElsewhere while another server distributes this subscription.

        ``fail`` is called when this server loses the subscription.
        """
        name = subscription.name.lower()
        async with self._turn:
            dealer = self._dealers.get(name)
            if dealer is None:
                dealer = self._dealers[name] = await self._begin(subscription, topic)
            worker = Worker(dealer, wake, fail, dealer.position)
            dealer.workers.add(worker)
        if dealer.available:
            wake.set()
        return worker

    async def leave(self, worker: Worker) -> None:
        """Remove a worker. The last one releases the subscription."""
        worker.close()
        dealer = worker.dealer
        async with self._turn:
            if not dealer.workers and self._dealers.get(dealer.name) is dealer:
                del self._dealers[dealer.name]
                dealer.end()
                with contextlib.suppress(TidegateError):  # the lease then expires by itself
                    await self._managed.release(dealer.name, self._server)

    async def _begin(self, subscription: ManagedSubscription, topic: str) -> _Dealer:
        name = subscription.name.lower()
        if not await self._managed.lease(name, self._server, _now_ms(), _LEASE_MS):
            raise SubscriptionElsewhere(subscription.name)
        start, before = await self._managed.shared_start(subscription)
        wake = asyncio.Event()
        dealer = _Dealer(name, await self._bus.subscribe(topic, start, wake), wake, before, self._managed)
        dealer.tasks = [asyncio.create_task(dealer.follow()), asyncio.create_task(self._renew(dealer))]
        return dealer

    async def _renew(self, dealer: _Dealer) -> None:
        while True:
            await asyncio.sleep(_RENEW_S)
            try:
                if await self._managed.lease(dealer.name, self._server, _now_ms(), _LEASE_MS):
                    continue
            except BusUnavailable as error:
                logger.warning(
                    "the lease of a shared subscription cannot be renewed", name=dealer.name, error=str(error)
                )
                continue
            self._dealers.pop(dealer.name, None)
            dealer.end(SubscriptionTakenOver(dealer.name))
            return
