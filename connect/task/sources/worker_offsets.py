"""Where a source task commits its positions that has no access to the worker's offset topic: with the worker.

That is a task of a standalone worker, which keeps positions in its file, and a task that runs with the rights of its
connector's owner, who has none on the topic in which the positions of all connectors are.
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
