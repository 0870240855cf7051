"""A consumer group: members of the consumer protocol and, during a migration, of the classic one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar
from uuid import UUID

from broker.coordinator.namespace import CommitCheck, GroupType
from broker.coordinator.state_log import Entry
from broker.errors import BrokerError, IllegalGeneration, StaleMemberEpoch, UnknownMemberId, UnsupportedVersion
from broker.groups.classic.subscription import CONSUMER
from broker.groups.consumer.changes import group_tombstones
from broker.groups.consumer.member import ConsumerMember
from broker.groups.consumer.regex import Resolved
from broker.groups.modern.group import PartitionGroup
from broker.groups.modern.member import MemberState, Partitions
from broker.groups.modern.records import encode_entry

__all__ = ["ConsumerGroup"]


class ConsumerGroup(PartitionGroup[ConsumerMember]):
    """A group.

    ``regexes`` has the topics that its members' expressions matched; an expression without an entry is unresolved.
    """

    __slots__ = ("_owner_epochs", "had_subscription_record", "regexes", "static_members")
    group_type: ClassVar[GroupType] = GroupType.CONSUMER

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.regexes: dict[str, Resolved] = {}
        self.had_subscription_record = False
        """Kafka up to 4.0 stored the topics in a record, which is deleted with the next change."""
        self._owner_epochs: dict[UUID, dict[int, int]] = {}

    # State

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        reconciled = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return "Stable" if reconciled else "Reconciling"

    @property
    def kind_of_members(self) -> str:
        return CONSUMER

    def owner_epoch(self, topic_id: UUID, partition: int) -> int:
        """The epoch of the member that has a partition or has not released it yet; -1 if it is free."""
        return self._owner_epochs.get(topic_id, {}).get(partition, -1)

    # Members

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members.get(member_id) if member_id is not None else None

    def put_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._release(before)
        super().put_member(member)
        for epochs in (member.assigned, member.revoking):
            for topic_id, partitions in epochs.items():
                owners = self._owner_epochs.setdefault(topic_id, {})
                for partition in partitions:
                    owners[partition] = member.epoch
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> ConsumerMember | None:
        member = super().remove_member(member_id)
        if member is None:
            return None
        self._release(member)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]
        return member

    def _release(self, member: ConsumerMember) -> None:
        for epochs in (member.assigned, member.revoking):
            for topic_id, partitions in epochs.items():
                owners = self._owner_epochs.get(topic_id, {})
                for partition in partitions:
                    # In the log the new owner may come first, at a later epoch.
                    if owners.get(partition) == member.epoch:
                        del owners[partition]
                if not owners:
                    self._owner_epochs.pop(topic_id, None)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether another member still has part of this member's target."""
        target: Partitions = self.target.get(member.member_id, {})
        return member.state is MemberState.UNRELEASED and any(
            partition not in member.assigned.get(topic_id, {}) and self.owner_epoch(topic_id, partition) != -1
            for topic_id, partitions in target.items()
            for partition in partitions
        )

    # Subscriptions

    def subscription(self, member: ConsumerMember, regexes: Mapping[str, Resolved] | None = None) -> frozenset[str]:
        """The names of the topics a member subscribes to, including those that its regular expression matched."""
        resolved = (self.regexes if regexes is None else regexes).get(member.regex) if member.regex else None
        return member.topics if resolved is None else member.topics | resolved.topics

    def subscribed_by(self, members: Mapping[str, ConsumerMember]) -> frozenset[str]:
        return self.names_of(members.values(), self.regexes)

    def names_of(self, members: Iterable[ConsumerMember], regexes: Mapping[str, Resolved]) -> frozenset[str]:
        return frozenset().union(*(self.subscription(member, regexes) for member in members))

    @staticmethod
    def expressions(members: Iterable[ConsumerMember]) -> Counter[str]:
        """The regular expressions that members subscribe to, with the number of subscribers."""
        return Counter(member.regex for member in members if member.regex)

    @staticmethod
    def is_homogeneous(members: Mapping[str, ConsumerMember]) -> bool:
        """Whether all members subscribe to the same names, or all to the same expression and no names."""
        if len({member.topics for member in members.values()}) > 1:
            return False
        expressions = {member.regex or "" for member in members.values()}
        return len(expressions) <= 1 and (expressions <= {""} or not any(m.topics for m in members.values()))

    def preferred_assignor(self, members: Iterable[ConsumerMember]) -> str | None:
        """The assignor that most of these members ask for."""
        votes = Counter(member.assignor for member in members if member.assignor is not None)
        return max(votes, key=votes.__getitem__) if votes else None

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member of the classic protocol with these assignors can join this group."""
        offered = set(names)
        if protocol_type != CONSUMER or not self.members:
            return protocol_type == CONSUMER and bool(offered)
        classic = [{name for name, _ in m.classic.protocols} for m in self.members.values() if m.classic is not None]
        return any(all(name in protocols for protocols in classic) for name in offered)

    # Permission to commit and read offsets

    def commit_check(
        self, member_id: str, instance_id: str | None, epoch: int, *, version: int, transactional: bool = False
    ) -> CommitCheck | None:
        """A member may commit at its current epoch; at an earlier one only for partitions it was assigned by then
        (KIP-1251).
        """
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch < 0 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and member.classic is None and version < 9:
            raise UnsupportedVersion(
                "OffsetCommit version 9 or above must be used by members of the consumer protocol."
            )
        if epoch == member.epoch:
            return None
        stale = StaleMemberEpoch if member.classic is None else IllegalGeneration
        if epoch > member.epoch:
            raise stale(f"Member {member_id} commits at epoch {epoch}; it is at {member.epoch}.")

        def check(topic: str, topic_id: UUID | None, partition: int) -> BrokerError | None:
            since = member.assignment_epoch(topic_id, partition) if topic_id is not None else None
            if since is None:
                return stale(f"{topic}-{partition} is not assigned to member {member_id}.")
            if epoch < since:
                return stale(f"{topic}-{partition} was assigned to member {member_id} in epoch {since}, after {epoch}.")
            return None

        return check

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        member = self.members.get(member_id or "")
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        if epoch != member.epoch:
            stale = StaleMemberEpoch if member.classic is None else IllegalGeneration
            raise stale(f"Member {member_id} reads at epoch {epoch}; it is at {member.epoch}.")

    def check_offset_delete(self) -> None:
        """Always allowed: the topics its members read are known."""

    def tombstones(self) -> list[Entry]:
        return [encode_entry(record) for record in group_tombstones(self.group_id, self.members, self.regexes)]
