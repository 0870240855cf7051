"""Batches in flight of each partition: several at once, in order and exactly once, even if one of them fails.

With idempotence a broker accepts batches of a partition only in the order of their sequence numbers, and remembers the
last five (KIP-98). So five may be in flight once the broker has the first one: a producer that it does not know may
begin with any number. When a batch has to be retried, nothing new is sent until all batches in flight are answered. The
remaining ones are then sent again in the old order, one at a time. When a batch is refused permanently, the broker sees
those after it as out of order: they are not in the log and get new numbers. The same holds if the producer id was
replaced in between.

After a kill Apache Kafka remembers only a producer's last batch: an earlier batch that is retried is then out of order
although it is in the log. So the batches after it are tried, the last one first. If the broker accepts or knows one,
all before it are written.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

__all__ = ["MOST_IN_FLIGHT", "Numbers", "Windows"]

MOST_IN_FLIGHT: Final = 5
"""How many batches of a partition a broker remembers to detect duplicates."""

P = TypeVar("P", bound=Hashable)
B = TypeVar("B", bound=Hashable)


class Numbers(Protocol):
    """The sequence numbers of a producer. A partition's next number can be moved back."""

    def identity(self) -> object:
        """The producer identity that the numbers belong to; it changes when the producer id is replaced."""
        ...

    def give_back(self, partition: object, count: int) -> None: ...


@dataclass(slots=True)
class _Flight:
    identity: object
    count: int
    pipelined: bool
    """Whether other batches may be in flight with it."""
    out: bool = True
    """In flight, or failed with the retry not due yet."""
    numbered: bool = True
    out_of_order: bool = False
    """The broker said that it is not in the log, because an earlier batch is missing."""
    missing: int = 0
    """How many numbers right before its own were assigned and will never be in the log."""


@dataclass(slots=True)
class _Window(Generic[B]):
    flights: dict[B, _Flight] = field(default_factory=dict)
    """In sequence order."""
    is_blocked: bool = False
    """A batch has to be retried: nothing new is sent until all of these have succeeded or failed permanently."""
    trying: B | None = None
    """The batch that is being retried; the others wait for its outcome."""

    def anyone_out(self) -> bool:
        return any(flight.out for flight in self.flights.values())

    def untold(self) -> list[B]:
        """Batches after the first of which it is unknown whether they are in the log."""
        first, *later = self.flights.items()
        return [
            batch
            for batch, flight in later
            if flight.identity == first[1].identity and flight.numbered and not flight.out_of_order
        ]


class Windows(Generic[P, B]):
    """The unanswered batches with sequence numbers. Used from one event loop; calls nothing but ``numbers``.

    Call ``left`` when a batch is taken to be sent, then ``ended`` or ``failed``, and ``back`` when its retry is due.
    """

    def __init__(self, limit: int, numbers: Numbers | None) -> None:
        """``limit`` is the number of batches of a partition in flight; it is 1 without ``numbers``, which keep the
        order.
        """
        self._limit, self._numbers = limit if numbers is not None else 1, numbers
        self._known: dict[P, object] = {}
        """The identity under which a partition has accepted a batch."""
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
        """Whether a batch to send has no numbers yet, or void ones."""
        _, flight = self._window_and_flight(partition, batch)
        return flight is None or not flight.numbered

    def left(self, partition: P, batch: B, count: int, *, pipelined: bool) -> None:
        """A batch of ``count`` records is sent, with new numbers of the current identity if it needs them."""
        window = self._windows.setdefault(partition, _Window())
        flight = window.flights.get(batch)
        if flight is None:
            window.flights[batch] = _Flight(self._identity(), count, pipelined)
            return
        if not flight.numbered:
            flight.identity, flight.numbered = self._identity(), True
        flight.out, flight.out_of_order = True, False

    def explains(self, partition: P, batch: B) -> bool:
        """Whether this client caused a batch to be out of order for the broker, so that it can be retried."""
        window, flight = self._window_and_flight(partition, batch)
        if window is None or flight is None or not flight.pipelined:
            return False
        if flight.identity != self._identity() or flight.missing:
            return True
        return next(iter(window.flights)) != batch or bool(window.untold())

    def failed(self, partition: P, batch: B, *, out_of_order: bool = False) -> None:
        """A batch will be retried: from now on nothing else of its partition is sent."""
        window, flight = self._window_and_flight(partition, batch)
        if window is not None and flight is not None:
            window.is_blocked = True
            flight.out_of_order = out_of_order

    def back(self, partition: P, batch: B) -> list[B]:
        """Its retry is due.

        Returns the batches to queue before all others, in their order; none while others are in flight.
        """
        window, flight = self._window_and_flight(partition, batch)
        if window is None or flight is None:
            return [batch]
        flight.out = False
        if window.trying == batch:
            window.trying = None
        return self._due(partition, window)

    def refused(self, partition: P, batch: B) -> None:
        """A batch is not in the log and never will be. ``ended`` still has to be called."""
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
        """The batches that must be in the log because this one is: it was tried before them."""
        window = self._windows.get(partition)
        if window is None or window.trying != batch:
            return []
        order = list(window.flights)
        return order[: order.index(batch)]

    def ended(self, partition: P, batch: B, *, written: bool) -> list[B]:
        """A batch has succeeded or failed permanently.

        Returns the batches to queue before all others, as ``back`` does.
        """
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
        """The first is not in the log, so the later ones are not either.

        All get new numbers after the last one in the log.
        """
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
