"""One operation on a consumer group: the changes of a member, of the group's epoch, of its target assignment."""

from __future__ import annotations

from broker.groups.classic.group import Group
from broker.groups.consumer import changes
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerMember
from broker.groups.consumer.reconciliation import Reconciliation, reconcile
from broker.groups.modern.assignors import CONSUMER_ASSIGNORS
from broker.groups.modern.group import NO_PARTITIONS, metadata_hash
from broker.groups.modern.member import Partitions
from broker.groups.modern.records import Record
from broker.groups.modern.service import METADATA_REFRESH_INTERVAL_MS, Surroundings
from broker.groups.modern.target import may_assign, target_assignment
from tidegate.kit.logs import get_logger

__all__ = ["Step"]

logger = get_logger(__name__)


class Step:
    """One operation on a group: its input, and the records that it collects for the log."""

    __slots__ = ("_around", "group", "moved", "records", "replaced", "upgraded")

    def __init__(self, around: Surroundings, group: ConsumerGroup) -> None:
        self._around = around
        self.group = group
        self.records: list[Record] = []
        self.replaced: ConsumerMember | None = None
        """The static member that this operation's member replaces."""
        self.upgraded: Group | None = None
        """The classic group that this group was until now."""
        self.moved: ConsumerMember | None = None
        """The member, if reconciliation changed it."""

    def members_with(self, member: ConsumerMember) -> dict[str, ConsumerMember]:
        """All members, in their state after the operation."""
        members = {**self.group.members, member.member_id: member}
        if self.replaced is not None and self.replaced.member_id != member.member_id:
            members.pop(self.replaced.member_id, None)
        return members

    def note_member(self, before: ConsumerMember, member: ConsumerMember) -> bool:
        """Record the member's identity and subscription if they changed.

        Returns whether it subscribes to other names.
        """
        if member == before and (member.member_id in self.group.members or self.replaced is not None):
            return False
        self.records.append(changes.subscription(self.group.group_id, member))
        return member.topics != before.topics

    def note_epoch(self, member: ConsumerMember, *, bump: bool, now_ms: int) -> int:
        """The group's epoch; the next one if members' subscriptions or the topics themselves changed."""
        group = self.group
        if not bump and not group.is_refresh_due(now_ms):
            return group.epoch
        members = self.members_with(member)
        kept = group.expressions(members.values())
        regexes = {expression: resolved for expression, resolved in group.regexes.items() if kept[expression]}
        new_hash = metadata_hash(group.names_of(members.values(), regexes), self._around.topics)
        epoch = group.epoch
        if bump or new_hash != group.metadata_hash:
            epoch += 1
            self.records.append(changes.group_epoch(group.group_id, epoch, new_hash))
            logger.info("group epoch", group=group.group_id, epoch=epoch)
        if group.had_subscription_record:
            self.records.append(changes.no_subscription_record(group.group_id))
        group.refresh_at(now_ms + METADATA_REFRESH_INTERVAL_MS, epoch)
        return epoch

    def renew_target(self, member: ConsumerMember, epoch: int, now_ms: int) -> tuple[int, Partitions]:
        """The epoch of the target assignment, and the member's part of it."""
        group = self.group
        heir_of = self.replaced.member_id if self.replaced is not None else member.member_id
        present = group.target.get(heir_of, NO_PARTITIONS)
        interval_ms = self._around.settings(group.group_id).consumer_assignment_interval_ms
        if group.assignment_epoch >= epoch or not may_assign(group.assigned_at_ms, interval_ms, now_ms):
            return group.assignment_epoch, present
        members = self.members_with(member)
        preferred = group.preferred_assignor(members.values()) or self._around.config.consumer_assignors[0]
        targets = target_assignment(
            group,
            {member_id: group.subscription(item) for member_id, item in members.items()},
            members,
            CONSUMER_ASSIGNORS[preferred],
            self._around.topics,
            homogeneous=group.is_homogeneous(members),
            replaced={member.member_id: heir_of},
        )
        for member_id, partitions in targets.items():
            if partitions != group.target.get(member_id):
                self.records.append(changes.target(group.group_id, member_id, partitions))
        self.records.append(changes.assignment_epoch(group.group_id, epoch, now_ms))
        logger.info("target assignment", group=group.group_id, epoch=epoch, assignor=preferred)
        return epoch, targets[member.member_id]

    def reconcile(
        self,
        member: ConsumerMember,
        target_epoch: int,
        target: Partitions,
        owned: Partitions | None,
        *,
        subscription_changed: bool,
    ) -> ConsumerMember:
        """Reconcile a member by one step. Partitions to release must be released in time."""
        group = self.group
        if not subscription_changed and member.is_reconciled_to(target_epoch):
            return member
        topics = (self._around.topics.by_name(name) for name in group.subscription(member))
        way = Reconciliation(
            target_epoch,
            target,
            frozenset(topic.id for topic in topics if topic is not None),
            subscription_changed,
            group.owner_epoch,
            owned,
        )
        after = reconcile(member, way)
        if after == member:
            return member
        self.records.append(changes.current_assignment(group.group_id, after))
        self.moved = after
        return after
