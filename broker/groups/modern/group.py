"""A group whose assignments the coordinator computes: its epochs, members and target assignment. No clock, no log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeVar
from uuid import UUID

from broker.coordinator.committed_offset import CommittedOffset
from broker.coordinator.namespace import AnyGroup
from broker.errors import GroupNotEmpty, UnknownMemberId
from broker.groups.modern.member import ModernMember, Partitions
from broker.groups.modern.topics import TopicCatalog, group_hash, topic_hash

__all__ = ["DELETED_EPOCH", "FIRST_EPOCH", "NO_PARTITIONS", "ModernGroup", "PartitionGroup", "metadata_hash"]

FIRST_EPOCH: Final = 1
"""The epoch and assignment epoch of a group that no member has joined yet."""
DELETED_EPOCH: Final = -1
"""The assignment epoch after its record was deleted; the group's tombstone follows."""
NO_PARTITIONS: Final[Partitions] = {}

M = TypeVar("M", bound=ModernMember)
T = TypeVar("T")


class ModernGroup(AnyGroup, Generic[M, T]):
    """Members of class ``M``, each with a target assignment of class ``T``.

    The group epoch grows when an input of the assignment changes. The assignment epoch is the group epoch that the
    target assignment was computed for. A member's epoch is the assignment epoch that it was reconciled to.

    Only records change groups (``GroupService.replay``), so that memory equals the log.
    """

    __slots__ = (
        "_subscribed",
        "assigned_at_ms",
        "assignment_epoch",
        "epoch",
        "group_id",
        "members",
        "metadata_hash",
        "refresh_deadline_ms",
        "refresh_epoch",
        "target",
    )

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assigned_at_ms = 0
        """When the target assignment was computed; 0 if unknown."""
        self.members: dict[str, M] = {}
        self.target: dict[str, T] = {}
        self.refresh_deadline_ms = 0
        self.refresh_epoch = 0
        self._subscribed: frozenset[str] | None = None

    @property
    def is_empty(self) -> bool:
        return not self.members

    # Members

    def member(self, member_id: str) -> M:
        """Raises UnknownMemberId."""
        result = self.members.get(member_id)
        if result is None:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return result

    def put_member(self, member: M) -> None:
        self.members[member.member_id] = member
        self._subscribed = None

    def remove_member(self, member_id: str) -> M | None:
        self._subscribed = None
        return self.members.pop(member_id, None)

    def subscribed_by(self, members: Mapping[str, M]) -> frozenset[str]:
        """The names of the topics that the group would subscribe to with exactly these members."""
        return frozenset().union(*(member.topics for member in members.values()))

    @property
    def subscribed_topics(self) -> frozenset[str]:
        if self._subscribed is None:
            self._subscribed = self.subscribed_by(self.members)
        return self._subscribed

    def subscriptions_changed(self) -> None:
        """Called when something other than members changed that ``subscribed_by`` depends on."""
        self._subscribed = None

    def subscribes_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics

    # Target assignment

    def put_target(self, member_id: str, target: T) -> None:
        self.target[member_id] = target

    def remove_target(self, member_id: str) -> None:
        self.target.pop(member_id, None)

    # Topics it subscribes to

    def refresh_at(self, deadline_ms: int, epoch: int) -> None:
        """Check the topics again at this time; sooner if the group has not reached ``epoch`` by then."""
        self.refresh_deadline_ms, self.refresh_epoch = deadline_ms, epoch

    def refresh_soon(self) -> None:
        """A topic changed: check topics at the next heartbeat."""
        self.refresh_deadline_ms = self.refresh_epoch = 0

    def is_refresh_due(self, now_ms: int) -> bool:
        return now_ms >= self.refresh_deadline_ms or self.epoch < self.refresh_epoch

    # The interface of AnyGroup

    def check_delete(self) -> None:
        if not self.is_empty:
            raise GroupNotEmpty(f"Group {self.group_id} has {len(self.members)} members.")

    def offset_expiry(self) -> Callable[[CommittedOffset], int] | None:
        return lambda committed: committed.commit_timestamp_ms


class PartitionGroup(ModernGroup[M, Partitions]):
    """A group whose members are assigned partitions.

    ``owners`` maps each partition to its owner in the target assignment.
    """

    __slots__ = ("owners",)

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.owners: dict[UUID, dict[int, str]] = {}

    def put_target(self, member_id: str, target: Partitions) -> None:
        before = self.target.get(member_id, NO_PARTITIONS)
        for topic_id in before.keys() | target.keys():
            self._record_owners(
                member_id, topic_id, before.get(topic_id, frozenset()), target.get(topic_id, frozenset())
            )
        super().put_target(member_id, target)

    def remove_target(self, member_id: str) -> None:
        for topic_id, partitions in self.target.get(member_id, NO_PARTITIONS).items():
            self._record_owners(member_id, topic_id, partitions, frozenset())
        super().remove_target(member_id)

    def _record_owners(self, member_id: str, topic_id: UUID, before: frozenset[int], after: frozenset[int]) -> None:
        owners = self.owners.setdefault(topic_id, {})
        for partition in before - after:
            # The new owner's record may come first.
            if owners.get(partition) == member_id:
                del owners[partition]
        for partition in after - before:
            owners[partition] = member_id
        if not owners:
            del self.owners[topic_id]


def metadata_hash(names: frozenset[str], topics: TopicCatalog) -> int:
    """A hash of those topics that exist. If it changes, assignments have to be recomputed."""
    result = (topics.by_name(name) for name in names)
    return group_hash((topic.name, topic_hash(topic)) for topic in result if topic is not None)
