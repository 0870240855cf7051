"""The group coordinator: members join, agree on assignments, commit offsets, and are missed when they fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from broker.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    GroupIdNotFound,
    GroupNotEmpty,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from broker.groups.clock import Clock, LoopClock, Timer
from broker.groups.config import GroupConfig
from broker.groups.group import Group, Member
from broker.groups.joining import Joining
from broker.groups.journal import GroupJournal, OffsetsLog, accepted, answer_when, fail, succeed, when_done
from broker.groups.loading import load
from broker.groups.offsets import CommittedOffsets
from broker.groups.rebalance import Rebalance
from broker.groups.subscription import CONSUMER
from broker.groups.values import (
    CommittedOffset,
    DescribedGroup,
    GroupState,
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


class GroupCoordinator:
    """All groups of this broker. One thread calls it; nothing blocks.

    What has to wait (for other members, or for the disk) is a future, and fails with the BrokerError to answer; what
    can be refused at once is refused through that future too. The rest returns or raises. A future may be cancelled
    by whoever no longer waits; the member stays until its session ends.

    Every change is in the log before the answer is given. ``start`` reads the log back; until then every call is
    refused with CoordinatorLoadInProgress.
    """

    def __init__(self, log: OffsetsLog, config: GroupConfig, clock: Clock | None = None) -> None:
        self._config = config
        self._clock = clock or LoopClock()
        self._journal = GroupJournal(log, self._clock)
        self._rebalance = Rebalance(config, self._clock, self._journal)
        self._joining = Joining(config, self._clock, self._journal, self._rebalance)
        self._groups: dict[str, Group] = {}
        self._offsets = CommittedOffsets(self._journal, config.offset_metadata_max_bytes)
        self._sweep: Timer | None = None
        self._refusal: BrokerError | None = CoordinatorLoadInProgress("The group coordinator has not started.")

    def start(self) -> None:
        """Read every group and offset from the log; sessions of the members found there begin now."""
        self._groups, self._offsets = load(self._journal, self._config, self._clock.now_ms())
        self._refusal = None
        for group in self._groups.values():
            for member in group.members.values():
                self._rebalance.restart_session(group, member)
            if len(group.members) > self._config.max_size:
                self._rebalance.prepare(group, f"it has more members than group.max.size={self._config.max_size}")
        self._sweep_later()

    def stop(self) -> None:
        """Give up all groups: parked requests fail with NotCoordinator, which makes clients look for a new one."""
        self._refusal = NotCoordinator("The broker is shutting down.")
        if self._sweep is not None:
            self._sweep.cancel()
        for group in self._groups.values():
            self._rebalance.stop(group, self._refusal)

    # -- members ---------------------------------------------------------------------------------------------------

    def join_group(self, group_id: str, request: JoinRequest) -> asyncio.Future[Joined]:
        """Enter a group, or its next generation; done when all members are there or the rebalance timeout is over.

        Fails with MemberIdAssigned (a MemberIdRequired that carries the id) for newcomers that are to come back.
        """
        future: asyncio.Future[Joined] = self._clock.create_future()
        try:
            self._check_open(group_id)
            if (
                not self._config.min_session_timeout_ms
                <= request.session_timeout_ms
                <= (self._config.max_session_timeout_ms)
            ):
                raise InvalidSessionTimeout(
                    f"session.timeout.ms is {request.session_timeout_ms}; this broker takes "
                    f"{self._config.min_session_timeout_ms} to {self._config.max_session_timeout_ms} "
                    "(group.min.session.timeout.ms and group.max.session.timeout.ms)."
                )
            if request.rebalance_timeout_ms <= 0:
                request = replace(request, rebalance_timeout_ms=request.session_timeout_ms)
            group = self._groups.get(group_id)
            if group is None and request.member_id:
                raise UnknownMemberId(f"There is no group {group_id}, so it has no member {request.member_id}.")
            self._joining.join(group or self._create(group_id), request, future)
        except BrokerError as error:
            fail(future, error)
        return future

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
        future: asyncio.Future[Synced] = self._clock.create_future()
        try:
            self._check_open(group_id)
            group = self._member_group(group_id)
            member = group.require_member(member_id, instance_id)
            group.require_generation(generation)
            for given, current in ((protocol_type, group.protocol_type), (protocol_name, group.protocol_name)):
                if given is not None and given != current:
                    raise InconsistentGroupProtocol(f"Group {group_id} uses {current!r}, not {given!r}.")
            if group.state is GroupState.PREPARING_REBALANCE:
                raise RebalanceInProgress(f"Group {group_id} is rebalancing: join again.")
            self._rebalance.sync_received(group, member)
            if group.state is GroupState.STABLE:
                succeed(future, group.synced(member))
            else:
                self._park_sync(group, member, future, assignments or {})
        except BrokerError as error:
            fail(future, error)
        return future

    def _park_sync(
        self, group: Group, member: Member, future: asyncio.Future[Synced], assignments: Mapping[str, bytes]
    ) -> None:
        if member.syncing is not None:
            fail(member.syncing, RebalanceInProgress(f"Member {member.member_id} synced again in another request."))
        member.syncing = future
        if group.leader == member.member_id:
            self._rebalance.assign(group, assignments)

    def heartbeat(self, group_id: str, *, generation: int, member_id: str, instance_id: str | None = None) -> None:
        """Keep a member in its group; raises RebalanceInProgress when it is to join again."""
        if isinstance(self._refusal, CoordinatorLoadInProgress):
            return  # it may well be a member: that will be known soon
        self._check_open(group_id)
        group = self._member_group(group_id)
        member = group.require_member(member_id, instance_id)
        group.require_generation(generation)
        self._rebalance.restart_session(group, member)
        if group.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"Group {group_id} is rebalancing: join again.")

    def leave_group(self, group_id: str, leaving: Sequence[Leaving]) -> asyncio.Future[list[Left]]:
        """Take members out, one result each; the others rebalance."""
        future: asyncio.Future[list[Left]] = self._clock.create_future()
        try:
            self._check_open(group_id)
        except BrokerError as error:
            fail(future, error)
            return future
        group = self._groups.get(group_id)
        if group is None:
            unknown = UnknownMemberId(f"There is no group {group_id}.")
            succeed(future, [Left(one.member_id, one.instance_id, unknown) for one in leaving])
            return future
        results = [self._leave(group, one) for one in leaving]
        gone = [result.member_id or result.instance_id or "" for result in results if result.error is None]
        if gone and group.can_rebalance and group.state is not GroupState.EMPTY:
            self._rebalance.prepare(group, f"{', '.join(gone)} left")
        elif gone:
            self._rebalance.try_complete_join(group)
        if gone and group.state is GroupState.EMPTY and group.written is not None:
            answer_when(group.written, future, results)
        else:
            succeed(future, results)
        return future

    def _leave(self, group: Group, leaving: Leaving) -> Left:
        left = Left(leaving.member_id, leaving.instance_id)
        if leaving.member_id in group.pending_members:
            group.remove(leaving.member_id)
            return left
        try:
            holder = None if leaving.member_id else group.member_of_instance(leaving.instance_id)
            member = holder or group.require_member(leaving.member_id, leaving.instance_id)
        except BrokerError as error:
            return replace(left, error=error)
        _log.info("member leaves", group=group.group_id, member=member.member_id, reason=leaving.reason)
        self._rebalance.remove_member(group, member)
        return left

    # -- offsets ---------------------------------------------------------------------------------------------------

    def commit_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        generation: int = -1,
        member_id: str = "",
        instance_id: str | None = None,
        unknown_group: type[BrokerError] = GroupIdNotFound,
    ) -> asyncio.Future[dict[TopicPartition, BrokerError | None]]:
        """Write down where members have got to; generation -1 and no member id commits for a group without members.

        The result has every given partition: None if committed. ``unknown_group`` is what a member of a group that
        does not exist is told: GroupIdNotFound, or IllegalGeneration for OffsetCommit below version 9.
        """
        future: asyncio.Future[dict[TopicPartition, BrokerError | None]] = self._clock.create_future()
        try:
            self._check_open()
            group = self._groups.get(group_id)
            if group is None and generation >= 0:
                raise unknown_group(f"There is no group {group_id}.")
            group = group or Group(group_id, self._clock.now_ms())
            member = group.check_commit(member_id, instance_id, generation)
        except BrokerError as error:
            fail(future, error)
            return future
        if member is not None:
            self._rebalance.restart_session(group, member)
        written, results = self._offsets.commit(group_id, offsets, self._clock.now_ms())
        if accepted(written):
            self._groups.setdefault(group_id, group)
        answer_when(written, future, results)
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
        """As ``commit_offsets``, in the transaction of a producer (id, epoch): they count once its marker is written.

        Producers of clients before KIP-447 do not say on whose behalf they commit, and may do so whatever members there are.
        """
        future: asyncio.Future[dict[TopicPartition, BrokerError | None]] = self._clock.create_future()
        try:
            self._check_open()
            group = self._groups.get(group_id)
            if group is None and generation >= 0:
                raise IllegalGeneration(f"There is no group {group_id}.")
            group = group or Group(group_id, self._clock.now_ms())
            group.check_transactional_commit(member_id, instance_id, generation)
        except BrokerError as error:
            fail(future, error)
            return future
        written, results = self._offsets.commit(group_id, offsets, self._clock.now_ms(), producer)
        if accepted(written):
            self._groups.setdefault(group_id, group)
        answer_when(written, future, results)
        return future

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
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        """The committed offsets of these partitions, or of all; what has none is not in the answer.

        What open transactions have committed is not seen here: ``unstable_offsets`` says where there is some.
        """
        self._check_open()
        committed = self._offsets.of(group_id)
        if partitions is None:
            return dict(committed)
        return {where: committed[where] for where in partitions if where in committed}

    def delete_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition]
    ) -> asyncio.Future[dict[TopicPartition, BrokerError | None]]:
        """Forget committed offsets, except those of topics the members subscribe to."""
        future: asyncio.Future[dict[TopicPartition, BrokerError | None]] = self._clock.create_future()
        try:
            self._check_open(group_id)
            group = self._existing(group_id)
            if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER:
                raise GroupNotEmpty(
                    f"Group {group_id} of type {group.protocol_type!r} has members, and what they read is not known."
                )
        except BrokerError as error:
            fail(future, error)
            return future
        results: dict[TopicPartition, BrokerError | None] = {}
        for where in partitions:
            subscribed = group.subscribes_to(where[0])
            results[where] = (
                GroupSubscribedToTopic(f"Group {group_id} is subscribed to topic {where[0]}.") if subscribed else None
            )
        gone = [where for where, error in results.items() if error is None]
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
        return listed(self._groups.values(), states, types)

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
                if group.state is not GroupState.EMPTY:
                    raise GroupNotEmpty(f"Group {group_id} has {len(group.members)} members.")
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

    def counts(self) -> dict[GroupState, int]:
        """How many groups are in each state, for metrics."""
        counts = dict.fromkeys(GroupState, 0)
        for group in self._groups.values():
            counts[group.state] += 1
        return counts

    def expire(self) -> None:
        """Drop offsets past their retention, and empty groups that have none left."""
        now_ms, retention_ms = self._clock.now_ms(), self._config.retention_minutes * 60_000
        for group in list(self._groups.values()):
            gone = self._offsets.expired(group, now_ms, retention_ms)
            remains = len(self._offsets.of(group.group_id)) > len(gone) or self._offsets.pending.of(group.group_id)
            if group.state is GroupState.EMPTY and not group.pending_members and not remains:
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

    def _existing(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"There is no group {group_id}.")
        return group

    def _member_group(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise UnknownMemberId(f"There is no group {group_id}.")
        return group

    def _create(self, group_id: str) -> Group:
        """A new empty group is written too, as Kafka does: so that what comes after is about a group that exists."""
        group = Group(group_id, self._clock.now_ms())
        written = self._journal.write_group(group)
        if written.done() and (error := written.exception()) is not None:
            raise CoordinatorNotAvailable(f"Group {group_id} could not be written: {error}")
        when_done(written, lambda error: _warn(group_id, error))
        self._groups[group_id] = group
        return group

    def _delete(self, group: Group) -> asyncio.Future[None]:
        gone = [*self._offsets.of(group.group_id), *self._offsets.pending.of(group.group_id)]
        written = self._offsets.delete(group.group_id, list(dict.fromkeys(gone)), with_group=True)
        if accepted(written):
            self._rebalance.stop(group, CoordinatorNotAvailable(f"Group {group.group_id} was deleted."))
            del self._groups[group.group_id]
        return written

    def _sweep_later(self) -> None:
        def sweep() -> None:
            self.expire()
            self._sweep_later()

        self._sweep = self._clock.call_later(self._config.retention_check_interval_ms, sweep)


def _warn(group_id: str, error: BrokerError | None) -> None:
    if error is not None:
        _log.warning("group could not be written", group=group_id, error=str(error))
