"""Named timers: at most one for each purpose of each member."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from broker.coordinator.clock import Clock, Timer

__all__ = ["Timers"]


class Timers:
    """Schedules callbacks by name. A new timer replaces the previous one of the same name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[Hashable, Timer] = {}

    def schedule(self, name: Hashable, delay_ms: int, callback: Callable[[], None]) -> None:
        self.cancel(name)

        def fire() -> None:
            self._running.pop(name, None)
            callback()

        self._running[name] = self._clock.call_later(delay_ms, fire)

    def schedule_if_absent(self, name: Hashable, delay_ms: int, callback: Callable[[], None]) -> None:
        if name not in self._running:
            self.schedule(name, delay_ms, callback)

    def cancel(self, name: Hashable) -> None:
        timer = self._running.pop(name, None)
        if timer is not None:
            timer.cancel()

    def __contains__(self, name: Hashable) -> bool:
        return name in self._running

    def clear(self) -> None:
        for timer in self._running.values():
            timer.cancel()
        self._running.clear()
