"""A streams group: the members of a Kafka Streams application, its topology, and the assignment of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar
from uuid import UUID

from broker.coordinator.namespace import CommitCheck, GroupType
from broker.coordinator.state_log import Entry
from broker.errors import BrokerError, StaleMemberEpoch, UnknownMemberId, UnsupportedVersion
from broker.groups.modern.group import ModernGroup
from broker.groups.modern.records import encode_entry
from broker.groups.streams.changes import group_tombstones
from broker.groups.streams.configured import ConfiguredTopology
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.records import StreamsGroupTopologyValue
from broker.groups.streams.tasks import TasksByRole
from broker.groups.streams.topology import required_topics, source_topics

__all__ = ["NOT_VALIDATED", "StreamsGroup"]

NOT_VALIDATED = -1


class StreamsGroup(ModernGroup[StreamsMember, TasksByRole]):
    """A group.

    ``configured`` is the topology configured for the existing topics; it is recomputed, not stored in the log.
    """

    __slots__ = (
        "_active_owners", "_copy_owners", "assignment_configs", "configured", "endpoint_epoch", "shutdown_by", "topology",
        "validated_epoch",
    )  # fmt: skip
    group_type: ClassVar[GroupType] = GroupType.STREAMS

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.topology: StreamsGroupTopologyValue | None = None
        self.validated_epoch = 0
        """The epoch of the topology of the last task assignment."""
        self.assignment_configs: Mapping[str, str] = {}
        self.configured: ConfiguredTopology | None = None
        self.endpoint_epoch = 0
        self.shutdown_by: str | None = None
        """The member that requested the shutdown of the whole application."""
        self._active_owners: dict[tuple[str, int], str] = {}
        self._copy_owners: dict[tuple[str, int], list[str]] = {}

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return "NotReady"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        reconciled = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return "Stable" if reconciled else "Reconciling"

    @property
    def kind_of_members(self) -> str:
        return "streams"

    # Topics

    def subscribed_by(self, members: Mapping[str, StreamsMember]) -> frozenset[str]:
        return frozenset() if self.topology is None else required_topics(self.topology)

    def subscribes_to(self, topic: str) -> bool:
        """Whether offsets of a topic are still needed: those of source topics, while the group has members."""
        if self.topology is None or not self.members:
            return False
        return any(topic in source_topics(subtopology) for subtopology in self.topology.subtopologies)

    # Members

    def put_member(self, member: StreamsMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._release(before)
        super().put_member(member)
        for task in _active(member):
            self._active_owners[task] = member.process_id
        for task in _copies(member):
            self._copy_owners.setdefault(task, []).append(member.process_id)

    def remove_member(self, member_id: str) -> StreamsMember | None:
        member = super().remove_member(member_id)
        if member is not None:
            self._release(member)
        if not self.members:
            self.shutdown_by = None
        return member

    def _release(self, member: StreamsMember) -> None:
        for task in _active(member):
            if self._active_owners.get(task) == member.process_id:
                del self._active_owners[task]
        for task in _copies(member):
            owners = self._copy_owners.get(task, [])
            if member.process_id in owners:
                owners.remove(member.process_id)
            if not owners:
                self._copy_owners.pop(task, None)

    def active_at(self, task: tuple[str, int]) -> str | None:
        """The process that works on a task or has not released it yet."""
        return self._active_owners.get(task)

    def has_copy(self, task: tuple[str, int], process_id: str) -> bool:
        return process_id in self._copy_owners.get(task, ())

    # Permission to commit and read offsets

    def commit_check(
        self, member_id: str, instance_id: str | None, epoch: int, *, version: int, transactional: bool = False
    ) -> CommitCheck | None:
        """A member may commit at its current epoch; at an earlier one only for tasks it was assigned by then."""
        if epoch < 0 and not self.members:
            return None
        if transactional and epoch < 0 and not member_id and instance_id is None:
            return None
        member = self.member(member_id)
        if not transactional and version < 9:
            raise UnsupportedVersion("OffsetCommit version 9 or above must be used by members of the streams protocol.")
        if epoch == member.epoch:
            return None
        if epoch > member.epoch:
            raise StaleMemberEpoch(f"Member {member_id} commits at epoch {epoch}; it is at {member.epoch}.")

        def check(topic: str, _: UUID | None, partition: int) -> BrokerError | None:
            since = self._assigned_since(member, topic, partition)
            if since is None:
                return StaleMemberEpoch(f"No task of member {member_id} reads {topic}-{partition}.")
            if epoch < since:
                return StaleMemberEpoch(f"{topic}-{partition} was assigned to member {member_id} in epoch {since}.")
            return None

        return check

    def _assigned_since(self, member: StreamsMember, topic: str, partition: int) -> int | None:
        for subtopology in self.topology.subtopologies if self.topology is not None else ():
            if topic not in source_topics(subtopology):
                continue
            for tasks in (member.assigned.active, member.revoking.active):
                epoch = tasks.get(subtopology.subtopology_id, {}).get(partition)
                if epoch is not None:
                    return epoch
        return None

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is None and epoch < 0:
            return
        member = self.members.get(member_id or "")
        if member is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        if epoch != member.epoch:
            raise StaleMemberEpoch(f"Member {member_id} reads at epoch {epoch}; it is at {member.epoch}.")

    def check_offset_delete(self) -> None:
        """Always allowed: the topics its members read are known."""

    def tombstones(self) -> list[Entry]:
        return [encode_entry(record) for record in group_tombstones(self.group_id, self.members)]


def _active(member: StreamsMember) -> Iterator[tuple[str, int]]:
    for tasks in (member.assigned.active, member.revoking.active):
        for subtopology, partitions in tasks.items():
            for partition in partitions:
                yield subtopology, partition


def _copies(member: StreamsMember) -> Iterator[tuple[str, int]]:
    for has in (member.assigned, member.revoking):
        for tasks in (has.standby, has.warmup):
            for subtopology, partitions in tasks.items():
                for partition in partitions:
                    yield subtopology, partition
