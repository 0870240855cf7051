"""Scheduling of large requests: in order, with a pause after one that took long."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from broker.network.turns import Turns


class Clock:
    """An event loop whose time passes as work says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, int, Callable[[], object]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], object], /) -> object:
        heapq.heappush(self.timers, (when, len(self.timers), callback))
        return None

    def pass_all(self) -> None:
        while self.timers:
            when, _, callback = heapq.heappop(self.timers)
            self.now = max(self.now, when)
            callback()


def test_work_waits_as_long_as_the_last_piece_took() -> None:
    loop = Clock()
    turns = Turns(loop)
    seen: list[tuple[str, float]] = []

    def piece(name: str, takes: float) -> Callable[[], None]:
        def work() -> None:
            seen.append((name, loop.now))
            loop.now += takes

        return work

    turns.run(piece("short", 0.005))
    assert turns.free
    turns.run(piece("long", 0.2))
    assert not turns.free
    turns.wait(piece("second", 0.1))
    turns.wait(piece("third", 0.001))
    turns.wait(piece("fourth", 0.3))
    loop.pass_all()
    assert [(name, round(at, 3)) for name, at in seen] == [
        ("short", 0),
        ("long", 0.005),
        ("second", 0.405),
        ("third", 0.605),
        ("fourth", 0.606),
    ]
    assert not turns.free
    loop.now += 0.3
    assert turns.free
