"""Stores committed offsets: writes them to the log, keeps them in memory, and finds expired ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from broker.coordinator.committed_offset import CommittedOffset, TopicPartition
from broker.coordinator.futures import accepted
from broker.coordinator.journal import GroupJournal
from broker.coordinator.namespace import AnyGroup
from broker.coordinator.state_log import Entry
from broker.errors import BrokerError, OffsetMetadataTooLarge
from broker.groups.offsets.pending import PendingOffsets
from broker.groups.records import encode_offset, encode_offset_key

__all__ = ["CommittedOffsets"]

_NONE: Final[Mapping[TopicPartition, CommittedOffset]] = MappingProxyType({})


class CommittedOffsets:
    """Committed offsets by group. Only groups with offsets have an entry.

    Memory changes as soon as the log accepts a change, so that both have the same order. The request is answered when
    the change is durable.
    """

    def __init__(self, journal: GroupJournal, metadata_max: int) -> None:
        self._journal = journal
        self._metadata_max = metadata_max
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self.pending = PendingOffsets()
        """Offsets committed in open transactions."""

    def of(self, group_id: str) -> Mapping[TopicPartition, CommittedOffset]:
        return self._by_group.get(group_id, _NONE)

    def groups(self) -> list[str]:
        return list(dict.fromkeys([*self._by_group, *self.pending.groups()]))

    def commit(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        now_ms: int,
        producer: tuple[int, int] | None = None,
    ) -> tuple[asyncio.Future[None], dict[TopicPartition, BrokerError | None]]:
        """Write offsets, as part of a transaction if there is a ``producer``.

        Also returns the error of each refused offset.
        """
        results = {where: self._problem(where, committed_offset) for where, committed_offset in offsets.items()}
        committed = {
            where: replace(committed_offset, commit_timestamp_ms=now_ms)
            for where, committed_offset in offsets.items()
            if results[where] is None
        }
        entries = [(encode_offset_key(group_id, *where), encode_offset(offset)) for where, offset in committed.items()]
        written = self._journal.append(group_id, entries, producer)
        if accepted(written):
            if producer is not None:
                self.pending.add(self._journal.partition(group_id), producer[0], group_id, committed)
            else:
                for where, offset in committed.items():
                    self.set(group_id, where, offset)
                    self.pending.overtaken(group_id, where)
        return written, results

    def end_transaction(self, partition: int, producer_id: int, *, commit: bool) -> None:
        """The transaction's marker is in a partition of the log: its offsets there take effect or are dropped."""
        for group_id, where, committed in self.pending.end(partition, producer_id, commit=commit):
            self.set(group_id, where, committed)

    def _problem(self, where: TopicPartition, offset: CommittedOffset) -> BrokerError | None:
        length = len(offset.metadata)
        if length <= self._metadata_max:
            return None
        return OffsetMetadataTooLarge(
            f"The metadata committed for {where[0]}-{where[1]} has {length} characters; "
            f"offset.metadata.max.bytes is {self._metadata_max}."
        )

    def delete(
        self, group_id: str, gone: Sequence[TopicPartition], *, also: Sequence[Entry] = ()
    ) -> asyncio.Future[None]:
        """Write tombstones for those of ``gone`` that exist, together with ``also``, the group's own if it is deleted
        too.
        """
        committed, pending = self.of(group_id), self.pending.of(group_id)
        entries: list[Entry] = [
            (encode_offset_key(group_id, *where), None) for where in gone if where in committed or where in pending
        ]
        entries += also
        written = self._journal.append(group_id, entries)
        if accepted(written):
            self.drop(group_id, gone)
        return written

    def set(self, group_id: str, where: TopicPartition, committed: CommittedOffset) -> None:
        self._by_group.setdefault(group_id, {})[where] = committed

    def drop(self, group_id: str, gone: Iterable[TopicPartition]) -> None:
        offsets = self._by_group.get(group_id, {})
        for where in gone:
            offsets.pop(where, None)
            self.pending.drop(group_id, where)
        if not offsets:
            self._by_group.pop(group_id, None)

    def expired(self, group: AnyGroup, now_ms: int, retention_ms: int) -> list[TopicPartition]:
        """The expired partitions, without those of topics that the group subscribes to.

        A client's retention (OffsetCommit v2-v4) takes precedence over the broker's.
        """
        counts_from = group.offset_expiry()
        if counts_from is None:
            return []
        gone = []
        pending = self.pending.of(group.group_id)
        for where, committed in self.of(group.group_id).items():
            if group.subscribes_to(where[0]) or where in pending:
                continue
            given_ms = committed.expire_timestamp_ms
            if now_ms >= (counts_from(committed) + retention_ms if given_ms < 0 else given_ms):
                gone.append(where)
        return gone
