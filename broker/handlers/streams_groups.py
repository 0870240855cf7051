"""Members of streams groups (KIP-1071), and descriptions of those groups for administrators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from broker.api.parts import Common, WithConfig, WithGroups, WithMetadata
from broker.api.routes import Context, Pending, Routes
from broker.errors import BrokerError, InvalidTopic, StreamsInvalidTopology, TopicAlreadyExists
from broker.groups.streams import records as stored
from broker.groups.streams.configured import ConfiguredSubtopology, InternalTopic, Status, StatusCode
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.service import StreamsGroups
from broker.groups.streams.tasks import Tasks, TasksByRole
from broker.groups.streams.topology import required_topics, subtopologies
from broker.groups.streams.values import DescribedStreamsGroup, EndpointPartitions, StreamsAnswer, StreamsHeartbeat
from broker.handlers.consumer_groups import require_feature, require_topics
from broker.handlers.rooms import SERVED
from broker.protocol.api import ApiKey
from broker.protocol.messages import streams_group_describe as described
from broker.protocol.messages import streams_group_heartbeat as wire
from broker.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from broker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from broker.security.access import NOT_ASKED, Operation, ResourceType
from broker.storage.partitions import INTERNAL_TOPICS

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithConfig, WithGroups, WithMetadata, Protocol):
    """The parts of a broker that these handlers use."""


_FEATURE: Final = "streams.version"


@routes.handles(ApiKey.STREAMS_GROUP_HEARTBEAT, versions=SERVED[ApiKey.STREAMS_GROUP_HEARTBEAT])
def streams_group_heartbeat(
    context: Context[_Parts], request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse | Pending:
    """Join the group of a Kafka Streams application, stay in it and be assigned tasks, or leave it.

    Creates missing internal topics of the application.
    """
    try:
        require_feature(context, _FEATURE)
        context.require(Operation.READ, ResourceType.GROUP, request.group_id)
        topology = None if request.topology is None else _topology(request.topology)
        if topology is not None:
            _check_topics(context, topology)
        heartbeat = _heartbeat(context, request, topology)
        future = context.broker.groups.service(StreamsGroups).heartbeat(heartbeat)
    except BrokerError as error:
        return _failed(error)
    return Pending(future, lambda answer: _answer(context, answer), _failed)


def _check_topics(context: Context[_Parts], topology: stored.StreamsGroupTopologyValue) -> None:
    sinks = [name for subtopology in topology.subtopologies for name in subtopology.repartition_sink_topics]
    names = sorted({*required_topics(topology), *sinks})
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        raise StreamsInvalidTopology(
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        )
    illegal = [name for name in names if not _is_legal(context, name)]
    if illegal:
        raise StreamsInvalidTopology(f"Topic names {','.join(illegal)} are not valid topic names.")
    require_topics(context, names)


def _is_legal(context: Context[_Parts], name: str) -> bool:
    try:
        context.broker.metadata.check_name(name)
    except InvalidTopic:
        return False
    return True


def _topology(topology: wire.Topology) -> stored.StreamsGroupTopologyValue:
    """The topology as the group stores it, with the fields of the request."""
    return stored.StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            stored.Subtopology(
                subtopology_id=subtopology.subtopology_id,
                source_topics=subtopology.source_topics,
                source_topic_regex=subtopology.source_topic_regex,
                state_changelog_topics=[_topic_info(info) for info in subtopology.state_changelog_topics],
                repartition_sink_topics=subtopology.repartition_sink_topics,
                repartition_source_topics=[_topic_info(info) for info in subtopology.repartition_source_topics],
                copartition_groups=[
                    stored.CopartitionGroup(
                        source_topics=group.source_topics,
                        source_topic_regex=group.source_topic_regex,
                        repartition_source_topics=group.repartition_source_topics,
                    )
                    for group in subtopology.copartition_groups
                ],
            )
            for subtopology in topology.subtopologies
        ],
    )


def _topic_info(topic_info: wire.TopicInfo) -> stored.TopicInfo:
    return stored.TopicInfo(
        name=topic_info.name,
        partitions=topic_info.partitions,
        replication_factor=topic_info.replication_factor,
        topic_configs=[stored.TopicConfig(key=config.key, value=config.value) for config in topic_info.topic_configs],
    )


def _heartbeat(
    context: Context[_Parts], request: StreamsGroupHeartbeatRequest, topology: stored.StreamsGroupTopologyValue | None
) -> StreamsHeartbeat:
    roles = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    tasks_by_role = [None if tasks is None else _tasks(tasks) for tasks in roles]
    active, standby, warmup = tasks_by_role
    owned = None
    if active is not None and standby is not None and warmup is not None:
        owned = TasksByRole(active, standby, warmup)
    tags, endpoint = request.client_tags, request.user_endpoint
    return StreamsHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        endpoint_epoch=request.endpoint_information_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topology=topology,
        owned=owned,
        owned_is_partial=owned is None and any(tasks is not None for tasks in tasks_by_role),
        process_id=request.process_id,
        endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
        tags=None if tags is None else {tag.key: tag.value for tag in tags},
        shutdown_application=request.shutdown_application,
        client_id=context.client_id,
        client_host=f"/{context.client_host}",
        uses_unsupported=_unsupported(request),
    )


def _unsupported(request: StreamsGroupHeartbeatRequest) -> str:
    """The request's use of a field that Kafka defines but does not serve; empty if none."""
    if request.task_offsets is not None:
        return "TaskOffsets are not supported yet."
    if request.task_end_offsets is not None:
        return "TaskEndOffsets are not supported yet."
    if request.topology is not None and any(
        subtopology.source_topic_regex for subtopology in request.topology.subtopologies
    ):
        return "Regular expressions for source topics are not supported yet."
    return ""


def _tasks(task_idses: Sequence[wire.TaskIds]) -> Tasks:
    return {task_ids.subtopology_id: frozenset(task_ids.partitions) for task_ids in task_idses if task_ids.partitions}


def _answer(context: Context[_Parts], answer: StreamsAnswer) -> StreamsGroupHeartbeatResponse:
    status = [_status(context, answer, item) for item in answer.status]
    tasks = answer.assigned
    return StreamsGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        status=status,
        active_tasks=None if tasks is None else _task_ids(tasks.active),
        standby_tasks=None if tasks is None else _task_ids(tasks.standby),
        warmup_tasks=None if tasks is None else _task_ids(tasks.warmup),
        endpoint_information_epoch=answer.endpoint_epoch,
        partitions_by_user_endpoint=(
            None if answer.endpoints is None else [_endpoint(endpoint) for endpoint in answer.endpoints]
        ),
    )


def _status(context: Context[_Parts], answer: StreamsAnswer, status: Status) -> wire.Status:
    detail = status.detail
    if status.code is StatusCode.MISSING_INTERNAL_TOPICS:
        detail += _create(context, answer.missing)
    return wire.Status(status_code=int(status.code), status_detail=detail)


def _create(context: Context[_Parts], missing: Sequence[InternalTopic]) -> str:
    """Create internal topics. Returns the error text for the status. The next heartbeat sees the topics."""
    if not context.allows(Operation.CREATE, ResourceType.CLUSTER, "kafka-cluster"):
        denied = [
            internal_topic.name
            for internal_topic in missing
            if not context.allows(Operation.CREATE, ResourceType.TOPIC, internal_topic.name)
        ]
        if denied:
            return f"; Unauthorized to CREATE on topics {', '.join(denied)}."
    problems = []
    for internal_topic in missing:
        try:
            context.broker.topics.create(
                internal_topic.name,
                partitions=internal_topic.partitions,
                replication_factor=-1
                if internal_topic.replication_factor is None
                else internal_topic.replication_factor,
                configs=dict(internal_topic.configs),
            )
        except TopicAlreadyExists:
            continue
        except BrokerError as error:
            problems.append(f"{internal_topic.name}: {error.message}")
    return f"; Creation failed: {'; '.join(problems)}." if problems else ""


def _task_ids(tasks: Tasks) -> list[wire.ResponseTaskIds]:
    return [
        wire.ResponseTaskIds(subtopology_id=name, partitions=sorted(numbers)) for name, numbers in sorted(tasks.items())
    ]


def _endpoint(endpoint_partitions: EndpointPartitions) -> wire.EndpointToPartitions:
    host, port = endpoint_partitions.endpoint
    return wire.EndpointToPartitions(
        user_endpoint=wire.ResponseEndpoint(host=host, port=port),
        active_partitions=_topic_partitions(endpoint_partitions.active),
        standby_partitions=_topic_partitions(endpoint_partitions.standby),
    )


def _topic_partitions(partitions: Mapping[str, Sequence[int]]) -> list[wire.TopicPartition]:
    return [wire.TopicPartition(topic=topic, partitions=list(numbers)) for topic, numbers in sorted(partitions.items())]


def _failed(error: BrokerError) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(
        error_code=error.code,
        error_message=error.message,
        status=[],
        active_tasks=None,
        standby_tasks=None,
        warmup_tasks=None,
        partitions_by_user_endpoint=None,
    )


@routes.handles(ApiKey.STREAMS_GROUP_DESCRIBE, versions=SERVED[ApiKey.STREAMS_GROUP_DESCRIBE])
def streams_group_describe(
    context: Context[_Parts], request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    """Describe streams groups with their topology, their members, current and target assignments."""
    groups = []
    for group_id in request.group_ids:
        try:
            require_feature(context, _FEATURE)
            context.require(Operation.DESCRIBE, ResourceType.GROUP, group_id)
            group = context.broker.groups.service(StreamsGroups).describe(group_id)
            if group.topology is not None:
                require_topics(context, sorted(required_topics(group.topology)))
        except BrokerError as error:
            groups.append(
                described.DescribedGroup(error_code=error.code, error_message=error.message, group_id=group_id)
            )
            continue
        operations = NOT_ASKED
        if request.include_authorized_operations:
            operations = context.operations(ResourceType.GROUP, group_id)
        groups.append(_described(group, operations))
    return StreamsGroupDescribeResponse(groups=groups)


def _described(group: DescribedStreamsGroup, operations: int) -> described.DescribedGroup:
    topology = group.topology
    configured = group.configured.subtopologies if group.configured is not None and group.configured.is_ready else None
    return described.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=None
        if topology is None
        else described.Topology(
            epoch=topology.epoch,
            subtopologies=[
                _subtopology(subtopology, (configured or {}).get(subtopology.subtopology_id))
                for subtopology in subtopologies(topology)
            ],
        ),
        members=[_member(member, target) for member, target in group.members],
        authorized_operations=operations,
    )


def _subtopology(subtopology: stored.Subtopology, configured: ConfiguredSubtopology | None) -> described.Subtopology:
    return described.Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=sorted(subtopology.source_topics),
        repartition_sink_topics=sorted(subtopology.repartition_sink_topics),
        state_changelog_topics=_topic_infos(
            subtopology.state_changelog_topics, configured.changelogs if configured is not None else {}
        ),
        repartition_source_topics=_topic_infos(
            subtopology.repartition_source_topics, configured.repartition_sources if configured is not None else {}
        ),
    )


def _topic_infos(
    infos: Sequence[stored.TopicInfo], configured: Mapping[str, InternalTopic]
) -> list[described.TopicInfo]:
    return [
        described.TopicInfo(
            name=info.name,
            partitions=configured[info.name].partitions if info.name in configured else info.partitions,
            replication_factor=info.replication_factor,
            topic_configs=[
                described.KeyValue(key=topic_config.key, value=topic_config.value)
                for topic_config in info.topic_configs
            ],
        )
        for info in sorted(infos, key=lambda info: info.name)
    ]


def _member(member: StreamsMember, target: TasksByRole) -> described.Member:
    endpoint = member.endpoint
    return described.Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else described.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[described.KeyValue(key=key, value=value) for key, value in member.tags.items()],
        assignment=_assignment(member.assigned.roles),
        target_assignment=_assignment(target),
    )


def _assignment(tasks: TasksByRole) -> described.Assignment:
    def ids(some: Tasks) -> list[Any]:
        return [
            described.TaskIds(subtopology_id=name, partitions=sorted(numbers)) for name, numbers in sorted(some.items())
        ]

    return described.Assignment(
        active_tasks=ids(tasks.active), standby_tasks=ids(tasks.standby), warmup_tasks=ids(tasks.warmup)
    )
