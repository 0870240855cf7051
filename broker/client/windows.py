"""What is on its way of each partition: several batches at once, in order and each once, whatever happens to one of them.

With idempotence a broker takes batches of a partition only in the order of their sequence numbers, and remembers the last five
(KIP-98), so as many may be on their way, once it has the first one: a producer that it does not know may begin with any number. When one
of them has to be sent again, nothing new goes until all that were on their way are answered; what is left goes again in the old order,
one at a time. When one is refused for good, those after it are out of order for the broker: they are not in the log and get new
numbers. The same holds where the producer id was replaced between.

Apache Kafka that was killed remembers but the last one of a producer afterwards: an earlier one that comes again is then out of order,
though it is in the log. So those after it are tried, the last one first: one that the broker takes or knows tells that all before
it are written.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

__all__ = ["MOST_IN_FLIGHT", "Numbers", "Windows"]

MOST_IN_FLIGHT: Final = 5
"""Of a partition: so many batches a broker remembers, to know one that comes again."""

P = TypeVar("P", bound=Hashable)
B = TypeVar("B", bound=Hashable)


class Numbers(Protocol):
    """The sequence numbers of a producer; a partition's next one can be put back."""

    def identity(self) -> object:
        """What the numbers count for: another one after the producer id was replaced."""
        ...

    def give_back(self, partition: object, count: int) -> None: ...


@dataclass(slots=True)
class _Flight:
    identity: object
    count: int
    pipelined: bool
    """Whether others may be on their way with it."""
    out: bool = True
    """On its way, or failed and its retry not due yet."""
    numbered: bool = True
    out_of_order: bool = False
    """The broker has said that it is not in the log, as something before it is missing."""
    missing: int = 0
    """How many numbers right before its own were given out and will never be in the log."""


@dataclass(slots=True)
class _Window(Generic[B]):
    flights: dict[B, _Flight] = field(default_factory=dict)
    """In the order of their numbers."""
    is_blocked: bool = False
    """One has to be sent again: nothing new goes until all of these are answered for good."""
    trying: B | None = None
    """The one that is sent again; the others wait for what becomes of it."""

    def anyone_out(self) -> bool:
        return any(flight.out for flight in self.flights.values())

    def untold(self) -> list[B]:
        """Those after the first of which it is not known whether they are in the log."""
        first, *later = self.flights.items()
        return [
            batch
            for batch, flight in later
            if flight.identity == first[1].identity and flight.numbered and not flight.out_of_order
        ]


class Windows(Generic[P, B]):
    """The batches with sequence numbers that are not answered. Used from one event loop; makes no calls but to ``numbers``.

    A batch is ``left`` when it is taken to be sent, then ``ended`` or ``failed`` and, when its retry is due, ``back``.
    """

    def __init__(self, limit: int, numbers: Numbers | None) -> None:
        """``limit``: batches of a partition on their way at once; 1 without numbers, as nothing keeps them in order then."""
        self._limit, self._numbers = limit if numbers is not None else 1, numbers
        self._known: dict[P, object] = {}
        """The identity under which a partition has taken a batch."""
        self._windows: dict[P, _Window[B]] = {}

    def admits(self, partition: P, batch: B, *, pipelined: bool) -> bool:
        """Whether the first batch of a partition's queue may be sent now."""
        window = self._windows.get(partition)
        if window is None:
            return True
        if window.is_blocked:
            return batch == window.trying
        identity = self._identity()
        return (
            pipelined
            and len(window.flights) < self._limit
            and self._known.get(partition) == identity
            and all(flight.pipelined and flight.identity == identity for flight in window.flights.values())
        )

    def needs_numbers(self, partition: P, batch: B) -> bool:
        """Whether a batch that is to be sent has none yet, or those it had are void."""
        _, flight = self._window_and_flight(partition, batch)
        return flight is None or not flight.numbered

    def left(self, partition: P, batch: B, count: int, *, pipelined: bool) -> None:
        """A batch of so many records goes out, with numbers of the present identity where it needed some."""
        window = self._windows.setdefault(partition, _Window())
        flight = window.flights.get(batch)
        if flight is None:
            window.flights[batch] = _Flight(self._identity(), count, pipelined)
            return
        if not flight.numbered:
            flight.identity, flight.numbered = self._identity(), True
        flight.out, flight.out_of_order = True, False

    def explains(self, partition: P, batch: B) -> bool:
        """Whether it is our doing that a batch is out of order for the broker, so that it can be sent again."""
        window, flight = self._window_and_flight(partition, batch)
        if window is None or flight is None or not flight.pipelined:
            return False
        if flight.identity != self._identity() or flight.missing:
            return True
        return next(iter(window.flights)) != batch or bool(window.untold())

    def failed(self, partition: P, batch: B, *, out_of_order: bool = False) -> None:
        """A batch will be sent again: from now on nothing else of its partition goes out."""
        window, flight = self._window_and_flight(partition, batch)
        if window is not None and flight is not None:
            window.is_blocked = True
            flight.out_of_order = out_of_order

    def back(self, partition: P, batch: B) -> list[B]:
        """Its retry is due. Those that are to be queued before all others, in their order: none while others are out."""
        window, flight = self._window_and_flight(partition, batch)
        if window is None or flight is None:
            return [batch]
        flight.out = False
        if window.trying == batch:
            window.trying = None
        return self._due(partition, window)

    def refused(self, partition: P, batch: B) -> None:
        """A batch is not in the log and never will be; ``ended`` has still to be called."""
        window, flight = self._window_and_flight(partition, batch)
        if window is None or flight is None or flight.identity != self._identity():
            return
        missing, flight.missing = flight.missing + flight.count, 0
        order = list(window.flights)
        for later in order[order.index(batch) + 1 :]:
            if (follower := window.flights[later]).identity == flight.identity:
                follower.missing += missing
                return
        self._give_back(partition, missing)

    def proven(self, partition: P, batch: B) -> list[B]:
        """The batches that are in the log because this one is: it was tried before them."""
        window = self._windows.get(partition)
        if window is None or window.trying != batch:
            return []
        order = list(window.flights)
        return order[: order.index(batch)]

    def ended(self, partition: P, batch: B, *, written: bool) -> list[B]:
        """A batch is answered for good, or given up. Those that are to be queued before all others now, as with ``back``."""
        window = self._windows.get(partition)
        flight = None if window is None else window.flights.pop(batch, None)
        if window is None or flight is None:
            return []
        if written:
            self._known[partition] = flight.identity
        if window.trying == batch:
            window.trying = None
        if not window.flights:
            del self._windows[partition]
            return []
        return self._due(partition, window)

    def _window_and_flight(self, partition: P, batch: B) -> tuple[_Window[B] | None, _Flight | None]:
        window = self._windows.get(partition)
        return window, None if window is None else window.flights.get(batch)

    def _due(self, partition: P, window: _Window[B]) -> list[B]:
        if not window.is_blocked or window.anyone_out() or window.trying is not None:
            return []
        batch, first = next(iter(window.flights.items()))
        if first.out_of_order:
            if first.identity != self._identity() or first.missing:
                self._renumber(partition, window)
            elif untold := window.untold():
                batch = untold[-1]
        window.trying = batch
        return [batch]

    def _renumber(self, partition: P, window: _Window[B]) -> None:
        """The first is not in the log, so the later ones are not either: all get new numbers, behind the last that is."""
        identity, count = self._identity(), 0
        for flight in window.flights.values():
            if flight.numbered and flight.identity == identity:
                count += flight.missing + flight.count
            flight.numbered, flight.missing = False, 0
        if count:
            self._give_back(partition, count)

    def _identity(self) -> object:
        return None if self._numbers is None else self._numbers.identity()

    def _give_back(self, partition: P, count: int) -> None:
        if self._numbers is not None:
            self._numbers.give_back(partition, count)
