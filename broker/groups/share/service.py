"""Share groups: members send their subscription and receive the partitions to fetch from (ShareGroupHeartbeat,
KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import ClassVar, Final
from uuid import UUID

from broker.coordinator.namespace import GroupType
from broker.coordinator.records import RecordValue
from broker.errors import (
    BrokerError,
    FencedMemberEpoch,
    GroupMaxSizeReached,
    GroupNotEmpty,
    InvalidRequest,
    UnknownMemberId,
)
from broker.groups.modern.assignors.simple import assign_simply
from broker.groups.modern.assignors.spec import GroupSpec, MemberSpec
from broker.groups.modern.group import NO_PARTITIONS, metadata_hash
from broker.groups.modern.member import JOINING, LEAVING, MemberState, Partitions
from broker.groups.modern.records import GroupRecordKey, Record, RecordTypes
from broker.groups.modern.service import GroupService, Surroundings
from broker.groups.modern.target import may_assign
from broker.groups.share import changes
from broker.groups.share.group import ShareGroup
from broker.groups.share.member import ShareMember
from broker.groups.share.partition_states import PartitionStates
from broker.groups.share.records import RECORDS
from broker.groups.share.replay import replay
from broker.groups.share.values import (
    DescribedShareGroup,
    DescribedShareMember,
    ShareAnswer,
    ShareHeartbeat,
    ShareState,
)
from tidegate.kit.logs import get_logger

__all__ = ["ShareMembership"]

logger = get_logger(__name__)

ASSIGNOR: Final = "simple"
_SESSION: Final = "session"
_REFRESH_MS: Final = 0x7FFFFFFF
"""A group checks its topics this often without a notification (as in Kafka)."""


class ShareMembership(GroupService[ShareGroup]):
    """The members of share groups and their assignments.

    ``state`` returns the store of share-partition state; None without one.
    """

    TYPE: ClassVar[GroupType] = GroupType.SHARE
    RECORDS: ClassVar[RecordTypes] = RECORDS

    def __init__(self, surroundings: Surroundings, state: Callable[[], ShareState | None]) -> None:
        super().__init__(surroundings)
        self.states = PartitionStates(self, state)

    # -- requests --------------------------------------------------------------------------------------------------

    def heartbeat(self, request: ShareHeartbeat) -> asyncio.Future[ShareAnswer]:
        """Join, stay, or leave. The answer comes when the changes are durable."""
        try:
            _check(request)
            if request.epoch == LEAVING:
                return self._leave(request)
            return self._stay(request)
        except BrokerError as error:
            return self.refuse(error)

    def describe(self, group_id: str) -> DescribedShareGroup:
        """Raises GroupIdNotFound."""
        group = self.around.groups.find(group_id, ShareGroup)
        ids = {topic_id for member in group.members.values() for topic_id in member.assigned}
        topics = (self.around.topics.by_id(topic_id) for topic_id in ids)
        return DescribedShareGroup(
            group_id=group_id,
            state=group.state_name,
            epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            members=tuple(
                DescribedShareMember(
                    member_id=member.member_id,
                    rack_id=member.rack_id,
                    epoch=member.epoch,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    topics=member.topics,
                    assigned=member.assigned,
                )
                for member in group.members.values()
            ),
            topic_names={topic.id: topic.name for topic in topics if topic is not None},
        )

    # -- join and stay ----------------------------------------------------------------------------------------------

    def group(self, group_id: str, *, create: bool) -> ShareGroup:
        """A group. A new one enters the namespace when its first record is written. Raises GroupIdNotFound."""
        existing_group = self.around.groups.get(group_id)
        if existing_group is None and create:
            return ShareGroup(group_id)
        return self.around.groups.find(group_id, ShareGroup)

    def _stay(self, request: ShareHeartbeat) -> asyncio.Future[ShareAnswer]:
        joining = request.epoch == JOINING
        group = self.group(request.group_id, create=joining)
        most = self.around.config.share_max_size
        if len(group.members) >= most and request.member_id not in group.members:
            raise GroupMaxSizeReached(f"Share group {group.group_id} is full: group.share.max.size is {most}.")
        before = group.members.get(request.member_id)
        if before is None:
            if not joining:
                raise UnknownMemberId(f"Member {request.member_id} is not a member of group {group.group_id}.")
            before = ShareMember(member_id=request.member_id)
        _check_epoch(before, request.epoch)
        member = replace(
            before,
            rack_id=before.rack_id if request.rack_id is None else request.rack_id,
            topics=before.topics if request.topics is None else request.topics,
            client_id=request.client_id,
            client_host=request.client_host,
        )
        records: list[Record] = []
        if member != before or member.member_id not in group.members:
            records.append(changes.subscription(group.group_id, member))
        members = {**group.members, member.member_id: member}
        epoch, bumped = self._next_epoch(group, members, records, changed=member.topics != before.topics)
        target_epoch, target = self._next_target(group, members, member, epoch, records)
        after = self._reconciled(member, target_epoch, target, subscription_changed=bumped)
        if after != member:
            records.append(changes.current_assignment(group.group_id, after))
        missing = self.states.missing(group, group.subscribed_by(members))
        if missing:
            records.append(self.states.initializing(group, missing))
        self._restart_session(group.group_id, member.member_id)
        told = joining or request.topics is not None or after.assigned != before.assigned
        answer = ShareAnswer(
            after.member_id,
            after.epoch,
            self.around.settings(group.group_id).share_heartbeat_interval_ms,
            after.assigned if told else None,
        )
        future = self.commit(group.group_id, records, answer)
        if missing and accepted_answer(future):
            self.states.initialize_soon(group.group_id, epoch, missing)
        return future

    def _next_epoch(
        self, group: ShareGroup, members: Mapping[str, ShareMember], records: list[Record], *, changed: bool
    ) -> tuple[int, bool]:
        """The group's epoch, and whether it is a new one because subscriptions, topics or initialized partitions
        changed.
        """
        now_ms, epoch = self.around.clock.now_ms(), group.epoch
        bump = changed or (group.assignment_epoch >= epoch and group.awaits_assignment)
        if not bump and not group.is_refresh_due(now_ms):
            return epoch, False
        fresh_hash = metadata_hash(group.subscribed_by(members), self.around.topics)
        if bump or fresh_hash != group.metadata_hash:
            bump, epoch = True, epoch + 1
            records.append(changes.group_epoch(group.group_id, epoch, fresh_hash))
            logger.info("group epoch", group=group.group_id, epoch=epoch)
        group.refresh_at(now_ms + _REFRESH_MS, epoch)
        return epoch, bump

    def _next_target(
        self,
        group: ShareGroup,
        members: Mapping[str, ShareMember],
        member: ShareMember,
        epoch: int,
        records: list[Record],
    ) -> tuple[int, Partitions]:
        """The epoch of the target assignment, and the member's part of it."""
        present = group.target.get(member.member_id, NO_PARTITIONS)
        now_ms = self.around.clock.now_ms()
        interval_ms = self.around.settings(group.group_id).share_assignment_interval_ms
        if group.assignment_epoch >= epoch or not may_assign(group.assigned_at_ms, interval_ms, now_ms):
            return group.assignment_epoch, present
        targets = assign_simply(self._spec(group, members))
        for member_id, partitions in targets.items():
            if partitions != group.target.get(member_id):
                records.append(changes.target(group.group_id, member_id, partitions))
        records.append(changes.assignment_epoch(group.group_id, epoch, now_ms))
        logger.info("target assignment", group=group.group_id, epoch=epoch, assignor=ASSIGNOR)
        return epoch, targets[member.member_id]

    def _spec(self, group: ShareGroup, members: Mapping[str, ShareMember]) -> GroupSpec:
        names = group.subscribed_by(members)
        topics = {name: topic for name in names if (topic := self.around.topics.by_name(name)) is not None}
        return GroupSpec(
            members={
                member_id: MemberSpec(
                    frozenset(topics[name].id for name in member.topics if name in topics),
                    group.target.get(member_id, NO_PARTITIONS),
                    rack_id=member.rack_id,
                )
                for member_id, member in members.items()
            },
            homogeneous=len({member.topics for member in members.values()}) <= 1,
            partitions={topic.id: topic.partitions for topic in topics.values()},
            assignable={topic_id: state.partitions for topic_id, state in group.initialized.items()},
        )

    def _reconciled(
        self, member: ShareMember, target_epoch: int, target: Partitions, *, subscription_changed: bool
    ) -> ShareMember:
        """The member with its target assignment. Nothing has to be released first, because partitions are shared."""
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        topics = (self.around.topics.by_name(name) for name in member.topics)
        subscribed = {topic.id for topic in topics if topic is not None}
        assigned = {topic_id: numbers for topic_id, numbers in target.items() if topic_id in subscribed}
        if target_epoch == member.epoch:
            return replace(member, assigned=assigned)
        return replace(
            member, epoch=target_epoch, previous_epoch=member.epoch, state=MemberState.STABLE, assigned=assigned
        )

    # -- leave and expire -------------------------------------------------------------------------------------------

    def _leave(self, request: ShareHeartbeat) -> asyncio.Future[ShareAnswer]:
        group = self.around.groups.find(request.group_id, ShareGroup)
        member = group.member(request.member_id)
        logger.info("member leaves", group=group.group_id, member=member.member_id)
        answer = ShareAnswer(member.member_id, request.epoch)
        return self.commit(group.group_id, self._removal(group, member.member_id), answer)

    def _removal(self, group: ShareGroup, member_id: str) -> list[Record]:
        left = {name: member for name, member in group.members.items() if name != member_id}
        fresh_hash = metadata_hash(group.subscribed_by(left), self.around.topics)
        self.timers.cancel((_SESSION, group.group_id, member_id))
        return [
            *changes.member_tombstones(group.group_id, member_id),
            changes.group_epoch(group.group_id, group.epoch + 1, fresh_hash),
        ]

    def _restart_session(self, group_id: str, member_id: str) -> None:
        def fence() -> None:
            group = self.around.groups.get(group_id)
            if isinstance(group, ShareGroup) and member_id in group.members:
                logger.info("member fenced", group=group_id, member=member_id, reason="session expired")
                self.write_by_timer(group_id, self.change(self._removal(group, member_id)))

        self.later(_SESSION, group_id, member_id, self.around.settings(group_id).share_session_timeout_ms, fence)

    # -- administration --------------------------------------------------------------------------------------------

    def empty_group(self, group_id: str, *, create: bool) -> ShareGroup:
        """A group that must not have members. Raises GroupIdNotFound, GroupNotEmpty."""
        group = self.group(group_id, create=create)
        if not group.is_empty:
            raise GroupNotEmpty(f"Group {group_id} has {len(group.members)} members.")
        return group

    def initialized(self, group_id: str) -> dict[UUID, frozenset[int]]:
        """The partitions for which a group has state; none if there is no such group."""
        group = self.around.groups.get(group_id)
        if not isinstance(group, ShareGroup):
            return {}
        return {topic_id: topic.partitions for topic_id, topic in group.initialized.items()}

    def before_delete(self, group: ShareGroup) -> None:
        """The group is about to be deleted: delete its state too."""
        self.states.delete_all(group)

    def forget_topics(self, topic_ids: Collection[UUID]) -> None:
        """Topics were deleted, and their state with them."""
        self.states.forget(topic_ids)

    # -- the log ---------------------------------------------------------------------------------------------------

    def replay(self, key: GroupRecordKey, value: RecordValue | None) -> None:
        replay(self.around.groups, key, value, self.around.clock.now_ms())

    def loaded(self, group: ShareGroup) -> None:
        for member_id in group.members:
            self._restart_session(group.group_id, member_id)


def accepted_answer(future: asyncio.Future[ShareAnswer]) -> bool:
    """Whether the log accepted the change behind an answer."""
    return not future.done() or (not future.cancelled() and future.exception() is None)


def _check(request: ShareHeartbeat) -> None:
    if not request.member_id:
        raise InvalidRequest("MemberId can't be empty.")
    if not request.group_id:
        raise InvalidRequest("GroupId can't be empty.")
    if request.rack_id == "":
        raise InvalidRequest("RackId can't be empty.")
    if request.epoch == JOINING and not request.topics:
        raise InvalidRequest("SubscribedTopicNames must be set in first request.")
    if request.epoch < LEAVING:
        raise InvalidRequest("MemberEpoch is invalid.")


def _check_epoch(member: ShareMember, epoch: int) -> None:
    """A member may be one epoch behind if it missed the last answer."""
    if epoch in (JOINING, member.epoch, member.previous_epoch) and epoch <= member.epoch:
        return
    kind = "smaller" if epoch < member.epoch else "greater"
    raise FencedMemberEpoch(
        f"The share group member has a {kind} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin."
    )
