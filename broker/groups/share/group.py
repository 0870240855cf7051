"""A share group: its members, and the partitions it has state for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Never
from uuid import UUID

from broker.coordinator.committed_offset import CommittedOffset
from broker.coordinator.namespace import GroupType
from broker.coordinator.state_log import Entry
from broker.errors import GroupIdNotFound
from broker.groups.modern.group import ModernGroup
from broker.groups.modern.member import Partitions
from broker.groups.modern.records import encode_entry
from broker.groups.share import changes
from broker.groups.share.member import ShareMember
from broker.groups.share.values import TopicState

__all__ = ["ShareGroup"]


class ShareGroup(ModernGroup[ShareMember, Partitions]):
    """A group.

    Topics in ``initializing`` are getting state, those in ``initialized`` have it, those in ``deleting`` are losing it.
    """

    __slots__ = ("deleting", "initialized", "initializing")
    group_type: ClassVar[GroupType] = GroupType.SHARE

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.initializing: Mapping[UUID, TopicState] = {}
        self.initialized: Mapping[UUID, TopicState] = {}
        self.deleting: Mapping[UUID, str] = {}

    @property
    def state_name(self) -> str:
        return "Stable" if self.members else "Empty"

    @property
    def kind_of_members(self) -> str:
        return "share"

    @property
    def expires(self) -> bool:
        return False

    @property
    def awaits_assignment(self) -> bool:
        """Whether partitions have state now but are not assigned to any member yet."""
        if self.is_empty:
            return False
        assigned: dict[UUID, frozenset[int]] = {}
        for partitions in self.target.values():
            for topic_id, numbers in partitions.items():
                assigned[topic_id] = assigned.get(topic_id, frozenset()) | numbers
        return any(
            state.name in self.subscribed_topics and assigned.get(topic_id) != state.partitions
            for topic_id, state in self.initialized.items()
        )

    def _refuse_offsets(self) -> Never:
        raise GroupIdNotFound(f"Group {self.group_id} is not a consumer group.")

    def commit_check(
        self, member_id: str, instance_id: str | None, epoch: int, *, version: int, transactional: bool = False
    ) -> Never:
        self._refuse_offsets()

    def check_fetch(self, member_id: str | None, epoch: int) -> Never:
        self._refuse_offsets()

    def check_offset_delete(self) -> Never:
        self._refuse_offsets()

    def offset_expiry(self) -> Callable[[CommittedOffset], int] | None:
        return None

    def tombstones(self) -> list[Entry]:
        return [encode_entry(record) for record in changes.group_tombstones(self.group_id, self.members)]
