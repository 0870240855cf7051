"""Describes the cluster to clients: its APIs, brokers and topics."""

from __future__ import annotations

import re
import uuid
from collections.abc import Generator, Iterator, Sequence
from typing import Final, Protocol

from broker.api.parts import (
    Common,
    WithApiVersions,
    WithConfig,
    WithEveryTopic,
    WithLogs,
    WithMetadata,
    WithNode,
    WithSteps,
)
from broker.api.routes import Context, Pending, Routes, in_steps
from broker.errors import (
    BrokerError,
    InvalidRequest,
    LeaderNotAvailable,
    MismatchedEndpointType,
    ThrottlingQuotaExceeded,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
    UnsupportedEndpointType,
)
from broker.metadata.features import FEATURES
from broker.metadata.image import Topic
from broker.protocol.api import ApiKey
from broker.protocol.fields import SharedArray
from broker.protocol.messages.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from broker.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)
from broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from broker.protocol.primitives import ZERO_UUID
from broker.security.access import CLUSTER_NAME, NOT_ASKED, Operation, ResourceType
from broker.steps import Step

__all__ = ["routes"]

routes = Routes()


class _Parts(
    Common, WithApiVersions, WithConfig, WithEveryTopic, WithLogs, WithMetadata, WithNode, WithSteps, Protocol
):
    """The parts of a broker that these handlers use."""


_BROKERS: Final = 1
_CONTROLLERS: Final = 2


@routes.handles(ApiKey.API_VERSIONS, versions=range(5))
def api_versions(context: Context[_Parts], request: ApiVersionsRequest) -> ApiVersionsResponse:
    """List the APIs and versions served. A request of a later version gets an answer in version 0 with the supported
    versions.

    v1 throttle time · v3 flexible, client's name, features · v4 features with a minimum of 0
    """
    if context.version >= _NAMED_SINCE:
        for text in (request.client_software_name, request.client_software_version):
            if not _SOFTWARE.fullmatch(text):
                raise InvalidRequest(f"{text!r} cannot name a client's software or its version.")
        if context.connection is not None:
            context.connection.software = (request.client_software_name, request.client_software_version)
    metadata = context.broker.metadata
    lowest = 0 if context.version >= _ZERO_LEVELS_SINCE else 1
    return ApiVersionsResponse(
        api_keys=context.broker.api_versions,
        supported_features=[
            SupportedFeatureKey(name=name, min_version=feature.lowest, max_version=feature.highest)
            for name, feature in FEATURES.items()
            if feature.lowest >= lowest
        ],
        finalized_features_epoch=metadata.version,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in metadata.features.items()
            if name in FEATURES and level > 0
        ],
    )


_NAMED_SINCE: Final = 3
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_ZERO_LEVELS_SINCE: Final = 4
"""Older clients fail on features with a minimum level of 0 (KAFKA-17011), so such features are hidden from them."""


@routes.handles(ApiKey.METADATA, versions=range(14))
def metadata(context: Context[_Parts], request: MetadataRequest) -> MetadataResponse | Pending:
    """Return the brokers and the leaders of partitions. A request for a topic may create it
    (`auto.create.topics.enable`).

    v4 auto creation can be declined · v5 offline replicas · v7 leader epochs · v8 authorized operations · v9 flexible ·
    v10 topic ids · v12 topics by id · v13 top-level error
    """
    tell = request.include_topic_authorized_operations
    # Version 0 asks for all topics by an empty list, later ones by null.
    if request.topics is None or (context.version == 0 and not request.topics):
        return _cluster(context, request, _every_topic(context, tell=tell))
    creates = request.allow_auto_topic_creation or context.version < 4
    if creates and context.broker.config.auto_create_topics_enable and _names_new(context, request.topics):
        return in_steps(context.broker.steps, _created_topics(context, request, request.topics, tell=tell))
    return _cluster(context, request, list(_topics(context, request.topics, creates, tell=tell)))


def _names_new(context: Context[_Parts], topics: Sequence[MetadataRequestTopic]) -> bool:
    known = context.broker.metadata.topics
    return any(topic.name is not None and topic.name not in known for topic in topics)


def _created_topics(
    context: Context[_Parts], request: MetadataRequest, topics: Sequence[MetadataRequestTopic], *, tell: bool
) -> Generator[Step, None, MetadataResponse]:
    answered = []
    for topic in _topics(context, topics, True, tell=tell):
        answered.append(topic)
        yield None
    return _cluster(context, request, answered)


def _cluster(
    context: Context[_Parts], request: MetadataRequest, topics: Sequence[MetadataResponseTopic]
) -> MetadataResponse:
    node = context.broker.node(context.listener)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)],
        cluster_id=context.broker.metadata.cluster_id,
        controller_id=node.node_id,
        topics=topics,
        cluster_authorized_operations=(
            _cluster_operations(context) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _topics(
    context: Context[_Parts], topics: Sequence[MetadataRequestTopic], allowed: bool, *, tell: bool
) -> Iterator[MetadataResponseTopic]:
    # Asked once for all names: a request may have 25,000.
    judged = allowed and (context.broker.authorizer is not None or context.broker.quotas.active)
    may_create = judged and context.allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    for topic in topics:
        yield _topic(context, topic, allowed=allowed, judged=judged, may_create=may_create, tell=tell)


def _every_topic(context: Context[_Parts], *, tell: bool) -> Sequence[MetadataResponseTopic]:
    """Metadata of all topics, cached until something changes. Without the cache if each client may see other topics."""
    broker = context.broker
    if broker.authorizer is not None or tell:
        return list(_topics(context, _all_that_may_be_seen(context), False, tell=tell))
    state = broker.metadata.version, len(broker.logs.offline), bool(broker.logs.unmade)
    if broker.every_topic is None or broker.every_topic[0] != state:
        topics = list(_topics(context, _all_that_may_be_seen(context), False, tell=tell))
        broker.every_topic = state, SharedArray(topics)
    return broker.every_topic[1]


def _all_that_may_be_seen(context: Context[_Parts]) -> list[MetadataRequestTopic]:
    return [
        MetadataRequestTopic(name=topic.name)
        for topic in context.broker.topics.all()
        if context.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic.name)
    ]


def _cluster_operations(context: Context[_Parts]) -> int:
    """The operations that the client may perform on the cluster; 0 if it may not know."""
    if not context.allows(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return context.operations(ResourceType.CLUSTER)


def _topic(
    context: Context[_Parts],
    requested_topic: MetadataRequestTopic,
    *,
    allowed: bool,
    judged: bool,
    may_create: bool,
    tell: bool,
) -> MetadataResponseTopic:
    """One topic; with ``judged`` it is created as rights and quotas let, by ``may_create`` whatever its name is."""
    topics = context.broker.topics
    try:
        if requested_topic.name is None:
            context.require_topic(Operation.DESCRIBE, requested_topic.topic_id)
            topic = topics.find(requested_topic.topic_id)
        else:
            context.require_topic(Operation.DESCRIBE, requested_topic.name)
            if judged:
                _require_creation(context, requested_topic.name, may_create)
            topic = topics.find_or_create(requested_topic.name, allowed=allowed)
    except BrokerError as error:
        name = requested_topic.name if context.version >= 12 else requested_topic.name or ""
        return MetadataResponseTopic(
            error_code=error.code,
            name=name,
            topic_id=requested_topic.topic_id,
            topic_authorized_operations=NOT_ASKED,
        )
    alone, epochs = (context.broker.metadata.node_id,), context.broker.metadata.leader_epochs
    unavailable = context.broker.logs.unavailable(topic.name, topic.partitions)
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=alone[0],
                leader_epoch=epochs.get((topic.name, index), 0) if epochs else 0,
                replica_nodes=alone,
                isr_nodes=alone,
            )
            if index not in unavailable
            else MetadataResponsePartition(
                error_code=LeaderNotAvailable.code,
                partition_index=index,
                leader_id=-1,
                replica_nodes=alone,
                offline_replicas=alone,
            )
            for index in range(topic.partitions)
        ],
        topic_authorized_operations=context.operations(ResourceType.TOPIC, topic.name) if tell else NOT_ASKED,
    )


def _require_creation(context: Context[_Parts], name: str, may_create: bool) -> None:
    """Check that the client may create a missing topic, on the cluster or the topic, and that its quota has room."""
    broker = context.broker
    if name in broker.metadata.topics or not broker.config.auto_create_topics_enable:
        return
    if not may_create:
        context.require(Operation.CREATE, ResourceType.TOPIC, name)
    try:
        context.mutations(strict_since=0).take(broker.config.num_partitions)
    except ThrottlingQuotaExceeded as error:
        # As in Kafka: the client is not told, but asks again.
        raise UnknownTopicOrPartition(
            f"There is no topic {name!r}, and for now it is not created: {error.message}"
        ) from error


@routes.handles(ApiKey.DESCRIBE_CLUSTER, versions=range(3))
def describe_cluster(context: Context[_Parts], request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Return the cluster's id and its brokers.

    v1 endpoint type (controllers do not answer here) · v2 fenced brokers
    """
    if request.endpoint_type != _BROKERS and context.version >= 1:
        kind = MismatchedEndpointType if request.endpoint_type == _CONTROLLERS else UnsupportedEndpointType
        return DescribeClusterResponse(
            error_code=kind.code,
            error_message=f"Endpoints of type {request.endpoint_type} are not here: this is a broker's, of type 1.",
        )
    node = context.broker.node(context.listener)
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=context.broker.metadata.cluster_id,
        controller_id=node.node_id,
        brokers=[DescribeClusterBroker(broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack)],
        cluster_authorized_operations=(
            _cluster_operations(context) if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


@routes.handles(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=range(1))
def describe_topic_partitions(
    context: Context[_Parts], request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe topics partition by partition, in pages (KIP-966)."""
    topics = context.broker.topics
    named = {topic.name for topic in request.topics}
    names = [
        name
        for name in sorted(named or {topic.name for topic in topics.all()})
        if context.allows(Operation.DESCRIBE, ResourceType.TOPIC, name)
    ]
    hidden = [
        _described(name, ZERO_UUID, NOT_ASKED, error_code=TopicAuthorizationFailed.code)
        for name in sorted(named - {*names})
    ]
    start = request.cursor
    if start is not None and start.partition_index < 0:
        return DescribeTopicPartitionsResponse(
            topics=[
                _described(topic.name, ZERO_UUID, NOT_ASKED, error_code=InvalidRequest.code) for topic in request.topics
            ]
        )
    most = context.broker.config.max_request_partitions
    left = max(min(request.response_partition_limit, most), 1)
    described: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if start is not None and name < start.topic_name:
            continue
        first = start.partition_index if start is not None and name == start.topic_name else 0
        if left <= 0:
            return DescribeTopicPartitionsResponse(
                topics=[*described, *hidden], next_cursor=ResponseCursor(topic_name=name, partition_index=first)
            )
        operations = context.operations(ResourceType.TOPIC, name)
        try:
            topic = topics.find_named(name)
        except BrokerError as error:
            described.append(_described(name, ZERO_UUID, operations, error_code=error.code))
            continue
        taken = range(first, min(topic.partitions, first + left))
        left -= len(taken)
        described.append(_describe(topic, taken, context.broker, operations))
        if taken.stop < topic.partitions:
            cursor = ResponseCursor(topic_name=name, partition_index=taken.stop)
            return DescribeTopicPartitionsResponse(topics=[*described, *hidden], next_cursor=cursor)
    return DescribeTopicPartitionsResponse(topics=[*described, *hidden])


def _described(
    name: str, topic_id: uuid.UUID, operations: int, *, error_code: int = 0
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error_code, name=name, topic_id=topic_id, topic_authorized_operations=operations
    )


def _describe(topic: Topic, indexes: range, broker: _Parts, operations: int) -> DescribeTopicPartitionsResponseTopic:
    node_id, epochs = broker.metadata.node_id, broker.metadata.leader_epochs
    unavailable = broker.logs.unavailable(topic.name, topic.partitions)
    described = _described(topic.name, topic.id, operations)
    described.is_internal = topic.internal
    described.partitions = [
        DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=node_id,
            leader_epoch=epochs.get((topic.name, index), 0),
            replica_nodes=(node_id,),
            isr_nodes=(node_id,),
            eligible_leader_replicas=(),
            last_known_elr=(),
        )
        if index not in unavailable
        else DescribeTopicPartitionsResponsePartition(
            error_code=LeaderNotAvailable.code,
            partition_index=index,
            leader_id=-1,
            replica_nodes=(node_id,),
            eligible_leader_replicas=(),
            last_known_elr=(),
            offline_replicas=(node_id,),
        )
        for index in indexes
    ]
    return described
