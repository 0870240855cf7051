"""An allowance within a sliding time window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

__all__ = ["UNLIMITED", "Allowance"]

UNLIMITED: Final = (1 << 31) - 1
"""The number shown to clients for no limit: the largest that every client's numbers can represent."""

_PARTS: Final = 60


class Allowance:
    """Usage within the last ``span_ms``, counted in sixtieths of it. A negative ``most`` means no limit.

    Use it on one event loop; nothing here waits.
    """

    def __init__(self, most: int, span_ms: int, clock_ms: Callable[[], int]) -> None:
        self.most = most
        self._width_ms, self._clock_ms = span_ms // _PARTS, clock_ms
        self._counts = [0] * _PARTS
        self._part = clock_ms() // self._width_ms
        self._used = 0

    @property
    def used(self) -> int:
        self._advance()
        return self._used

    @property
    def left(self) -> int:
        return max(0, self.shown_most - self.used) if self.most >= 0 else UNLIMITED

    @property
    def shown(self) -> tuple[int, int]:
        """The maximum and the remaining amount for display to clients."""
        return self.shown_most, max(0, self.shown_most - self.used)

    @property
    def shown_most(self) -> int:
        return self.most if self.most >= 0 else UNLIMITED

    def add(self, number: int) -> None:
        self._advance()
        self._counts[self._part % _PARTS] += number
        self._used += number

    def take(self, number: int) -> int:
        """Use up to ``number``. Returns the amount used."""
        number = min(number, self.left)
        self.add(number)
        return number

    def give_back(self, number: int) -> None:
        """Return an amount that was taken a moment ago and not used."""
        self._advance()
        slot = self._part % _PARTS
        number = min(number, self._counts[slot])
        self._counts[slot] -= number
        self._used -= number

    def dump(self) -> dict[str, int]:
        """The usage by part of the span, for ``load`` after a restart."""
        self._advance()
        first = self._part - _PARTS + 1
        parts = range(first, self._part + 1)
        return {str(part): self._counts[part % _PARTS] for part in parts if self._counts[part % _PARTS]}

    def load(self, dumped: Mapping[str, int]) -> None:
        """Raises ValueError for data that ``dump`` never produces."""
        self._advance()
        for name, count in dumped.items():
            part = int(name)
            if self._part - _PARTS < part <= self._part and count > 0:
                self._counts[part % _PARTS] += count
                self._used += count

    def _advance(self) -> None:
        now = self._clock_ms() // self._width_ms
        if now <= self._part:
            return
        for part in range(max(self._part + 1, now - _PARTS + 1), now + 1):
            self._used -= self._counts[part % _PARTS]
            self._counts[part % _PARTS] = 0
        self._part = now
