"""The group coordinator: members join, agree on assignments, commit offsets, and are missed when they fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from broker.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    NotCoordinator,
)
from broker.groups.clock import Clock, LoopClock, Timer
from broker.groups.config import GroupConfig
from broker.groups.consumer.classic_members import ClassicMembers
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.service import ConsumerGroups
from broker.groups.group import Group
from broker.groups.group_settings import SettingsOfGroups
from broker.groups.journal import GroupJournal, OffsetsLog, accepted, answer_when, fail, succeed, when_done
from broker.groups.loading import load
from broker.groups.membership import ClassicGroups
from broker.groups.modern.group import ModernGroup
from broker.groups.modern.service import GroupService, Surroundings
from broker.groups.modern.topics import TopicCatalog
from broker.groups.namespace import AnyGroup, CommitCheck, GroupNamespace, GroupType
from broker.groups.offsets import CommittedOffsets
from broker.groups.share.service import ShareMembership
from broker.groups.streams.service import StreamsGroups
from broker.groups.values import (
    CommittedOffset,
    DescribedGroup,
    Joined,
    JoinRequest,
    Leaving,
    Left,
    ListedGroup,
    Synced,
    TopicPartition,
)
from broker.groups.views import described, listed
from tidegate.kit.logs import logger

__all__ = ["GroupCoordinator"]

_log = logger(__name__)

S = TypeVar("S", bound=GroupService[Any])


class GroupCoordinator:
    """All groups of this broker. One thread calls it; nothing blocks.

    What has to wait (for other members, or for the disk) is a future, and fails with the BrokerError to answer; what
    can be refused at once is refused through that future too. The rest returns or raises. A future may be cancelled
    by whoever no longer waits; the member stays until its session ends.

    Every change is in the log before the answer is given. ``start`` reads the log back; until then every call is
    refused with CoordinatorLoadInProgress.
    """

    def __init__(
        self,
        log: OffsetsLog,
        config: GroupConfig,
        topics: TopicCatalog,
        clock: Clock | None = None,
        *,
        settings: Callable[[str], Mapping[str, str]] | None = None,
    ) -> None:
        self._config = config
        self._clock = clock or LoopClock()
        self._journal = GroupJournal(log, self._clock)
        self._groups = GroupNamespace()
        self.settings = SettingsOfGroups(config, settings)
        self._classic = ClassicGroups(self._groups, config, self._clock, self._journal)
        surroundings = Surroundings(
            self._groups, self._journal, self._clock, topics, config, self.settings, self._classic
        )
        self._services: tuple[GroupService[Any], ...] = tuple(make(surroundings) for make in _TYPES)
        self._classic_members = ClassicMembers(next(s for s in self._services if isinstance(s, ConsumerGroups)))
        self._offsets = CommittedOffsets(self._journal, config.offset_metadata_max_bytes)
        self._sweep: Timer | None = None
        self._refusal: BrokerError | None = CoordinatorLoadInProgress("The group coordinator has not started.")

    def start(self) -> None:
        """Read every group and offset from the log; sessions of the members found there begin now."""
        load(self._journal, self._groups, self._offsets, self._services, self._clock.now_ms())
        self._refusal = None
        services = {service.TYPE: service for service in self._services}
        for group in self._groups:
            if isinstance(group, Group):
                self._classic.loaded(group)
            else:
                services[group.group_type].loaded(group)
        self._sweep_later()

    def stop(self) -> None:
        """Give up all groups: parked requests fail with NotCoordinator, which makes clients look for a new one."""
        self._refusal = NotCoordinator("The broker is shutting down.")
        if self._sweep is not None:
            self._sweep.cancel()
        for group in self._groups.of_type(Group):
            self._classic.rebalance.stop(group, self._refusal)
        for service in self._services:
            service.stop()

    def service(self, kind: type[S]) -> S:
        """The service of a type of groups, by its class. Raises what refuses every call just now."""
        self._check_open()
        return next(service for service in self._services if isinstance(service, kind))

    def topic_changed(self, name: str) -> None:
        """A topic was created, deleted or given partitions: groups that read it need new assignments."""
        for group in self._groups:
            if isinstance(group, ModernGroup) and name in group.subscribed_topics:
                group.refresh_soon()

    # -- members of classic groups ---------------------------------------------------------------------------------

    def join_group(self, group_id: str, request: JoinRequest) -> asyncio.Future[Joined]:
        """Enter a group, or its next generation; done when all members are there or the rebalance timeout is over.

        Fails with MemberIdAssigned (a MemberIdRequired that carries the id) for newcomers that are to come back.
        """
        try:
            self._check_open(group_id)
            group = self._groups.get(group_id)
            if isinstance(group, ConsumerGroup) and not group.is_empty:
                return self._classic_members.join(group, request)
            if group is not None and not isinstance(group, Group):
                self._make_way(group)
        except BrokerError as error:
            return self._refused(error)
        return self._classic.join(group_id, request)

    def _make_way(self, group: AnyGroup) -> None:
        """An empty group of consumers or streams becomes a classic one when the first member that joins is one."""
        if group.group_type is GroupType.SHARE or not group.is_empty:
            raise InconsistentGroupProtocol(f"Group {group.group_id} is a {group.group_type.value} group.")
        written = self._journal.append(group.group_id, group.tombstones())
        if not accepted(written):
            raise CoordinatorNotAvailable(f"Group {group.group_id} could not be written: {written.exception()}")
        when_done(written, lambda error: _warn(group.group_id, error))
        self._groups.remove(group.group_id)

    def sync_group(
        self,
        group_id: str,
        *,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: Mapping[str, bytes] | None = None,
    ) -> asyncio.Future[Synced]:
        """Fetch a member's assignment; the leader brings everybody's. Done when the leader's are written down.

        ``protocol_type`` and ``protocol_name`` are checked if given (SyncGroup v5 and later).
        """
        try:
            self._check_open(group_id)
        except BrokerError as error:
            return self._refused(error)
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.sync(
                group,
                generation=generation,
                member_id=member_id,
                instance_id=instance_id,
                protocol_type=protocol_type,
                protocol_name=protocol_name,
            )
        return self._classic.sync(
            group_id,
            generation=generation,
            member_id=member_id,
            instance_id=instance_id,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=assignments,
        )

    def heartbeat(self, group_id: str, *, generation: int, member_id: str, instance_id: str | None = None) -> None:
        """Keep a member in its group; raises RebalanceInProgress when it is to join again."""
        if isinstance(self._refusal, CoordinatorLoadInProgress):
            return  # it may well be a member: that will be known soon
        self._check_open(group_id)
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            self._classic_members.heartbeat(group, generation=generation, member_id=member_id, instance_id=instance_id)
            return
        self._classic.heartbeat(group_id, generation=generation, member_id=member_id, instance_id=instance_id)

    def leave_group(self, group_id: str, leaving: Sequence[Leaving]) -> asyncio.Future[list[Left]]:
        """Take members out, one result each; the others rebalance."""
        try:
            self._check_open(group_id)
        except BrokerError as error:
            return self._refused(error)
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return self._classic_members.leave(group, leaving)
        return self._classic.leave(group_id, leaving)

    # -- offsets ---------------------------------------------------------------------------------------------------

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
        """Write down where members have got to; generation -1 and no member id commits for a group without members.

        The result has every given partition: None if committed. ``version`` is that of OffsetCommit. With a ``producer``
        (id, epoch) the offsets are part of its transaction and count once its marker is written; producers of clients
        before KIP-447 do not say on whose behalf they commit, and may do so whatever members there are.
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
        taken = {where: one for where, one in offsets.items() if where not in refused}
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
        """``commit_offsets`` in the transaction of a producer (id, epoch)."""
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
        """The partitions for which an open transaction has committed offsets."""
        return self._offsets.pending.of(group_id)

    def fetch_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> dict[TopicPartition, CommittedOffset]:
        """The committed offsets of these partitions, or of all; what has none is not in the answer.

        A member that names itself (OffsetFetch v9 and later) must be one, at its present epoch.

        What open transactions have committed is not seen here: ``unstable_offsets`` says where there is some.
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
        """Forget committed offsets, except those of topics the members subscribe to."""
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
        """A topic was deleted: drop what groups committed for it, so that a new one of its name begins afresh."""
        for group_id in self._offsets.groups():
            there = [*self._offsets.of(group_id), *self._offsets.pending.of(group_id)]
            gone = [where for where in dict.fromkeys(there) if where[0] == topic]
            when_done(self._offsets.delete(group_id, gone), lambda error, group_id=group_id: _warn(group_id, error))  # type: ignore[misc]

    # -- groups ----------------------------------------------------------------------------------------------------

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """The groups in these states and of these types (names, in any case); an empty filter lets all through."""
        self._check_open()
        return listed(self._groups, states, types)

    def describe_groups(self, group_ids: Iterable[str]) -> list[DescribedGroup]:
        """Each group with its members, in the given order."""
        self._check_open()
        return [described(group_id, self._groups.get(group_id)) for group_id in group_ids]

    def delete_groups(self, group_ids: Iterable[str]) -> asyncio.Future[dict[str, BrokerError | None]]:
        """Delete groups without members, with their offsets; done when that is written. One result each."""
        future: asyncio.Future[dict[str, BrokerError | None]] = self._clock.create_future()
        results: dict[str, BrokerError | None] = {}
        writes: list[tuple[str, asyncio.Future[None]]] = []
        for group_id in dict.fromkeys(group_ids):
            try:
                self._check_open()
                group = self._existing(group_id)
                group.check_delete()
                for service in self._services:
                    if service.TYPE is group.group_type:
                        service.before_delete(group)
                results[group_id] = None
                writes.append((group_id, self._delete(group)))
            except BrokerError as error:
                results[group_id] = error
        open_writes = len(writes)
        if not writes:
            succeed(future, results)

        def written(group_id: str) -> Callable[[BrokerError | None], None]:
            def note(error: BrokerError | None) -> None:
                nonlocal open_writes
                results[group_id] = error
                open_writes -= 1
                if not open_writes:
                    succeed(future, results)

            return note

        for group_id, write in writes:
            when_done(write, written(group_id))
        return future

    def counts(self) -> dict[tuple[GroupType, str], int]:
        """How many groups of each type are in each state, for metrics."""
        counts: dict[tuple[GroupType, str], int] = {}
        for group in self._groups:
            counts[group.group_type, group.state_name] = counts.get((group.group_type, group.state_name), 0) + 1
        return counts

    def expire(self) -> None:
        """Drop offsets past their retention, and empty groups that have none left."""
        now_ms, retention_ms = self._clock.now_ms(), self._config.retention_minutes * 60_000
        for group in self._groups:
            gone = self._offsets.expired(group, now_ms, retention_ms)
            remains = len(self._offsets.of(group.group_id)) > len(gone) or self._offsets.pending.of(group.group_id)
            if group.is_empty and group.expires and not remains:
                write = self._delete(group)
            elif gone:
                write = self._offsets.delete(group.group_id, gone)
            else:
                continue
            _log.info("offsets expired", group=group.group_id, offsets=len(gone))
            when_done(write, lambda error, group_id=group.group_id: _warn(group_id, error))  # type: ignore[misc]

    # -- inside ----------------------------------------------------------------------------------------------------

    def _check_open(self, group_id: str | None = None) -> None:
        """Raise what refuses every call just now, or InvalidGroupId where an id is needed and empty."""
        if self._refusal is not None:
            raise self._refusal
        if group_id == "":
            raise InvalidGroupId("The group id is empty.")

    def _existing(self, group_id: str) -> AnyGroup:
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"There is no group {group_id}.")
        return group

    def _delete(self, group: AnyGroup) -> asyncio.Future[None]:
        gone = [*self._offsets.of(group.group_id), *self._offsets.pending.of(group.group_id)]
        written = self._offsets.delete(group.group_id, list(dict.fromkeys(gone)), also=group.tombstones())
        if accepted(written):
            if isinstance(group, Group):
                self._classic.rebalance.stop(group, CoordinatorNotAvailable(f"Group {group.group_id} was deleted."))
            self._groups.remove(group.group_id)
        return written

    def _refused(self, error: BrokerError) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self._clock.create_future()
        fail(future, error)
        return future

    def _sweep_later(self) -> None:
        def sweep() -> None:
            self.expire()
            self._sweep_later()

        self._sweep = self._clock.call_later(self._config.retention_check_interval_ms, sweep)


def _warn(group_id: str, error: BrokerError | None) -> None:
    if error is not None:
        _log.warning("group could not be written", group=group_id, error=str(error))


_TYPES: Final[Sequence[Callable[[Surroundings], GroupService[Any]]]] = (ConsumerGroups, ShareMembership, StreamsGroups)
"""All types of groups whose assignments the coordinator computes."""


def _refusals(
    check: CommitCheck, offsets: Mapping[TopicPartition, CommittedOffset]
) -> dict[TopicPartition, BrokerError]:
    found = {where: check(where[0], one.topic_id, where[1]) for where, one in offsets.items()}
    return {where: error for where, error in found.items() if error is not None}
