"""Writes a classic group's generation to the log."""

from __future__ import annotations

import asyncio

from broker.coordinator.journal import GroupJournal
from broker.coordinator.state_log import Entry
from broker.groups.classic.group import Group
from broker.groups.records import GroupMetadataValue, MemberMetadata, encode_group, encode_group_key

__all__ = ["generation_entry", "write_generation"]


def write_generation(
    journal: GroupJournal, group: Group, assignments: dict[str, bytes] | None = None
) -> asyncio.Future[None]:
    """Write the group's generation, with ``assignments`` or with the members' current ones."""
    return journal.append(group.group_id, [generation_entry(group, assignments)])


def generation_entry(group: Group, assignments: dict[str, bytes] | None = None) -> Entry:
    """The record of a classic group's generation, with ``assignments`` or with the members' current ones."""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader,
        current_state_timestamp=group.state_since_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.protocols.get(group.protocol_name or "", b""),
                assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return encode_group_key(group.group_id), encode_group(value)
