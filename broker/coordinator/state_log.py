"""The seam between a coordinator and the topic that stores its state, and the choice of the partition."""

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

    ``append`` writes all records or none before it returns; it raises BrokerError if it can't. Its future is done when
    they are as durable as an acknowledged record, and fails with a BrokerError if they do not become durable. Futures
    of one partition complete in the order of the appends. With a ``producer`` (id, epoch) the records are part of its
    transaction. ``read`` returns the records of a partition from its start, and is called before the first append.
    """

    @property
    def partitions(self) -> int: ...

    def append(
        self, partition: int, entries: Sequence[Entry], producer: tuple[int, int] | None = None
    ) -> asyncio.Future[None]: ...

    def read(
        self, partition: int, still_open: dict[int, list[Record]] | None = None
    ) -> Iterable[tuple[int, bytes | None, bytes | None]]:
        """(offset, key, value) of each effective record.

        Records of open transactions stay in ``still_open``, by producer id.
        """
        ...


class PrunableStateLog(StateLog, Protocol):
    """A state log whose oldest records can be deleted."""

    def end_offset(self, partition: int) -> int:
        """The offset of the next record."""
        ...

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete the records before an offset."""
        ...


def partition_for(coordinator_key: str, partitions: int) -> int:
    """The partition of a group, a transactional id or a share-partition. As in Kafka: the absolute value of Java's
    ``String.hashCode`` (over UTF-16 units), modulo the partitions.

    The smallest int has no absolute value in Java; Kafka uses 0.
    """
    units = coordinator_key.encode("utf-16-be", "surrogatepass")
    code = 0
    for position in range(0, len(units), 2):
        code = (code * 31 + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    magnitude = min(code, (1 << 32) - code) & 0x7FFFFFFF
    return magnitude % partitions
