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
    overwrites a position uses the bytes that are there, so that compaction keeps one of them. Others are made each time: a source
    may have a partition for every object of a bucket."""

    def __init__(self, connector: str, keys: Mapping[str, str]) -> None:
        self._connector, self._keys = connector, dict(keys)

    def key(self, partition: Mapping[str, Any]) -> bytes:
        return (self._keys.get(canonical(partition)) or offset_key(self._connector, partition)).encode()


class SubmittedBatches:
    """The batches whose rows or positions are not safe yet, per source partition in their order.

    It holds what is in flight, however many partitions there have been.
    """

    def __init__(self, keys: OffsetKeys) -> None:
        self.keys = keys
        self._waiting: dict[str, deque[tuple[SourcePosition, Sequence[Future[Any]]]]] = {}
        self._unplaced: deque[Future[Any]] = deque()
        """Of batches without a partition, since the last one that has a position."""

    def add(
        self, partition: Mapping[str, Any] | None, offset: Mapping[str, Any] | None, futures: Sequence[Future[Any]]
    ) -> None:
        """Note a batch; one without a position counts as part of the next one that has one: of the same partition, or of any
        where it has none."""
        if partition is None:
            self._unplaced.extend(futures)
            while self._unplaced and _succeeded(self._unplaced[0]):
                self._unplaced.popleft()
            return
        position = (dict(checked(partition)), dict(checked(offset) if offset is not None else {}))
        if offset is not None and self._unplaced:
            futures = [*self._unplaced, *futures]
            self._unplaced.clear()
        self._waiting.setdefault(canonical(partition), deque()).append((position, futures))

    def take_safe(self) -> list[SourcePosition]:
        """The newest safe position of each partition that has a new one; forgets what it covers."""
        safe: list[SourcePosition] = []
        for name, waiting in list(self._waiting.items()):
            newest: SourcePosition | None = None
            while waiting and all(map(_succeeded, waiting[0][1])):
                position, _ = waiting.popleft()
                newest = position if position[1] else newest
            if newest is not None:
                safe.append(newest)
            if not waiting:
                del self._waiting[name]
        return safe

    @property
    def pending(self) -> list[Future[Any]]:
        """The sends that are not acknowledged yet."""
        placed = [future for waiting in self._waiting.values() for _, futures in waiting for future in futures]
        return [future for future in (*placed, *self._unplaced) if not future.done()]


def _succeeded(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


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
