"""Consumer groups: members send their subscription and assignment, and receive what to read (ConsumerGroupHeartbeat,
KIP-848).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import ClassVar

from broker.coordinator.futures import answer_when
from broker.coordinator.namespace import GroupType
from broker.coordinator.records import RecordValue
from broker.errors import (
    BrokerError,
    FencedInstanceId,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    UnknownMemberId,
    UnreleasedInstanceId,
)
from broker.groups.classic.group import Group
from broker.groups.consumer import changes
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerMember, Epochs, partitions_of
from broker.groups.consumer.migration import Migration
from broker.groups.consumer.records import RECORDS
from broker.groups.consumer.regexes import Regexes
from broker.groups.consumer.replay import replay
from broker.groups.consumer.requests import check_request
from broker.groups.consumer.step import Step
from broker.groups.consumer.values import (
    ConsumerHeartbeat,
    DescribedConsumerGroup,
    HeartbeatAnswer,
)
from broker.groups.consumer.views import described
from broker.groups.modern.group import NO_PARTITIONS, metadata_hash
from broker.groups.modern.member import JOINING, LEAVING, LEAVING_STATIC, MemberState, Partitions
from broker.groups.modern.records import GroupRecordKey, Record, RecordTypes
from broker.groups.modern.service import Change, GroupService, Surroundings
from tidegate.kit.logs import get_logger

__all__ = ["SESSION", "ConsumerGroups"]

logger = get_logger(__name__)

SESSION = "session"
REVOCATION = "revocation"
"""The timer of a member that has to release something."""


class ConsumerGroups(GroupService[ConsumerGroup]):
    """All consumer groups. ``classic_members`` serves their members of the classic protocol."""

    TYPE: ClassVar[GroupType] = GroupType.CONSUMER
    RECORDS: ClassVar[RecordTypes] = RECORDS

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings)
        self.migration = Migration(surroundings, self)
        self.regexes = Regexes(self)

    # -- requests --------------------------------------------------------------------------------------------------

    def heartbeat(self, request: ConsumerHeartbeat, version: int) -> asyncio.Future[HeartbeatAnswer]:
        """Join, stay, or leave. ``version`` is the API's. The answer comes when the changes are durable."""
        try:
            check_request(request, version, self.around.config.consumer_assignors)
            if request.epoch in (LEAVING, LEAVING_STATIC):
                return self._leave(request)
            return self._stay(request)
        except BrokerError as error:
            return self.refuse(error)

    def describe(self, group_id: str) -> DescribedConsumerGroup:
        """Raises GroupIdNotFound."""
        group = self.around.groups.find(group_id, ConsumerGroup)
        default = self.around.config.consumer_assignors[0]
        return described(group, self.around.topics, default)

    # -- join and stay ----------------------------------------------------------------------------------------------

    def _stay(self, request: ConsumerHeartbeat) -> asyncio.Future[HeartbeatAnswer]:
        joining = request.epoch == JOINING
        step = self._open(request.group_id, create=joining)
        self.check_room(step.group, request.member_id)
        member_id = request.member_id or str(uuid.uuid4())
        if request.instance_id is None:
            member = self.dynamic_member(step.group, member_id, create=joining)
            _check_epoch(member, request)
        else:
            member = self.static_member(step, member_id, request.instance_id, create=joining, request=request)
        updated = replace(
            member,
            instance_id=member.instance_id if request.instance_id is None else request.instance_id,
            rack_id=member.rack_id if request.rack_id is None else request.rack_id,
            rebalance_timeout_ms=(
                member.rebalance_timeout_ms if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms
            ),
            assignor=member.assignor if request.assignor is None else request.assignor,
            topics=member.topics if request.topics is None else request.topics,
            regex=member.regex if request.regex is None else request.regex,
            client_id=request.client_id,
            client_host=request.client_host,
            classic=None,
        )
        updated = self.advance(step, member, updated, request.owned, request.may_describe)
        answer = HeartbeatAnswer(
            updated.member_id,
            updated.epoch,
            self.around.settings(request.group_id).consumer_heartbeat_interval_ms,
            # A member is sent its assignment when that changed, and when the member may not know it.
            partitions_of(updated.assigned)
            if joining or request.is_full or member.assigned != updated.assigned
            else None,
        )
        future = self.finish(step, answer)
        self.restart_session(request.group_id, updated)
        return future

    def _open(self, group_id: str, *, create: bool) -> Step:
        """The group, a new one, or the one that a classic group becomes. Nothing is changed yet."""
        existing_group = self.around.groups.get(group_id)
        if existing_group is None:
            if not create:
                raise GroupIdNotFound(f"Consumer group {group_id} not found.")
            return Step(self.around, ConsumerGroup(group_id))
        if isinstance(existing_group, ConsumerGroup):
            return Step(self.around, existing_group)
        if not create or not isinstance(existing_group, Group):
            raise GroupIdNotFound(f"Group {group_id} is not a consumer group.")
        group, records = self.migration.upgraded(existing_group)
        step = Step(self.around, group)
        step.upgraded = existing_group
        step.records += records
        return step

    def check_room(self, group: ConsumerGroup, member_id: str) -> None:
        most = self.around.config.consumer_max_size
        if len(group.members) >= most and member_id not in group.members:
            raise GroupMaxSizeReached(f"Consumer group {group.group_id} is full: group.consumer.max.size is {most}.")

    def dynamic_member(self, group: ConsumerGroup, member_id: str, *, create: bool) -> ConsumerMember:
        member = group.members.get(member_id)
        if member is not None:
            return member
        if not create:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {group.group_id}.")
        return ConsumerMember(member_id=member_id)

    def static_member(
        self, step: Step, member_id: str, instance_id: str, *, create: bool, request: ConsumerHeartbeat | None
    ) -> ConsumerMember:
        """The member of an instance id.

        A new member replaces one that has left for a while (KIP-345) or that changes its protocol. ``request`` is set
        for members of the consumer protocol.
        """
        group = step.group
        holder = group.static_member(instance_id)
        if not create:
            if holder is None:
                raise UnknownMemberId(f"Instance id {instance_id} is unknown.")
            check_instance(holder, member_id)
            if request is not None:
                _check_epoch(holder, request)
            return holder
        if holder is None:
            return self.dynamic_member(group, member_id, create=True)
        if request is not None and holder.classic is None and holder.epoch != LEAVING_STATIC:
            raise UnreleasedInstanceId(
                f"Static member {member_id} with instance id {instance_id} cannot join: {holder.member_id} has not left."
            )
        new = replace(holder, member_id=member_id, epoch=0, previous_epoch=0)
        step.replaced = holder
        step.records += changes.member_tombstones(group.group_id, holder.member_id)
        step.records += (
            changes.subscription(group.group_id, new),
            changes.target(group.group_id, member_id, group.target.get(holder.member_id, NO_PARTITIONS)),
            changes.current_assignment(group.group_id, new),
        )
        return new

    def advance(
        self,
        step: Step,
        before: ConsumerMember,
        member: ConsumerMember,
        owned: Partitions | None,
        may_describe: Callable[[str], bool] | None = None,
    ) -> ConsumerMember:
        """Record the member's changes, renew the target assignment if that is due, and reconcile the member."""
        now_ms = self.around.clock.now_ms()
        changed = step.note_member(before, member)
        regex = self.regexes.changed(step, before, member, may_describe)
        epoch = step.note_epoch(member, bump=changed or regex.resolved, now_ms=now_ms)
        target_epoch, target = step.renew_target(member, epoch, now_ms)
        changed = changed or regex.changed
        return step.reconcile(member, target_epoch, target, owned, subscription_changed=changed)

    def finish(self, step: Step, answer: HeartbeatAnswer) -> asyncio.Future[HeartbeatAnswer]:
        """Write the records that the operation collected."""
        future: asyncio.Future[HeartbeatAnswer] = self.around.clock.create_future()
        change = self.change(step.records)
        if step.upgraded is not None:
            change = self.migration.upgrade(step.upgraded, change)
        answer_when(self.write(step.group.group_id, change), future, answer)
        if step.moved is not None:
            self.watch_revocation(step.group.group_id, step.moved)
        return future

    # -- leave and expire -------------------------------------------------------------------------------------------

    def _leave(self, request: ConsumerHeartbeat) -> asyncio.Future[HeartbeatAnswer]:
        group = self.around.groups.find(request.group_id, ConsumerGroup)
        if request.instance_id is None:
            member = group.member(request.member_id)
        else:
            holder = group.static_member(request.instance_id)
            if holder is None:
                raise UnknownMemberId(f"Instance id {request.instance_id} is unknown.")
            check_instance(holder, request.member_id)
            member = holder
        logger.info("member leaves", group=group.group_id, member=member.member_id, epoch=request.epoch)
        answer = HeartbeatAnswer(member.member_id, request.epoch)
        if request.epoch == LEAVING_STATIC and request.instance_id is not None:
            # It keeps its assignment until its session expires, for its replacement.
            away = replace(
                member,
                epoch=LEAVING_STATIC,
                assigned={topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()},
                revoking={},
            )
            return self.commit_answer(group, [changes.current_assignment(group.group_id, away)], answer)
        future: asyncio.Future[HeartbeatAnswer] = self.around.clock.create_future()
        answer_when(self.write(group.group_id, self.removal(group, [member])), future, answer)
        return future

    def commit_answer(
        self, group: ConsumerGroup, records: Sequence[Record], answer: HeartbeatAnswer
    ) -> asyncio.Future[HeartbeatAnswer]:
        return self.commit(group.group_id, records, answer)

    def removal(self, group: ConsumerGroup, gone: Collection[ConsumerMember]) -> Change:
        """Remove members. If only members of the classic protocol remain, the group becomes a classic one again."""
        if not gone:
            return self.change([])
        ids = {member.member_id for member in gone}
        left = {member_id: member for member_id, member in group.members.items() if member_id not in ids}
        if self.migration.may_downgrade(group, left):
            return self.migration.downgrade(group, left, "the last member of the consumer protocol left")
        records: list[Record] = []
        for member_id in ids:
            records += changes.member_tombstones(group.group_id, member_id)
        kept = group.expressions(left.values())
        unused = [expression for expression in group.expressions(gone) if not kept[expression]]
        records += (changes.no_regex(group.group_id, name) for name in unused)
        regexes = {name: resolved for name, resolved in group.regexes.items() if name not in unused}
        new_hash = metadata_hash(group.names_of(left.values(), regexes), self.around.topics)
        records.append(changes.group_epoch(group.group_id, group.epoch + 1, new_hash))
        change = self.change(records)

        def follow() -> None:
            change.follow()
            for member_id in ids:
                self.cancel_timers(group.group_id, member_id)

        return Change(change.entries, follow)

    def fence(self, group_id: str, member_id: str, reason: str) -> None:
        """Remove a member that timed out, if it still exists."""
        group = self.around.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
        if not isinstance(group, ConsumerGroup) or member is None:
            return
        logger.info("member fenced", group=group_id, member=member_id, reason=reason)
        self.write_by_timer(group_id, self.removal(group, [member]))

    # -- timers ----------------------------------------------------------------------------------------------------

    def restart_session(self, group_id: str, member: ConsumerMember) -> None:
        timeout_ms = (
            self.around.settings(group_id).consumer_session_timeout_ms
            if member.classic is None
            else member.classic.session_timeout_ms
        )
        member_id = member.member_id
        self.later(SESSION, group_id, member_id, timeout_ms, lambda: self.fence(group_id, member_id, "session expired"))

    def watch_revocation(self, group_id: str, member: ConsumerMember) -> None:
        """Fence a member that does not release its partitions in time."""
        if member.state is not MemberState.UNREVOKED:
            self.timers.cancel((REVOCATION, group_id, member.member_id))
            return
        member_id, epoch = member.member_id, member.epoch

        def check() -> None:
            group = self.around.groups.get(group_id)
            present = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
            if present is not None and present.epoch == epoch:
                self.fence(group_id, member_id, "it did not give up its partitions in time")

        self.later(REVOCATION, group_id, member_id, member.rebalance_timeout_ms, check)

    def cancel_timers(self, group_id: str, member_id: str) -> None:
        for purpose in (SESSION, REVOCATION, "join", "sync"):
            self.timers.cancel((purpose, group_id, member_id))

    # -- the log ---------------------------------------------------------------------------------------------------

    def replay(self, key: GroupRecordKey, value: RecordValue | None) -> None:
        replay(self.around.groups, key, value)

    def loaded(self, group: ConsumerGroup) -> None:
        for member in group.members.values():
            self.restart_session(group.group_id, member)
            if member.classic is None:
                self.watch_revocation(group.group_id, member)


def check_instance(holder: ConsumerMember, member_id: str) -> None:
    if holder.member_id != member_id:
        raise FencedInstanceId(
            f"Member {member_id} with instance id {holder.instance_id} was fenced by member {holder.member_id}."
        )


def _check_epoch(member: ConsumerMember, request: ConsumerHeartbeat) -> None:
    """A member may be one epoch behind if it missed the last answer and has nothing beyond its assignment."""
    if request.epoch in (JOINING, member.epoch):
        return
    behind = request.epoch < member.epoch
    if behind and request.epoch == member.previous_epoch and _is_subset(request.owned, member.assigned):
        return
    raise FencedMemberEpoch(
        f"The consumer group member has a {'smaller' if behind else 'greater'} member epoch ({request.epoch}) than the one "
        f"known by the group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )


def _is_subset(owned: Partitions | None, assigned: Epochs) -> bool:
    if owned is None:
        return False
    return all(partitions <= assigned.get(topic_id, {}).keys() for topic_id, partitions in owned.items())
