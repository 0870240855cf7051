"""The seam between a coordinator and the topic that keeps its state; which partition keeps what."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from broker.protocol.records import Record

__all__ = ["Entry", "PrunableStateLog", "StateLog", "partition_for"]

Entry = tuple[bytes, bytes | None]
"""A record's key and value; None is a tombstone."""


class StateLog(Protocol):
    """The log of a state topic: ``__consumer_offsets``, ``__transaction_state``, ``__share_group_state``.

    ``append`` has written the records, all or none, when it returns (BrokerError if it cannot); the future it gives
    is done when they are as durable as an acknowledged record is, and fails with a BrokerError if that does not come
    to be. Futures of one partition are done in the order of the appends. With a ``producer`` (id, epoch) the records are
    part of its transaction. ``read`` gives the records of a partition from its start, and is called before the first append.
    """

    @property
    def partitions(self) -> int: ...

    def append(
        self, partition: int, entries: Sequence[Entry], producer: tuple[int, int] | None = None
    ) -> asyncio.Future[None]: ...

    def read(
        self, partition: int, still_open: dict[int, list[Record]] | None = None
    ) -> Iterable[tuple[int, bytes | None, bytes | None]]:
        """(offset, key, value) of each record once it counts; open transactions stay in ``still_open``, by producer id."""
        ...


class PrunableStateLog(StateLog, Protocol):
    """A state log of which the front can be deleted."""

    def end_offset(self, partition: int) -> int:
        """The offset of the next record."""
        ...

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the records before an offset."""
        ...


def partition_for(coordinator_key: str, partitions: int) -> int:
    """The partition of a group, a transactional id or a share-partition. Kafka's choice: the magnitude of Java's ``String.hashCode`` (over UTF-16 units), modulo the partitions.

    The smallest int has no magnitude in Java; Kafka takes 0 for it.
    """
    units = coordinator_key.encode("utf-16-be", "surrogatepass")
    code = 0
    for position in range(0, len(units), 2):
        code = (code * 31 + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    magnitude = min(code, (1 << 32) - code) & 0x7FFFFFFF
    return magnitude % partitions
