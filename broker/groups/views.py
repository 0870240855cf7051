"""Groups as an administrator sees them: lists and descriptions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from broker.coordinator.namespace import AnyGroup
from broker.errors import GroupIdNotFound
from broker.groups.classic.group import Group
from broker.groups.classic.values import DescribedGroup, DescribedMember, GroupState

__all__ = ["ListedGroup", "described", "listed"]


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in a list. ``group_type`` is Kafka's name for its rebalance protocol."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str = "classic"


def listed(groups: Iterable[AnyGroup], states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
    """The groups in one of ``states`` and of one of ``types`` (case-insensitive names). An empty filter matches all."""
    wanted_states = {state.lower() for state in states}
    wanted_types = {kind.lower() for kind in types}
    every = (
        ListedGroup(group.group_id, group.kind_of_members, group.state_name, group.group_type.value) for group in groups
    )
    return [
        group
        for group in every
        if (not wanted_states or group.state.lower() in wanted_states)
        and (not wanted_types or group.group_type in wanted_types)
    ]


def described(group_id: str, group: AnyGroup | None) -> DescribedGroup:
    """A classic group with its members. Their metadata is shown in Stable only: earlier no protocol is chosen."""
    if not isinstance(group, Group):
        what = "There is no group" if group is None else f"Not a classic but a {group.group_type.value} group is"
        error = GroupIdNotFound(f"{what} {group_id}.")
        return DescribedGroup(group_id, GroupState.DEAD, error=error)
    protocol = (group.protocol_name or "") if group.state is GroupState.STABLE else ""
    members = tuple(
        DescribedMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.protocols.get(protocol, b""),
            member.assignment,
        )
        for member in group.members.values()
    )
    return DescribedGroup(group_id, group.state, group.protocol_type or "", protocol, members)
