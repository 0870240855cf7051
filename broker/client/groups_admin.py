"""Groups and their committed offsets: the group part of Admin."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping

from aiokafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest

from broker.client.batches import TopicPartition
from broker.client.cluster import Cluster, check
from broker.client.descriptions import GroupDescription, GroupListing, MemberDescription
from broker.errors import GroupIdNotFound

__all__ = ["GroupsAdmin"]


class GroupsAdmin(Cluster):
    """Questions about groups, whatever their protocol type."""

    async def list_groups(self) -> list[GroupListing]:
        """The groups of all brokers, by name."""

        async def attempt() -> list[GroupListing]:
            answers = await asyncio.gather(
                *(self.ask(ListGroupsRequest(), node=node, about="listing groups") for node in self.brokers())
            )
            found = []
            for answer in answers:
                check(answer.error_code, "listing groups")
                found += [GroupListing(group, protocol_type) for group, protocol_type in answer.groups]
            return sorted(found, key=lambda group: group.group_id)

        return await self.retried(attempt)

    async def describe_group(self, group_id: str) -> GroupDescription:
        """A group with its members. One that does not exist has state Dead."""
        about = f"group {group_id}"

        async def attempt() -> GroupDescription:
            answer = await self.ask_coordinator(group_id, DescribeGroupsRequest([group_id]), about=about)
            code, _, state, protocol_type, protocol, members, *_ = answer.groups[0]
            check(code, about)
            described = tuple(MemberDescription(*member[:5]) for member in members)
            return GroupDescription(group_id, state, protocol_type, protocol, described)

        return await self.retried(attempt)

    async def group_offsets(self, group_id: str) -> dict[TopicPartition, int]:
        """The positions a group has committed; empty for one that does not exist."""
        about = f"offsets of group {group_id}"

        async def attempt() -> dict[TopicPartition, int]:
            answer = await self.ask_coordinator(group_id, OffsetFetchRequest(group_id, None), about=about)
            check(answer.error_code, about)
            found = {}
            for topic, partitions in answer.topics:
                for partition, offset, _, code in partitions:
                    check(code, f"{about}, {topic}-{partition}")
                    if offset >= 0:
                        found[TopicPartition(topic, partition)] = offset
            return found

        return await self.retried(attempt)

    async def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the positions of a group that has no members. Raises UnknownMemberId where it has some."""
        about = f"offsets of group {group_id}"
        topics: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
        for (topic, partition), offset in offsets.items():
            topics[topic].append((partition, offset, ""))
        request = OffsetCommitRequest(group_id, -1, "", -1, list(topics.items()))

        async def attempt() -> None:
            answer = await self.ask_coordinator(group_id, request, about=about)
            for topic, partitions in answer.topics:
                for partition, code in partitions:
                    check(code, f"{about}, {topic}-{partition}")

        await self.retried(attempt)

    async def delete_groups(self, group_ids: Iterable[str], *, missing_ok: bool = False) -> None:
        """Delete groups without members, their offsets with them. Raises GroupNotEmpty, GroupIdNotFound."""
        for group_id in group_ids:
            await self.retried(lambda group_id=group_id: self._delete_group(group_id, missing_ok))  # type: ignore[misc]

    async def _delete_group(self, group_id: str, missing_ok: bool) -> None:
        about = f"deleting group {group_id}"
        answer = await self.ask_coordinator(group_id, DeleteGroupsRequest([group_id]), about=about)
        for _, code in answer.results:
            if not (missing_ok and code == GroupIdNotFound.code):
                check(code, about)
