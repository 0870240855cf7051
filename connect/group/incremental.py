"""The incremental assignment: members keep their items, and only items that must move are revoked and reassigned.

The rules are those of Kafka Connect's IncrementalCooperativeAssignor (KIP-415, and KAFKA-12495 for the pauses between
rounds that revoke), so that a group may have leaders of both kinds in turn:

- new items go to the least loaded member;
- deleted items, and duplicates, are revoked;
- items of a member that left are *lost*: they are held back for up to ``scheduled.rebalance.max.delay.ms`` in case the
  member returns; then they are assigned, first to members that joined meanwhile and have nothing;
- members with more than their share release the excess at once, and start the next round, which assigns it. A second
  such round in a row waits 40 ms, the third 1.6 s, then 64 s and the whole delay: a group that does not settle must
  not spend its time rebalancing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from connect.group.protocol import Item
from tidegate.kit.logs import get_logger

__all__ = ["IncrementalAssignor", "Round"]

logger = get_logger(__name__)

_BACKOFF_FACTOR: Final = 40
Loads = dict[str, set[Item]]
"""Each member's items, by member id."""


@dataclass(frozen=True, slots=True)
class Round:
    """The outcome of one rebalance: what each member starts, what it stops, and when to rebalance again."""

    assigned: Mapping[str, frozenset[Item]]
    revoked: Mapping[str, frozenset[Item]]
    delay_ms: int


class IncrementalAssignor:
    """Used by the leader. It remembers its last round, to distinguish new items from lost ones."""

    def __init__(self, max_delay_ms: int, clock_ms: Callable[[], float] = lambda: time.monotonic() * 1000) -> None:
        self._max_delay_ms, self._clock_ms = max_delay_ms, clock_ms
        self._previous: set[Item] = set()
        self._previous_revocation: set[Item] = set()
        self._previous_members: frozenset[str] = frozenset()
        self._previous_generation: int | None = None
        self._candidates: dict[str, None] = {}
        self._due_ms = 0.0
        self._delay_ms = 0
        self._revoked_before = False
        self._revoking_rounds = 0

    def completed(self, generation_id: int) -> None:
        """The group has adopted the last round as this generation."""
        self._previous_generation = generation_id

    def assign(
        self,
        configured: Iterable[Item],
        running: Mapping[str, Iterable[Item]],
        last_generation: int | None,
        *,
        returned: Mapping[str, Iterable[Item]] = MappingProxyType({}),
    ) -> Round:
        """One round.

        ``running`` has each member's reported items; ``last_generation`` is the last one that this worker was part of:
        if another assignor made it, this one's memory is useless. ``returned`` has what new members had before they
        were lost: there is no need to wait for members that are back (Kafka Connect waits anyway).
        """
        every, has = set(configured), {member: set(items) for member, items in running.items()}
        active = set().union(*has.values())
        if self._previous_generation is None or self._previous_generation != last_generation:
            self._previous = set()
        if self._previous_revocation & active:  # it did not take effect
            self._previous = set(active)
        self._previous_revocation = set()

        deleted = self._previous - every
        counts = Counter(item for items in has.values() for item in items)
        doubled = {item for item, count in counts.items() if count > 1}
        lost = self._previous - active - deleted
        created = every - self._previous - active

        revoked = {member: items & (deleted | doubled) for member, items in has.items()}
        loads: Loads = {member: items - revoked[member] for member, items in has.items()}
        for member, items in returned.items():
            loads[member] |= lost & set(items)
            lost = lost - set(items)
        reassigned = self._lost(lost, loads)
        if self._delay_ms == 0:
            self._balance(every, has, loads, revoked)
        else:
            self._revoked_before = False
        _spread(loads, [*sorted(created), *sorted(reassigned)])

        self._previous = set().union(*loads.values()) - set().union(*revoked.values()) | lost
        self._previous_revocation = set().union(*revoked.values())
        self._previous_members = frozenset(has)
        self._previous_generation = None
        assigned = {member: frozenset(loads[member] - (has[member] - deleted)) for member in has}
        return Round(assigned, {member: frozenset(items) for member, items in revoked.items()}, self._delay_ms)

    def _lost(self, lost: set[Item], loads: Loads) -> set[Item]:
        """The lost items to assign now like new ones; others may go to candidates at once, or wait."""
        if not lost and not self._revoked_before:
            self._calm()
            return set()
        if self._due_ms <= 0 and self._previous_members <= loads.keys():
            return lost  # no member left: some member did not get its assignment
        if self._max_delay_ms == 0:
            return lost
        now_ms = self._clock_ms()
        if 0 < self._due_ms <= now_ms:
            candidates = [member for member in self._candidates if member in loads]
            self._calm()
            self._revoked_before = False
            if not candidates:
                return lost
            _assign_round_robin(lost, candidates, loads)
            return set()
        self._candidates.update(dict.fromkeys(sorted(member for member, items in loads.items() if not items)))
        remaining_ms = self._due_ms - now_ms
        self._delay_ms = min(int(remaining_ms), self._max_delay_ms) if remaining_ms > 0 else self._max_delay_ms
        self._due_ms = now_ms + self._delay_ms
        return set()

    def _calm(self) -> None:
        self._candidates.clear()
        self._due_ms, self._delay_ms = 0.0, 0

    def _balance(self, every: set[Item], has: Loads, loads: Loads, revoked: Loads) -> None:
        excess = _excess(every, has, loads)
        if not excess:
            if self._revoked_before:
                self._revoked_before, self._revoking_rounds = False, 0
            return
        if self._revoked_before:
            self._revoking_rounds += 1
            self._delay_ms = self._backoff_ms()
            if self._delay_ms:
                self._due_ms = self._clock_ms() + self._delay_ms
                return
        else:
            self._revoked_before = True
        for member, items in excess.items():
            revoked[member] |= items
            loads[member] -= items

    def _backoff_ms(self) -> int:
        if self._max_delay_ms == 0:
            return 0
        rounds = min(self._revoking_rounds, 10)  # 40 to the 10th is more than any delay
        return min(int(_BACKOFF_FACTOR**rounds), self._max_delay_ms)


def _excess(every: set[Item], has: Loads, loads: Loads) -> Loads:
    """The items that members should release so that none has more than its share of connectors and of tasks; empty if
    all members with items will have lost them, or none has any yet.
    """
    if sum(1 for items in loads.values() if items) == 0 or not every:
        return {}
    given_up: Loads = {}
    for kind in (False, True):
        total = sum(1 for item in every if item.is_task is kind)
        ordered = {member: _in_order(items, has[member], kind) for member, items in loads.items()}
        for member, items in _excess_of(ordered, total):
            given_up.setdefault(member, set()).update(items)
    return given_up


def _in_order(items: set[Item], has: set[Item], kind: bool) -> list[Item]:
    """The items of a kind, in the order of release: running ones before newly assigned ones."""
    return [item for part in (items & has, items - has) for item in sorted(part) if item.is_task is kind]


def _excess_of(loads: Mapping[str, Sequence[Item]], total: int) -> Iterable[tuple[str, Sequence[Item]]]:
    least, extras = divmod(total, len(loads))
    sizes = [len(items) for items in loads.values()]
    if sizes.count(least + 1) == extras and sizes.count(least) + extras == len(loads):
        return
    for member in sorted(loads):
        size = len(loads[member])
        if size <= least:
            continue
        most = least
        if extras:
            extras -= 1
            most += 1
        if size > most:
            yield member, loads[member][: size - most]


def _spread(loads: Loads, items: Sequence[Item]) -> None:
    """Assign each item, in order, to the member with the fewest of its kind, connectors first; on a tie to the one that
    had fewest before, then by id.
    """
    for kind in (False, True):
        had = {member: sum(1 for item in load if item.is_task is kind) for member, load in loads.items()}
        order = sorted(had, key=lambda name: (had[name], name))
        counts = {member: had[member] for member in order}
        for item in (item for item in items if item.is_task is kind):
            member = min(counts, key=lambda name: counts[name])  # the first of those in order
            loads[member].add(item)
            counts[member] += 1


def _assign_round_robin(items: Iterable[Item], members: list[str], loads: Loads) -> None:
    for kind in (False, True):
        for index, item in enumerate(sorted(item for item in items if item.is_task is kind)):
            loads[members[index % len(members)]].add(item)
