"""Groups and their committed offsets: the group part of Admin."""

from __future__ import annotations

import asyncio
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from aiokafka.protocol.group import LeaveGroupRequest

from broker.client.batches import TopicPartition
from broker.client.cluster import Cluster, check
from broker.client.descriptions import GroupDescription, GroupListing, MemberDescription
from broker.client.messages import MessageRequest
from broker.errors import GroupIdNotFound, UnknownMemberId, UnsupportedVersion
from broker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from broker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from broker.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

__all__ = ["GroupsAdmin"]

_OTHER_TYPES: Final[Mapping[str, tuple[type[Any], type[Any], int]]] = {
    "consumer": (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, 1),
    "streams": (StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, 0),
    "share": (ShareGroupDescribeRequest, ShareGroupDescribeResponse, 1),
}
"""The describe API of each group type: request, response and the latest version known here."""


class GroupsAdmin(Cluster):
    """Describes groups of any protocol type and changes their offsets."""

    async def list_groups(self) -> list[GroupListing]:
        """The groups of all brokers and of all types, by name."""

        async def attempt() -> list[GroupListing]:
            request = MessageRequest(ListGroupsRequest(), ListGroupsResponse, highest=5)
            answers = await asyncio.gather(
                *(self.ask(request, node=node, about="listing groups") for node in self.brokers())
            )
            group_listings = []
            for answer in answers:
                check(answer.error_code, "listing groups")
                group_listings += [
                    GroupListing(item.group_id, item.protocol_type, item.group_type.lower(), item.group_state)
                    for item in answer.groups
                ]
            return sorted(group_listings, key=lambda group: group.group_id)

        return await self.retried(attempt)

    async def remove_member(self, group_id: str, member_id: str) -> None:
        """Remove a member from a classic group at once, for a member known to be dead. Does nothing if it is gone."""
        about = f"removing member {member_id} from group {group_id}"

        async def attempt() -> None:
            answer = await self.ask_coordinator(group_id, LeaveGroupRequest(group_id, member_id), about=about)
            if answer.error_code not in (UnknownMemberId.code, GroupIdNotFound.code):
                check(answer.error_code, about)

        await self.retried(attempt)

    async def describe_group(self, group_id: str) -> GroupDescription:
        """A group of any type with its members. A group that does not exist has state Dead."""
        about = f"group {group_id}"

        async def attempt() -> GroupDescription:
            answer = await self.ask_coordinator(group_id, DescribeGroupsRequest([group_id]), about=about)
            code, _, state, protocol_type, protocol, members, *_ = answer.groups[0]
            check(code, about)
            described = tuple(
                MemberDescription(
                    name,
                    client,
                    host,
                    metadata,
                    assignment,
                    _assigned(assignment) if protocol_type == "consumer" else (),
                )
                for name, client, host, metadata, assignment, *_ in members
            )
            group_description = GroupDescription(group_id, state, protocol_type, protocol, described)
            return (
                group_description
                if state != "Dead"
                else await self._describe_other(group_id, about) or group_description
            )

        return await self.retried(attempt)

    async def _describe_other(self, group_id: str, about: str) -> GroupDescription | None:
        """A group that is not classic. None from brokers that don't know those types."""
        for kind, (request, response, highest) in _OTHER_TYPES.items():
            asked = MessageRequest(request(group_ids=[group_id]), response, highest=highest)
            try:
                answer = await self.ask_coordinator(group_id, asked, about=about)
            except UnsupportedVersion:
                continue
            (group,) = answer.groups
            if group.error_code in (GroupIdNotFound.code, UnsupportedVersion.code):
                continue
            check(group.error_code, about)
            members = tuple(
                MemberDescription(
                    member.member_id,
                    member.client_id,
                    member.client_host,
                    partitions=tuple(
                        TopicPartition(topic.topic_name, partition)
                        for topic in getattr(getattr(member, "assignment", None), "topic_partitions", ())
                        for partition in topic.partitions
                    ),
                )
                for member in group.members
            )
            assignor = getattr(group, "assignor_name", "")
            return GroupDescription(group_id, group.group_state, kind, assignor, members, kind)
        return None

    async def group_offsets(self, group_id: str) -> dict[TopicPartition, int]:
        """A group's committed offsets; empty if the group does not exist."""
        return {
            partition_key: offset
            for partition_key, (offset, _) in (await self.group_offsets_with_notes(group_id)).items()
        }

    async def group_offsets_with_notes(self, group_id: str) -> dict[TopicPartition, tuple[int, str]]:
        """A group's committed offsets, each with its metadata string."""
        about = f"offsets of group {group_id}"

        async def attempt() -> dict[TopicPartition, tuple[int, str]]:
            answer = await self.ask_coordinator(group_id, OffsetFetchRequest(group_id, None), about=about)
            check(answer.error_code, about)
            result = {}
            for topic, partitions in answer.topics:
                for partition, offset, note, code in partitions:
                    check(code, f"{about}, {topic}-{partition}")
                    if offset >= 0:
                        result[TopicPartition(topic, partition)] = (offset, note or "")
            return result

        return await self.retried(attempt)

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], notes: Mapping[TopicPartition, str] | None = None
    ) -> None:
        """Set the offsets of a group without members, with ``notes`` as their metadata strings.

        Raises UnknownMemberId if it has members.
        """
        about = f"offsets of group {group_id}"
        topics: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for partition_key, offset in offsets.items():
            topic, partition = partition_key
            topics[topic].append((partition, offset, (notes or {}).get(partition_key, "")))
        request = OffsetCommitRequest(group_id, -1, "", -1, list(topics.items()))

        async def attempt() -> None:
            answer = await self.ask_coordinator(group_id, request, about=about)
            for topic, partitions in answer.topics:
                for partition, code in partitions:
                    check(code, f"{about}, {topic}-{partition}")

        await self.retried(attempt)

    async def share_group_offsets(self, group_id: str) -> dict[TopicPartition, int]:
        """Where each partition of a share group starts: all records before are done, and some after that may be too (KIP-932)."""
        about = f"start offsets of share group {group_id}"
        body = DescribeShareGroupOffsetsRequest(
            groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=None)]
        )

        async def attempt() -> dict[TopicPartition, int]:
            request = MessageRequest(body, DescribeShareGroupOffsetsResponse, highest=0)
            (group,) = (await self.ask_coordinator(group_id, request, about=about)).groups
            check(group.error_code, about)
            result = {}
            for topic in group.topics:
                for partition in topic.partitions:
                    check(partition.error_code, f"{about}, {topic.topic_name}-{partition.partition_index}")
                    if partition.start_offset >= 0:
                        result[TopicPartition(topic.topic_name, partition.partition_index)] = partition.start_offset
            return result

        return await self.retried(attempt)

    async def alter_share_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Have partitions of a share group start at these offsets. Raises GroupNotEmpty if it has members."""
        about = f"start offsets of share group {group_id}"
        topics: dict[str, list[AlterShareGroupOffsetsRequestPartition]] = defaultdict(list)
        for (topic, number), offset in offsets.items():
            topics[topic].append(AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=offset))
        named = [AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=p) for name, p in topics.items()]
        body = AlterShareGroupOffsetsRequest(group_id=group_id, topics=named)

        async def attempt() -> None:
            request = MessageRequest(body, AlterShareGroupOffsetsResponse, highest=0)
            answer = await self.ask_coordinator(group_id, request, about=about)
            check(answer.error_code, about)
            for topic in answer.responses:
                for partition in topic.partitions:
                    check(partition.error_code, f"{about}, {topic.topic_name}-{partition.partition_index}")

        await self.retried(attempt)

    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete offsets of topics that no member subscribes to. Raises GroupSubscribedToTopic, GroupIdNotFound."""
        about = f"offsets of group {group_id}"
        topics: dict[str, list[OffsetDeleteRequestPartition]] = defaultdict(list)
        for topic, partition in partitions:
            topics[topic].append(OffsetDeleteRequestPartition(partition_index=partition))
        named = [OffsetDeleteRequestTopic(name=name, partitions=listed) for name, listed in topics.items()]
        body = OffsetDeleteRequest(group_id=group_id, topics=named)

        async def attempt() -> None:
            request = MessageRequest(body, OffsetDeleteResponse, highest=0)
            answer = await self.ask_coordinator(group_id, request, about=about)
            check(answer.error_code, about)
            for topic in answer.topics:
                for partition in topic.partitions:
                    check(partition.error_code, f"{about}, {topic.name}-{partition.partition_index}")

        await self.retried(attempt)

    async def delete_groups(self, group_ids: Iterable[str], *, missing_ok: bool = False) -> None:
        """Delete groups without members, and their offsets. Raises GroupNotEmpty, GroupIdNotFound."""
        for group_id in group_ids:
            await self.retried(lambda group_id=group_id: self._delete_group(group_id, missing_ok))  # type: ignore[misc]

    async def _delete_group(self, group_id: str, missing_ok: bool) -> None:
        about = f"deleting group {group_id}"
        answer = await self.ask_coordinator(group_id, DeleteGroupsRequest([group_id]), about=about)
        for _, code in answer.results:
            if not (missing_ok and code == GroupIdNotFound.code):
                check(code, about)


def _assigned(assignment: bytes) -> tuple[TopicPartition, ...]:
    """The partitions of a member of a classic consumer group (``ConsumerProtocolAssignment``)."""
    try:
        decoded = ConsumerProtocolMemberAssignment.decode(assignment)
        return tuple(TopicPartition(topic, partition) for topic, numbers in decoded.assignment for partition in numbers)
    except (ValueError, struct.error, UnicodeDecodeError):  # written by the group's leader, which may be any program
        return ()
