"""Commits, reads and deletes offsets of groups of all types: the offsets part of the coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from broker.coordinator.clock import Clock
from broker.coordinator.committed_offset import CommittedOffset, TopicPartition
from broker.coordinator.futures import (
    accepted,
    answer_when,
    fail,
    when_done,
)
from broker.coordinator.journal import GroupJournal
from broker.coordinator.namespace import AnyGroup, CommitCheck, GroupNamespace
from broker.coordinator.state_log import StateLog
from broker.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidGroupId,
)
from broker.groups.classic.group import Group
from broker.groups.classic.service import ClassicGroups
from broker.groups.config.group_config import GroupConfig
from broker.groups.offsets.store import CommittedOffsets
from tidegate.kit.logs import get_logger

__all__ = ["GroupOffsets", "warn"]

logger = get_logger(__name__)


class GroupOffsets:
    """The part of ``GroupCoordinator`` that commits, reads and deletes offsets."""

    def __init__(self, log: StateLog, config: GroupConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._journal = GroupJournal(log, clock)
        self._groups = GroupNamespace()
        self._classic = ClassicGroups(self._groups, config, clock, self._journal)
        self._offsets = CommittedOffsets(self._journal, config.offset_metadata_max_bytes)
        self._refusal: BrokerError | None = CoordinatorLoadInProgress("The group coordinator has not started.")

    def commit_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        generation: int = -1,
        member_id: str = "",
        instance_id: str | None = None,
        version: int = 9,
        producer: tuple[int, int] | None = None,
    ) -> asyncio.Future[dict[TopicPartition, BrokerError | None]]:
        """Commit offsets. Generation -1 without a member id commits for a group without members.

        The result has every partition; None means committed. ``version`` is that of OffsetCommit. With a ``producer``
        (id, epoch) the offsets are part of its transaction and take effect with its marker. Producers from before
        KIP-447 do not name a member, and may commit even if the group has members.
        """
        transactional = producer is not None
        try:
            self._check_open()
            group = self._groups.get(group_id)
            if group is None and generation >= 0:
                unknown = IllegalGeneration if transactional or version < 9 else GroupIdNotFound
                raise unknown(f"There is no group {group_id}.")
            group = group or Group(group_id, self._clock.now_ms())
            check = group.commit_check(member_id, instance_id, generation, version=version, transactional=transactional)
        except BrokerError as error:
            return self._refused(error)
        if isinstance(group, Group) and not transactional and (member := group.members.get(member_id)) is not None:
            self._classic.rebalance.restart_session(group, member)
        refused = {} if check is None else _refusals(check, offsets)
        taken = {where: offset for where, offset in offsets.items() if where not in refused}
        written, results = self._offsets.commit(group_id, taken, self._clock.now_ms(), producer)
        if accepted(written) and taken and group_id not in self._groups:
            self._groups.put(group)
        future: asyncio.Future[dict[TopicPartition, BrokerError | None]] = self._clock.create_future()
        answer_when(written, future, {**results, **refused})
        return future

    def commit_transaction_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        producer: tuple[int, int],
        generation: int = -1,
        member_id: str = "",
        instance_id: str | None = None,
    ) -> asyncio.Future[dict[TopicPartition, BrokerError | None]]:
        """Like ``commit_offsets``, in the transaction of a producer (id, epoch)."""
        return self.commit_offsets(
            group_id,
            offsets,
            generation=generation,
            member_id=member_id,
            instance_id=instance_id,
            producer=producer,
        )

    def end_transaction(self, partition: int, producer_id: int, *, commit: bool) -> None:
        """A producer's marker was written to a partition of ``__consumer_offsets``."""
        self._offsets.end_transaction(partition, producer_id, commit=commit)

    def partition(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that a group's offsets are in."""
        return self._journal.partition(group_id)

    def unstable_offsets(self, group_id: str) -> Collection[TopicPartition]:
        """The partitions with offsets committed in an open transaction."""
        return self._offsets.pending.of(group_id)

    def fetch_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> dict[TopicPartition, CommittedOffset]:
        """The committed offsets of these partitions, or of all. Partitions without one are left out.

        If a member is named (OffsetFetch v9 and later), it must exist and be at its current epoch.

        Offsets of open transactions are not included; ``unstable_offsets`` says which partitions have them.
        """
        self._check_open()
        try:
            self._existing(group_id).check_fetch(member_id, member_epoch)
        except GroupIdNotFound:
            return {}
        committed = self._offsets.of(group_id)
        if partitions is None:
            return dict(committed)
        return {where: committed[where] for where in partitions if where in committed}

    def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> asyncio.Future[dict[TopicPartition, BrokerError | None]]:
        """Delete committed offsets, except for topics that the members subscribe to."""
        try:
            self._check_open(group_id)
            group = self._existing(group_id)
            group.check_offset_delete()
        except BrokerError as error:
            return self._refused(error)
        results: dict[TopicPartition, BrokerError | None] = {}
        for where in partitions:
            subscribed = group.subscribes_to(where[0])
            results[where] = (
                GroupSubscribedToTopic(f"Group {group_id} is subscribed to topic {where[0]}.") if subscribed else None
            )
        gone = [where for where, error in results.items() if error is None]
        future: asyncio.Future[dict[TopicPartition, BrokerError | None]] = self._clock.create_future()
        answer_when(self._offsets.delete(group_id, gone), future, results)
        return future

    def forget_topic(self, topic: str) -> None:
        """Delete all offsets of a deleted topic, so that a new topic of its name starts without any."""
        for group_id in self._offsets.groups():
            there = [*self._offsets.of(group_id), *self._offsets.pending.of(group_id)]
            gone = [where for where in dict.fromkeys(there) if where[0] == topic]
            when_done(self._offsets.delete(group_id, gone), lambda error, group_id=group_id: warn(group_id, error))  # type: ignore[misc]

    def _check_open(self, group_id: str | None = None) -> None:
        """Raise the error that refuses every call at the moment, or InvalidGroupId for an empty id."""
        if self._refusal is not None:
            raise self._refusal
        if group_id == "":
            raise InvalidGroupId("The group id is empty.")

    def _existing(self, group_id: str) -> AnyGroup:
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"There is no group {group_id}.")
        return group

    def _refused(self, error: BrokerError) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._clock.create_future()
        fail(future, error)
        return future


def _refusals(
    check: CommitCheck, offsets: Mapping[TopicPartition, CommittedOffset]
) -> dict[TopicPartition, BrokerError]:
    result = {where: check(where[0], offset.topic_id, where[1]) for where, offset in offsets.items()}
    return {where: error for where, error in result.items() if error is not None}


def warn(group_id: str, error: BrokerError | None) -> None:
    """Log the error of a write that no caller waits for."""
    if error is not None:
        logger.warning("group could not be written", group=group_id, error=str(error))
