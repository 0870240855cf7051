"""Where a task of a standalone worker commits its positions: with the worker, which keeps them in its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["KeptOffsets"]


class KeptOffsets:
    """The OffsetWriter of a source task; ``keep`` returns when the worker has them on its disk."""

    def __init__(self, keep: Callable[[Mapping[bytes, Mapping[str, Any]]], None]) -> None:
        self._keep = keep

    def start(self) -> None:
        """There is nothing to connect."""

    def write(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        self._keep(offsets)

    def close(self) -> None:
        """There is nothing to close."""
