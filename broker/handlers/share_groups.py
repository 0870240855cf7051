"""Members of share groups (KIP-932), and those groups and their offsets for administrators."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Protocol

from broker.api.parts import Common, WithConfig, WithGroups, WithMetadata
from broker.api.routes import Context, Pending, Routes
from broker.errors import (
    BrokerError,
    GroupAuthorizationFailed,
    InvalidGroupId,
    InvalidRequest,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from broker.groups.modern.member import Partitions
from broker.groups.share.service import ASSIGNOR, ShareMembership
from broker.groups.share.values import (
    DescribedShareGroup,
    DescribedShareMember,
    ShareAnswer,
    ShareHeartbeat,
    TopicState,
)
from broker.handlers.consumer_groups import require_feature, require_topics
from broker.handlers.rooms import SERVED
from broker.protocol.api import ApiKey
from broker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from broker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from broker.protocol.messages.share_group_describe import (
    Assignment as DescribedAssignment,
)
from broker.protocol.messages.share_group_describe import (
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from broker.protocol.messages.share_group_describe import TopicPartitions as DescribedPartitions
from broker.protocol.messages.share_group_heartbeat import (
    Assignment,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from broker.security.access import NOT_ASKED, Operation, ResourceType

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithConfig, WithGroups, WithMetadata, Protocol):
    """The parts of a broker that these handlers use."""


_MEMBER_ID_LENGTH = 36


@routes.handles(ApiKey.SHARE_GROUP_HEARTBEAT, versions=SERVED[ApiKey.SHARE_GROUP_HEARTBEAT])
def share_group_heartbeat(
    context: Context[_Parts], request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse | Pending:
    """Join a share group, stay in it and be assigned partitions, or leave it."""
    try:
        require_feature(context, "share.version")
        context.require(Operation.READ, ResourceType.GROUP, request.group_id)
        if not request.member_id or len(request.member_id) > _MEMBER_ID_LENGTH:
            raise InvalidRequest("Invalid member id in the request.")
        require_topics(context, request.subscribed_topic_names or ())
        names = request.subscribed_topic_names
        future = context.broker.groups.service(ShareMembership).heartbeat(
            ShareHeartbeat(
                group_id=request.group_id,
                member_id=request.member_id,
                epoch=request.member_epoch,
                rack_id=request.rack_id,
                topics=None if names is None else frozenset(names),
                client_id=context.client_id,
                client_host=f"/{context.client_host}",
            )
        )
    except BrokerError as error:
        return _failed(error)
    return Pending(future, _heartbeat_answer, _failed)


def _heartbeat_answer(answer: ShareAnswer) -> ShareGroupHeartbeatResponse:
    assignment = None
    if answer.assigned is not None:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in answer.assigned.items()
            ]
        )
    return ShareGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=assignment,
    )


def _failed(error: BrokerError) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


@routes.handles(ApiKey.SHARE_GROUP_DESCRIBE, versions=SERVED[ApiKey.SHARE_GROUP_DESCRIBE])
def share_group_describe(context: Context[_Parts], request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    """Describe share groups with their members and assignments."""
    described = []
    for group_id in request.group_ids:
        try:
            require_feature(context, "share.version")
            context.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
            group = context.broker.groups.service(ShareMembership).describe(group_id)
            names = group.topic_names.values()
            if not all(context.allows(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
                raise TopicAuthorizationFailed(
                    "The group has described topic(s) that the client is not authorized to describe."
                )
        except BrokerError as error:
            described.append(DescribedGroup(error_code=error.code, error_message=error.message, group_id=group_id))
            continue
        operations = NOT_ASKED
        if request.include_authorized_operations:
            operations = context.operations(ResourceType.GROUP, group_id)
        described.append(_described(group, operations))
    return ShareGroupDescribeResponse(groups=described)


def _described(group: DescribedShareGroup, operations: int) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=ASSIGNOR,
        members=[_member(member, group.topic_names) for member in group.members],
        authorized_operations=operations,
    )


def _member(member: DescribedShareMember, names: Mapping[uuid.UUID, str]) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        assignment=_assignment(member.assigned, names),
    )


def _assignment(partitions: Partitions, names: Mapping[uuid.UUID, str]) -> DescribedAssignment:
    return DescribedAssignment(
        topic_partitions=[
            DescribedPartitions(topic_id=topic_id, topic_name=names[topic_id], partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
            if topic_id in names
        ]
    )


@routes.handles(ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=SERVED[ApiKey.ALTER_SHARE_GROUP_OFFSETS])
def alter_share_group_offsets(
    context: Context[_Parts], request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse | Pending:
    """Change the start offsets of share-partitions of a group without members."""
    require_feature(context, "share.version")
    if not context.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed(f"The client may not read as a member of group {request.group_id!r}.")
    if not request.group_id:
        raise InvalidGroupId("The group id is empty.")
    membership = context.broker.groups.service(ShareMembership)
    group = membership.empty_group(request.group_id, create=True)
    results: list[AlterShareGroupOffsetsResponseTopic] = []
    offsets: dict[uuid.UUID, dict[int, int]] = {}
    requested: dict[uuid.UUID, TopicState] = {}
    asked: dict[tuple[uuid.UUID, int], AlterShareGroupOffsetsResponsePartition] = {}
    for topic in request.topics:
        known = context.broker.metadata.topics.get(topic.topic_name)
        error: BrokerError | None = None
        if not context.allows(Operation.READ, ResourceType.TOPIC, topic.topic_name):
            error = TopicAuthorizationFailed(f"The client may not read topic {topic.topic_name!r}.")
        partitions = []
        for partition in topic.partitions:
            result = AlterShareGroupOffsetsResponsePartition(partition_index=partition.partition_index)
            partitions.append(result)
            problem = error
            if problem is None and (known is None or not 0 <= partition.partition_index < known.partitions):
                problem = UnknownTopicOrPartition(
                    f"There is no partition {partition.partition_index} of topic {topic.topic_name!r}."
                )
            if problem is not None:
                result.error_code, result.error_message = problem.code, problem.message
            elif known is not None:
                offsets.setdefault(known.id, {})[partition.partition_index] = partition.start_offset
                asked[known.id, partition.partition_index] = result
        results.append(
            AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=uuid.UUID(int=0) if known is None else known.id,
                partitions=partitions,
            )
        )
        if known is not None and known.id in offsets:
            requested[known.id] = TopicState(topic.topic_name, frozenset(offsets[known.id]), 0)
    if not requested:
        return AlterShareGroupOffsetsResponse(responses=results)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def note(failed: Mapping[tuple[uuid.UUID, int], BrokerError]) -> None:
        for where, failure in failed.items():
            asked[where].error_code, asked[where].error_message = failure.code, failure.message
        if not done.done():
            done.set_result(None)

    membership.states.alter(group, offsets, requested, note)
    return Pending(done, lambda _: AlterShareGroupOffsetsResponse(responses=results))


@routes.handles(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions=SERVED[ApiKey.DELETE_SHARE_GROUP_OFFSETS])
def delete_share_group_offsets(
    context: Context[_Parts], request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse | Pending:
    """Delete the share-group state of topics for a group without members."""
    require_feature(context, "share.version")
    if not context.allows(Operation.DELETE, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed(f"The client may not delete group {request.group_id!r}.")
    if not request.group_id:
        raise InvalidGroupId("The group id is empty.")
    results: list[DeleteShareGroupOffsetsResponseTopic] = []
    names = []
    for topic in request.topics:
        if context.allows(Operation.READ, ResourceType.TOPIC, topic.topic_name):
            names.append(topic.topic_name)
        else:
            error = TopicAuthorizationFailed(f"The client may not read topic {topic.topic_name!r}.")
            results.append(_not_deleted(topic.topic_name, error))
    membership = context.broker.groups.service(ShareMembership)
    group = membership.empty_group(request.group_id, create=False)
    result: dict[uuid.UUID, DeleteShareGroupOffsetsResponseTopic] = {}
    for name in names:
        known = context.broker.metadata.topics.get(name)
        if known is None:
            results.append(_not_deleted(name, UnknownTopicOrPartition(f"There is no topic {name!r}.")))
        elif known.id not in group.initialized and known.id not in group.deleting:
            results.append(_not_deleted(name, UnknownTopicOrPartition("There is no offset information to delete.")))
        else:
            result[known.id] = DeleteShareGroupOffsetsResponseTopic(topic_name=name, topic_id=known.id)
    if not result:
        return DeleteShareGroupOffsetsResponse(responses=results)
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def note(failed: Mapping[tuple[uuid.UUID, int], BrokerError]) -> None:
        for (topic_id, _), failure in failed.items():
            result[topic_id].error_code, result[topic_id].error_message = failure.code, failure.message
        if not done.done():
            done.set_result(None)

    membership.states.delete(group, list(result), note)
    return Pending(done, lambda _: DeleteShareGroupOffsetsResponse(responses=[*result.values(), *results]))


def _not_deleted(name: str, error: BrokerError) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(topic_name=name, error_code=error.code, error_message=error.message)
