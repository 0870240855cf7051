"""Which source positions are safe to commit: those of batches whose rows, and all rows before them, are acknowledged."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from connect.api import ConnectError
from connect.stores.offsets import canonical, offset_key

__all__ = ["OffsetKeys", "SourcePosition", "SubmittedBatches", "checked"]

SourcePosition = tuple[dict[str, Any], dict[str, Any]]
"""A source partition and the offset in it."""


class OffsetKeys:
    """The keys of a connector's positions. ``keys`` are those in the offset topic already, by canonical partition: who
    overwrites a position uses the bytes that are there, so that compaction keeps one of them."""

    def __init__(self, connector: str, keys: Mapping[str, str]) -> None:
        self._connector, self._keys = connector, dict(keys)

    def key(self, partition: Mapping[str, Any]) -> bytes:
        name = canonical(partition)
        if name not in self._keys:
            self._keys[name] = offset_key(self._connector, partition)
        return self._keys[name].encode()


class SubmittedBatches:
    """The batches sent so far, per source partition in their order."""

    def __init__(self, keys: OffsetKeys) -> None:
        self.keys = keys
        self._waiting: dict[str, deque[tuple[SourcePosition, Sequence[Future[Any]]]]] = {}

    def add(
        self, partition: Mapping[str, Any] | None, offset: Mapping[str, Any] | None, futures: Sequence[Future[Any]]
    ) -> None:
        """Note a batch; one without a position counts as part of the next one that has one."""
        if partition is None:
            return
        name = canonical(checked(partition))
        waiting = self._waiting.setdefault(name, deque())
        waiting.append(((dict(partition), dict(checked(offset) if offset is not None else {})), futures))

    def take_safe(self) -> list[SourcePosition]:
        """The newest safe position of each partition that has a new one; forgets what it covers."""
        safe: list[SourcePosition] = []
        for waiting in self._waiting.values():
            newest: SourcePosition | None = None
            while waiting and all(future.done() and _succeeded(future) for future in waiting[0][1]):
                position, _ = waiting.popleft()
                newest = position if position[1] else newest
            if newest is not None:
                safe.append(newest)
        return safe

    @property
    def pending(self) -> list[Future[Any]]:
        """What is not acknowledged yet."""
        return [
            future
            for waiting in self._waiting.values()
            for _, futures in waiting
            for future in futures
            if not future.done()
        ]


def _succeeded(future: Future[Any]) -> bool:
    return not future.cancelled() and future.exception() is None


def checked(position: Mapping[str, Any]) -> Mapping[str, Any]:
    """Raises ConnectError for what Kafka Connect does not let into its offset topic."""
    for name, value in position.items():
        if not isinstance(name, str) or not (value is None or isinstance(value, str | bool | int | float)):
            raise ConnectError(
                f"source partitions and offsets hold text, numbers and booleans only, not {name!r}: "
                f"{type(value).__name__}"
            )
    json.dumps(dict(position))
    return position
