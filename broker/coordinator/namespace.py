"""The namespace of group ids, shared by classic, consumer, share and streams groups.

An id names one group at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, TypeVar
from uuid import UUID

from broker.errors import BrokerError, GroupIdNotFound, InvalidGroupId

if TYPE_CHECKING:
    from broker.coordinator.committed_offset import CommittedOffset
    from broker.coordinator.state_log import Entry

__all__ = ["AnyGroup", "CommitCheck", "GroupNamespace", "GroupType"]


class GroupType(Enum):
    """Kafka's names of its rebalance protocols."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


CommitCheck = Callable[[str, UUID | None, int], BrokerError | None]
"""Checks whether a member may commit an offset for a partition, by topic name, topic id and partition number."""


class AnyGroup(ABC):
    """The interface that all group types offer to the coordinator."""

    __slots__ = ()
    group_id: str
    group_type: ClassVar[GroupType]

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state as clients see it."""

    @property
    @abstractmethod
    def kind_of_members(self) -> str:
        """The protocol type that ListGroups shows, for example consumer, connect or share."""

    @property
    @abstractmethod
    def is_empty(self) -> bool: ...

    @property
    def expires(self) -> bool:
        """Whether the group is removed once it is empty and has no offsets."""
        return True

    @abstractmethod
    def subscribes_to(self, topic: str) -> bool: ...

    @abstractmethod
    def commit_check(
        self, member_id: str, instance_id: str | None, epoch: int, *, version: int, transactional: bool = False
    ) -> CommitCheck | None:
        """Raise the error if this member may not commit offsets; else return the check to run for each partition, if
        any.

        ``version`` is that of OffsetCommit.
        """

    @abstractmethod
    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Raise the error if this member may not read committed offsets.

        Callers without a member (None, or an epoch below 0) always may.
        """

    @abstractmethod
    def check_offset_delete(self) -> None:
        """Raise the error if an administrator may not delete offsets of topics that the group does not subscribe to."""

    @abstractmethod
    def check_delete(self) -> None:
        """Raise the error if an administrator may not delete the group (GroupNotEmpty)."""

    @abstractmethod
    def tombstones(self) -> list[Entry]:
        """The tombstones that delete the group from the log, without its offsets."""

    @abstractmethod
    def offset_expiry(self) -> Callable[[CommittedOffset], int] | None:
        """The time from which an offset's retention counts, in milliseconds since 1970; None if no offset expires."""


G = TypeVar("G", bound=AnyGroup)


class GroupNamespace:
    """All groups by id."""

    def __init__(self) -> None:
        self._groups: dict[str, AnyGroup] = {}

    def get(self, group_id: str) -> AnyGroup | None:
        return self._groups.get(group_id)

    def find(self, group_id: str, kind: type[G]) -> G:
        """The group of this id and class. Raises GroupIdNotFound if there is none, or if it has another type.

        Raises InvalidGroupId for the empty id.
        """
        if not group_id:
            raise InvalidGroupId("The group id is empty.")
        group = self._groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, kind):
            raise GroupIdNotFound(
                f"Group {group_id} is not a {kind.group_type.value} group: it is a {group.group_type.value} group."
            )
        return group

    def of_type(self, kind: type[G]) -> list[G]:
        return [group for group in self._groups.values() if isinstance(group, kind)]

    def put(self, group: AnyGroup) -> None:
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        self._groups.pop(group_id, None)

    def clear(self) -> None:
        self._groups.clear()

    def __iter__(self) -> Iterator[AnyGroup]:
        """All groups. The loop body may change the namespace."""
        return iter(list(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups
