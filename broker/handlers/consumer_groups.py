"""Members of consumer groups (KIP-848), and descriptions of those groups for administrators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

from broker.api.parts import Common, WithConfig, WithGroups, WithMetadata
from broker.api.routes import Context, Pending, Routes
from broker.errors import BrokerError, TopicAuthorizationFailed, UnsupportedVersion
from broker.groups.consumer.service import ConsumerGroups
from broker.groups.consumer.values import (
    ConsumerHeartbeat,
    DescribedConsumer,
    DescribedConsumerGroup,
    HeartbeatAnswer,
)
from broker.groups.modern.member import Partitions
from broker.protocol.api import ApiKey
from broker.protocol.messages.consumer_group_describe import (
    Assignment as DescribedAssignment,
)
from broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from broker.protocol.messages.consumer_group_describe import TopicPartitions as DescribedPartitions
from broker.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ResponseTopicPartitions,
)
from broker.security.access import NOT_ASKED, Operation, ResourceType

__all__ = ["partitions_from", "require_feature", "require_topics", "routes"]

routes = Routes()


class FeatureParts(Common, WithConfig, WithMetadata, Protocol):
    """The parts of a broker that ``require_feature`` uses."""


class _Parts(FeatureParts, WithGroups, Protocol):
    """The parts of a broker that these handlers use."""


_FEATURE: Final = "group.version"
_PROTOCOLS: Final = {_FEATURE: "consumer", "streams.version": "streams"}
"""The names of features' protocols in ``group.coordinator.rebalance.protocols``."""


@routes.handles(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=range(2))
def consumer_group_heartbeat(
    context: Context[_Parts], request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Pending:
    """Join a consumer group, stay in it and be assigned partitions, or leave it.

    v1 regular expressions, member ids made by clients (KIP-1082)
    """
    try:
        require_feature(context, _FEATURE)
        context.require(Operation.READ, ResourceType.GROUP, request.group_id)
        require_topics(context, request.subscribed_topic_names or ())
        future = context.broker.groups.service(ConsumerGroups).heartbeat(_heartbeat(context, request), context.version)
    except BrokerError as error:
        return _failed(error)
    return Pending(future, _answer, _failed)


def require_feature(context: Context[FeatureParts], name: str) -> None:
    """Raises UnsupportedVersion if the feature is at level 0, or the broker does not serve its protocol."""
    if not context.broker.metadata.features.get(name, 0):
        raise UnsupportedVersion(f"The cluster does not use this protocol: {name} is 0.")
    protocol = _PROTOCOLS.get(name)
    if protocol is not None and not context.broker.config.serves(protocol):
        raise UnsupportedVersion(f"group.coordinator.rebalance.protocols does not name {protocol}.")


def require_topics(context: Context[Common], names: Sequence[str]) -> None:
    """Raises TopicAuthorizationFailed unless the client may see all of them. The error does not name the topics."""
    if not all(context.allows(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in dict.fromkeys(names)):
        raise TopicAuthorizationFailed("The client may not describe all of these topics.")


def _heartbeat(context: Context[_Parts], request: ConsumerGroupHeartbeatRequest) -> ConsumerHeartbeat:
    names, owned = request.subscribed_topic_names, request.topic_partitions
    guarded = request.subscribed_topic_regex and context.broker.authorizer is not None
    return ConsumerHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=None if names is None else frozenset(names),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if owned is None else partitions_from(owned),
        client_id=context.client_id,
        client_host=f"/{context.client_host}",
        may_describe=(lambda name: context.allows(Operation.DESCRIBE, ResourceType.TOPIC, name)) if guarded else None,
    )


def partitions_from(provided: Sequence[Any]) -> Partitions:
    """Topic ids and partitions from the messages of several APIs."""
    return {item.topic_id: frozenset(item.partitions) for item in provided}


def _answer(answer: HeartbeatAnswer) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if answer.assigned is not None:
        assignment = Assignment(
            topic_partitions=[
                ResponseTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in answer.assigned.items()
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=assignment,
    )


def _failed(error: BrokerError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


@routes.handles(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=range(2))
def consumer_group_describe(
    context: Context[_Parts], request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe consumer groups with their members, current and target assignments.

    v1 which protocol a member uses (KIP-1099)
    """
    described = []
    for group_id in request.group_ids:
        try:
            require_feature(context, _FEATURE)
            context.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
            group = context.broker.groups.service(ConsumerGroups).describe(group_id)
            _check_topics(context, group)
        except BrokerError as error:
            described.append(DescribedGroup(error_code=error.code, error_message=error.message, group_id=group_id))
            continue
        operations = NOT_ASKED
        if request.include_authorized_operations:
            operations = context.operations(ResourceType.GROUP, group_id)
        described.append(_described(group, operations))
    return ConsumerGroupDescribeResponse(groups=described)


def _check_topics(context: Context[_Parts], group: DescribedConsumerGroup) -> None:
    """Hides a group that reads a topic the client may not see."""
    if context.broker.authorizer is None:
        return
    names = set(group.topic_names.values()).union(*(member.topics for member in group.members))
    if not all(context.allows(Operation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        raise TopicAuthorizationFailed(
            "The group has described topic(s) that the client is not authorized to describe."
        )


def _described(group: DescribedConsumerGroup, operations: int) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(member, group.topic_names) for member in group.members],
        authorized_operations=operations,
    )


def _member(member: DescribedConsumer, names: Mapping[UUID, str]) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(member.assigned, names),
        target_assignment=_assignment(member.target, names),
        member_type=0 if member.is_classic else 1,
    )


def _assignment(partitions: Partitions, names: Mapping[UUID, str]) -> DescribedAssignment:
    return DescribedAssignment(
        topic_partitions=[
            DescribedPartitions(topic_id=topic_id, topic_name=names[topic_id], partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
            if topic_id in names
        ]
    )
