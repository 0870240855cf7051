"""Lag of consumer groups, and their offsets moved."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.kit.config import nearest_name
from tidegate.kit.errors import UsageError
from tidegate.records.positions import Position, resolve

if TYPE_CHECKING:
    from broker.client import Admin, GroupDescription, TopicPartition

__all__ = ["OffsetMove", "group_lags", "moved_group"]


class OffsetMove(NamedTuple):
    """A partition of a group: its offset before and after, and the lag after."""

    partition: TopicPartition
    committed: int | None
    to: int
    lag: int


async def moved_group(
    admin: Admin, group: str, position: Position, partitions: Iterable[TopicPartition] | None = None, *, execute: bool
) -> list[OffsetMove]:
    """Move the offsets of a group without members, or with ``execute=False`` tell what that would do.

    Without ``partitions`` all of which it has offsets. Raises UsageError for a group with members, with nothing to move, and
    for an offset beyond the end of a partition.
    """
    description = await admin.describe_group(group)
    if execute and description.members:
        clients = ", ".join(sorted({member.client_id for member in description.members}))
        raise UsageError(f"group {group} has members ({clients}): stop them before its offsets are moved")
    is_share = description.type == "share"
    committed = await _offsets(admin, description)
    chosen = sorted(committed) if partitions is None else list(partitions)
    if not chosen:
        near = nearest_name(group, [listing.group_id for listing in await admin.list_groups()])
        hint = f", or did you mean {near}?" if near not in (None, group) else ""
        raise UsageError(f"group {group} has no offsets; name the topics that it is to read{hint}")
    moved = await resolve(admin, position, chosen, exactly=True)
    if execute:
        alter = admin.alter_share_group_offsets if is_share else admin.alter_group_offsets
        await alter(group, {p: offset for p, (_, offset, _) in moved.items()})
    return [OffsetMove(p, committed.get(p), offset, end - offset) for p, (_, offset, end) in moved.items()]


async def group_lags(
    admin: Admin, group: GroupDescription, topics: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """By partition that the group has committed offsets of or that is assigned to a member.

    Of a share group the committed offset is where the partition starts: records after it may be done, too, so that the lag is
    the most that is left. With ``topics``, which exist, only their partitions are looked at. Without a committed offset everything in the partition counts as lag: nothing of it is known to be done.
    """
    from broker.client.errors import UnsupportedVersion

    try:
        committed = await _offsets(admin, group)
    except UnsupportedVersion:  # Apache Kafka 4.0 has share groups, but tells no offsets of them
        committed = {}
    assigned = {partition for member in group.members for partition in member.partitions}
    named = {partition.topic for partition in committed.keys() | assigned}
    there = await admin.existing_topics(named) if topics is None else topics
    partitions = sorted(partition for partition in committed.keys() | assigned if partition.topic in there)
    ends, beginnings = await admin.end_offsets(partitions), await admin.beginning_offsets(partitions)
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "committed": committed.get(partition),
            "end": ends[partition],
            "lag": max(0, ends[partition] - max(committed.get(partition, 0), beginnings[partition])),
        }
        for partition in partitions
        if partition in ends
    ]


async def _offsets(admin: Admin, group: GroupDescription) -> dict[TopicPartition, int]:
    if group.type == "share":
        return await admin.share_group_offsets(group.group_id)
    return await admin.group_offsets(group.group_id)
