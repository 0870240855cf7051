"""The error of parsers: what came from outside is not what its protocol says."""

from __future__ import annotations

__all__ = ["Malformed"]


class Malformed(ValueError):
    """A message that is not in its format. The text says what is wrong, without the message."""
