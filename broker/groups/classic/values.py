"""Requests and results of classic groups: plain values, independent of the wire format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from broker.errors import BrokerError, MemberIdRequired

__all__ = [
    "DescribedGroup",
    "DescribedMember",
    "GroupState",
    "JoinRequest",
    "Joined",
    "JoinedMember",
    "Leaving",
    "Left",
    "MemberIdAssigned",
    "Synced",
]


class GroupState(Enum):
    """The states of a classic group. The values are the names that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class MemberIdAssigned(MemberIdRequired):
    """A dynamic member joined without an id and has to join again with ``member_id`` (KIP-394)."""

    def __init__(self, member_id: str) -> None:
        super().__init__(f"Join again with the member id {member_id}.")
        self.member_id = member_id


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """A member's request to join a group.

    ``protocols`` maps the names of the member's assignors (or the alternatives of another protocol type) to metadata,
    preferred first. ``member_id`` is empty for a new member.
    """

    protocol_type: str
    protocols: Mapping[str, bytes]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str = ""
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    requires_known_member_id: bool = True
    """Whether a new member gets its id in an error and has to join again with it (JoinGroup v4 and later)."""
    supports_skipping_assignment: bool = True
    """Whether the member understands ``Joined.skip_assignment`` (JoinGroup v9 and later)."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member as its leader sees it, with the metadata of the chosen protocol."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The member's generation. Only the leader gets ``members``; it answers with their assignments."""

    member_id: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class Synced:
    """The assignment that the leader made for a member."""

    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes


@dataclass(frozen=True, slots=True)
class Leaving:
    """A member that leaves, by its id, or an instance that somebody else removes (``member_id`` is empty then)."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """The result of one ``Leaving``."""

    member_id: str
    instance_id: str | None
    error: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member of a described group. ``metadata`` is empty unless the group is stable."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group with its members. For a group that does not exist ``error`` is GroupIdNotFound and the state Dead.

    DescribeGroups below version 6 shows only the state.
    """

    group_id: str
    state: GroupState
    protocol_type: str = ""
    protocol_name: str = ""
    members: tuple[DescribedMember, ...] = ()
    error: BrokerError | None = None
