"""Offsets committed in open transactions, which take effect with the transaction's marker (KIP-98, KIP-447)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import count

from broker.coordinator.committed_offset import CommittedOffset, TopicPartition

__all__ = ["PendingOffsets"]

_Key = tuple[str, TopicPartition]
"""A group's id and one of the partitions it reads."""
_Transaction = tuple[int, int]
"""A partition of ``__consumer_offsets`` and a producer id. Each partition gets a separate marker."""


class PendingOffsets:
    """Pending offsets by transaction.

    The last write of an offset in the log wins, wherever the markers are. So a write that another one has overtaken
    stays here without a value, and keeps its offset unstable until its marker.
    """

    def __init__(self) -> None:
        self._transactions: dict[_Transaction, dict[_Key, tuple[int, CommittedOffset | None]]] = {}
        self._writers: dict[str, dict[TopicPartition, set[_Transaction]]] = {}
        self._order = count()

    def add(
        self,
        partition: int,
        producer_id: int,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset | None],
    ) -> None:
        """A transaction wrote these offsets; None for those that were already overtaken."""
        transaction = partition, producer_id
        written = self._transactions.setdefault(transaction, {})
        order = next(self._order)
        for where, committed in offsets.items():
            written[group_id, where] = order, committed
            self._writers.setdefault(group_id, {}).setdefault(where, set()).add(transaction)

    def end(
        self, partition: int, producer_id: int, *, commit: bool
    ) -> Iterator[tuple[str, TopicPartition, CommittedOffset]]:
        """Handle a transaction's marker in this partition. The caller must set each yielded offset at once."""
        for (group_id, where), (order, committed) in self._transactions.pop((partition, producer_id), {}).items():
            self._forget(group_id, where, (partition, producer_id))
            if commit and committed is not None:
                self._overtake(group_id, where, before=order)
                yield group_id, where, committed

    def overtaken(self, group_id: str, where: TopicPartition) -> None:
        """An offset was written outside of transactions, after all pending writes of it."""
        if group_id in self._writers:
            self._overtake(group_id, where, before=next(self._order))

    def _overtake(self, group_id: str, where: TopicPartition, *, before: int) -> None:
        for transaction in self._writers.get(group_id, {}).get(where, ()):
            written = self._transactions[transaction]
            order, committed = written[group_id, where]
            if committed is not None and order < before:
                written[group_id, where] = order, None

    def drop(self, group_id: str, where: TopicPartition) -> None:
        """A tombstone was written: drop all pending writes."""
        for transaction in list(self._writers.get(group_id, {}).get(where, ())):
            self._transactions[transaction].pop((group_id, where), None)
            self._forget(group_id, where, transaction)

    def _forget(self, group_id: str, where: TopicPartition, transaction: _Transaction) -> None:
        by_partition = self._writers.get(group_id, {})
        writers = by_partition.get(where, set())
        writers.discard(transaction)
        if not writers:
            by_partition.pop(where, None)
        if not by_partition:
            self._writers.pop(group_id, None)

    def of(self, group_id: str) -> Collection[TopicPartition]:
        """The partitions whose offset may change when a transaction ends."""
        return self._writers.get(group_id, {}).keys()

    def groups(self) -> list[str]:
        return list(self._writers)
