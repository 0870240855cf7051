"""``__consumer_offsets`` as the broker's own partition logs keep it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from broker.groups.journal import Entry
from broker.protocol.records import Record

__all__ = ["Log", "PartitionedOffsetsLog"]


class Log(Protocol):
    """What is asked of a partition: ``broker.log.partition.PartitionLog`` has it."""

    def append_records(self, records: Sequence[Record]) -> Any: ...

    def iter_records(self) -> Iterator[Record]: ...


class PartitionedOffsetsLog:
    """An ``OffsetsLog`` over partition logs, the n-th log for partition n; the entries of an append are one batch.

    ``durable(partition)`` gives a future that is done when all that this partition's log holds by now is on disk.
    """

    def __init__(self, logs: Sequence[Log], durable: Callable[[int], asyncio.Future[None]]) -> None:
        self._logs = logs
        self._durable = durable

    @property
    def partitions(self) -> int:
        return len(self._logs)

    def append(self, partition: int, entries: Sequence[Entry]) -> asyncio.Future[None]:
        now_ms = time.time_ns() // 1_000_000
        self._logs[partition].append_records([Record(key, value, (), now_ms) for key, value in entries])
        return self._durable(partition)

    def read(self, partition: int) -> Iterable[tuple[int, bytes | None, bytes | None]]:
        return ((record.offset, record.key, record.value) for record in self._logs[partition].iter_records())
