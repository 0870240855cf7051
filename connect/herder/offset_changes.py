"""Changing how far a stopped connector has come (KIP-875): of sources in their offset topic, of sinks in their group."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from connect.api import ConnectError
from connect.errors import BadRequest

if TYPE_CHECKING:
    from broker.client import Admin, TopicPartition

__all__ = [
    "SinkOffsets",
    "alter_sink",
    "as_changes",
    "done_message",
    "parsed_sink_offsets",
    "require_in_log",
    "reset_sink",
]

_TOPIC, _PARTITION, _OFFSET = "kafka_topic", "kafka_partition", "kafka_offset"
_IN_USE: Final = (
    "Failed to {verb} consumer group offsets for connector {name} either because its tasks haven't stopped completely yet or "
    "the connector was resumed before the request to {verb} its offsets could be successfully completed. If the connector "
    "is in a stopped state, this operation can be safely retried. If it doesn't eventually succeed, the Connect cluster may "
    "need to be restarted to get rid of the zombie sink tasks."
)

Changes: TypeAlias = Sequence[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]
SinkOffsets: TypeAlias = "Mapping[TopicPartition, int | None]"


def done_message(*, reset: bool, by_connector: bool) -> str:
    """``by_connector``: the connector said that the positions will be in force."""
    what = "reset" if reset else "altered"
    if by_connector:
        return f"The offsets for this connector have been {what} successfully"
    return (
        f"The Connect framework-managed offsets for this connector have been {what} successfully. However, if this connector "
        f"manages offsets externally, they will need to be manually {what} in the system that the connector uses."
    )


def as_changes(body: Any) -> Changes:
    """The body of a PATCH of offsets. Raises BadRequest."""
    if not isinstance(body, dict):
        raise BadRequest('Offsets are given as {"offsets": [{"partition": {...}, "offset": {...}}]}')
    unknown = sorted(set(body) - {"offsets"})
    if unknown:
        raise BadRequest(f'Unrecognized field "{unknown[0]}"; known properties: "offsets"')
    entries = body.get("offsets")
    if not entries:
        raise BadRequest("Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadRequest('offsets is a list of {"partition": {...}, "offset": {...}}')
    changes: list[tuple[Any, Any]] = []
    for entry in entries:
        partition, offset = entry.get("partition"), entry.get("offset")
        if not isinstance(partition, dict | None) or not isinstance(offset, dict | None):
            raise BadRequest(f"partition and offset are objects or null, not {entry}")
        changes.append((partition, offset))
    return changes


def parsed_sink_offsets(changes: Changes) -> SinkOffsets:
    """Positions of a sink. Raises BadRequest with Kafka Connect's words."""
    from broker.client import TopicPartition

    offsets: dict[TopicPartition, int | None] = {}
    for partition, offset in changes:
        if partition is None:
            raise BadRequest("The partition for a sink connector offset cannot be null or missing")
        if _TOPIC not in partition or _PARTITION not in partition:
            raise BadRequest(
                f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and '{_PARTITION}'"
            )
        number = _whole(partition[_PARTITION], "partition", "Partition")
        topic_partition = TopicPartition(str(partition[_TOPIC]), number)
        if offset is None:
            offsets[topic_partition] = None
            continue
        if _OFFSET not in offset:
            raise BadRequest(f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'")
        offsets[topic_partition] = _whole(offset[_OFFSET], "offset", "Offset")
    return offsets


def _whole(value: Any, what: str, title: str) -> int:
    try:
        number = int(str(value))  # a number, or its digits in a text
    except ValueError as error:
        raise BadRequest(
            f"Failed to parse the following Kafka {what} value in the provided offsets: '{value}'. {title} values for sink "
            "connectors need to be integers."
        ) from error
    if number < 0:
        raise BadRequest(f"The Kafka {what} value in the provided offsets is {number}: it cannot be negative")
    return number


async def require_in_log(admin: Admin, offsets: SinkOffsets) -> None:
    """Raises BadRequest for a position in a partition that does not exist, or beyond its end: a sink that keeps its own positions would
    pass over the records that come."""
    wanted = {partition: offset for partition, offset in offsets.items() if offset is not None}
    topics = {partition.topic for partition in wanted}.intersection(await admin.list_topics(internal=True))
    described = await admin.describe_topics(sorted(topics)) if topics else {}
    existing = {(topic.name, partition.partition) for topic in described.values() for partition in topic.partitions}
    for partition, offset in wanted.items():
        if partition not in existing:
            raise BadRequest(f"The position {offset} is for {partition}, and there is no such topic or partition")
    for partition, end in (await admin.end_offsets(wanted)).items():
        if (offset := wanted[partition]) > end:
            raise BadRequest(
                f"The position {offset} of {partition} is beyond its end, which is {end}: give {end} or less"
            )


async def alter_sink(admin: Admin, name: str, group: str, offsets: SinkOffsets) -> None:
    """Set and forget positions of a sink's group. Raises ConnectError where tasks are still in it."""
    from broker.client.errors import (
        GroupIdNotFound,
        GroupSubscribedToTopic,
        UnknownMemberId,
        UnknownTopicOrPartition,
    )

    committed = {partition: offset for partition, offset in offsets.items() if offset is not None}
    forgotten = [partition for partition, offset in offsets.items() if offset is None]
    try:
        if committed:
            await admin.alter_group_offsets(group, committed)
        if forgotten:
            with contextlib.suppress(UnknownTopicOrPartition):  # the group has no position in a topic that is gone
                await admin.delete_group_offsets(group, forgotten)
    except GroupIdNotFound:
        return  # it has no positions that could be forgotten
    except (UnknownMemberId, GroupSubscribedToTopic) as error:
        raise ConnectError(_IN_USE.format(verb="alter", name=name)) from error


async def reset_sink(admin: Admin, name: str, group: str) -> None:
    """Forget all positions of a sink's group. Raises ConnectError where tasks are still in it."""
    from broker.client.errors import GroupNotEmpty

    try:
        await admin.delete_groups([group], missing_ok=True)
    except GroupNotEmpty as error:
        raise ConnectError(_IN_USE.format(verb="reset", name=name)) from error
