"""Commits a source task's positions through the worker, for tasks without access to the worker's offset topic.

A standalone worker keeps positions in its file. A task that runs with the rights of its connector's owner has none
on the topic with the positions of all connectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["KeptOffsets"]

logger = get_logger(__name__)


class KeptOffsets:
    """The OffsetWriter of a source task; ``keep`` returns when the worker has written them."""

    def __init__(self, keep: Callable[[Mapping[bytes, Mapping[str, Any]]], None]) -> None:
        self._keep = keep

    def start(self) -> None:
        """There is nothing to connect."""

    def write(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        self._keep(offsets)

    def write_copy(self, offsets: Mapping[bytes, Mapping[str, Any]]) -> None:
        """Write what another topic has already; a failure is only logged."""
        try:
            self._keep(offsets)
        except TidegateError as error:
            logger.warning("the worker did not take a copy of offsets", error=str(error))

    def close(self) -> None:
        """There is nothing to close."""
