"""Limits the work of comparing two schemas: alternatives are tried in pairs, and a client may send thousands."""

from __future__ import annotations

from typing import Final

from registry.errors import RegistryError

__all__ = ["MOST_STEPS", "Effort", "TooManySteps"]

MOST_STEPS: Final = 1_000_000
"""The most steps of one comparison, about 2 µs each, in a thread (``registry/domain/comparisons.py``): enough for 300
alternatives against 300 others, or records of 100,000 fields.
"""

_PAIR: Final = 10


class TooManySteps(RegistryError):
    """Two schemas have so many alternatives that a comparison would take minutes."""

    http_status = 422
    error_code = 42201

    def __init__(self) -> None:
        super().__init__(
            f"The schemas have too many alternatives to be compared: it takes more than {MOST_STEPS} steps. "
            "Make unions, anyOf, oneOf and patternProperties shorter, or set the subject's compatibility to NONE"
        )


class Effort:
    """Counts the steps of one comparison."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MOST_STEPS

    def pair(self) -> None:
        """Count the comparison of two parts: ten steps. Raises TooManySteps."""
        self.steps(_PAIR)

    def steps(self, count: int) -> None:
        """Count matching members of two parts by name. Raises TooManySteps."""
        self._left -= count
        if self._left < 0:
            raise TooManySteps
