"""Topics for administrators: create, delete, add partitions, delete records."""

from __future__ import annotations

import itertools
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

from broker.api.parts import (
    Common,
    WithConfig,
    WithForgetShares,
    WithGroups,
    WithLogs,
    WithMetadata,
    WithPartitions,
    WithResources,
    WithTopicMetrics,
)
from broker.api.routes import Context, Routes
from broker.errors import (
    BrokerError,
    InvalidRequest,
    KafkaStorageError,
    PolicyViolation,
    TopicAuthorizationFailed,
)
from broker.metadata.image import Topic
from broker.protocol.api import ApiKey
from broker.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from broker.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from broker.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from broker.protocol.primitives import ZERO_UUID
from broker.quotas.quotas import Mutations
from broker.security.access import CLUSTER_NAME, Operation, ResourceType

__all__ = ["routes"]

routes = Routes()


class _Parts(
    Common,
    WithConfig,
    WithForgetShares,
    WithGroups,
    WithLogs,
    WithMetadata,
    WithPartitions,
    WithResources,
    WithTopicMetrics,
    Protocol,
):
    """The parts of a broker that these handlers use."""


_MOST_PARTITIONS: Final = 10_000
"""The most partitions that one request may create, because Kafka's controller limits records per request."""


@routes.handles(ApiKey.CREATE_TOPICS, versions=range(2, 8))
def create_topics(context: Context[_Parts], request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create topics, or only validate the request with `validate_only`.

    v4 default partitions and replicas (KIP-464) · v5 flexible, answers with the configuration · v7 topic ids
    """
    mutations = context.mutations(strict_since=6)
    times = Counter(topic.name for topic in request.topics)
    by_name = {topic.name: topic for topic in request.topics}
    results = []
    may_create = context.allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    requested = sum(_partitions(context, topic) for topic in request.topics if times[topic.name] == 1)
    for name, topic in by_name.items():
        try:
            if times[name] > 1:
                raise InvalidRequest(f"Topic {name!r} is named {times[name]} times in one request.")
            if not may_create:
                context.require(Operation.CREATE, ResourceType.TOPIC, name)
            _refuse_too_many(requested)
            made = _create(context, topic, mutations, validate_only=request.validate_only)
        except BrokerError as error:
            results.append(
                CreatableTopicResult(
                    name=name,
                    error_code=error.code,
                    error_message=error.message,
                    num_partitions=-1,
                    replication_factor=-1,
                    configs=(),
                )
            )
            continue
        if not context.allows(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name):
            results.append(
                CreatableTopicResult(
                    name=name,
                    topic_id=made.id,
                    error_message=None,
                    topic_config_error_code=TopicAuthorizationFailed.code,
                    num_partitions=-1,
                    replication_factor=-1,
                )
            )
            continue
        results.append(
            CreatableTopicResult(
                name=name,
                topic_id=made.id,
                num_partitions=made.partitions,
                replication_factor=1,
                configs=_settled(context, made),
            )
        )
    return CreateTopicsResponse(topics=results, throttle_time_ms=mutations.throttle_time_ms)


def _partitions(context: Context[_Parts], topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return context.broker.config.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)


def _refuse_too_many(requested: int) -> None:
    if requested > _MOST_PARTITIONS:
        raise PolicyViolation(f"{requested} partitions are wanted; one request may make {_MOST_PARTITIONS}.")


def _create(context: Context[_Parts], topic: CreatableTopic, mutations: Mutations, *, validate_only: bool) -> Topic:
    def create(*, validate_only: bool) -> Topic:
        return context.broker.topics.create(
            topic.name,
            partitions=topic.num_partitions,
            replication_factor=topic.replication_factor,
            assignment={assignment.partition_index: assignment.broker_ids for assignment in topic.assignments},
            configs={config.name: config.value for config in topic.configs},
            validate_only=validate_only,
        )

    if context.broker.quotas.active:
        # Only valid creations count against the quota.
        mutations.take(create(validate_only=True).partitions)
    return create(validate_only=validate_only)


def _settled(context: Context[_Parts], topic: Topic) -> list[CreatableTopicConfigs]:
    entries = context.broker.resources.topic_entries(topic.configs)
    return [
        CreatableTopicConfigs(
            name=entry.name, value=entry.value, config_source=entry.source, is_sensitive=entry.sensitive
        )
        for entry in entries
    ]


@routes.handles(ApiKey.DELETE_TOPICS, versions=range(1, 7))
def delete_topics(context: Context[_Parts], request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete topics with all their records, at once.

    v4 flexible · v5 error messages · v6 by id
    """
    by_name = [DeleteTopicState(name=name) for name in request.topic_names]
    topics = request.topics if context.version >= 6 else by_name
    accepted, refused = _sorted_out(context, topics)
    mutations = context.mutations(strict_since=5)
    responses = [*refused, *(_delete(context, topic, mutations) for topic in accepted)]
    return DeleteTopicsResponse(responses=responses, throttle_time_ms=mutations.throttle_time_ms)


def _sorted_out(
    context: Context[_Parts], topics: Sequence[DeleteTopicState]
) -> tuple[list[DeleteTopicState], list[DeletableTopicResult]]:
    """The topics that are named once and unambiguously, and answers for the rest, one for all equal names."""
    names = Counter(topic.name for topic in topics if topic.name is not None and topic.topic_id == ZERO_UUID)
    ids = Counter(topic.topic_id for topic in topics if topic.name is None and topic.topic_id != ZERO_UUID)
    accepted: list[DeleteTopicState] = []
    refused: dict[tuple[str | None, uuid.UUID], str] = {}
    for topic in topics:
        topic_id = context.broker.topics.id_of(topic.name) if topic.name is not None else None
        if topic.name is None and topic.topic_id == ZERO_UUID:
            refused[None, ZERO_UUID] = "Neither the name nor the id of a topic is given."
        elif topic.name is not None and topic.topic_id != ZERO_UUID:
            refused[topic.name, topic.topic_id] = "Both the name and the id of a topic are given: one is enough."
        elif topic.name is not None and names[topic.name] > 1:
            refused[topic.name, ZERO_UUID] = f"Topic {topic.name!r} is named {names[topic.name]} times in one request."
        elif ids[topic.topic_id] > 1:
            refused[None, topic.topic_id] = (
                f"Topic {topic.topic_id} is named {ids[topic.topic_id]} times in one request."
            )
        elif topic_id is not None and topic_id in ids:
            refused[topic.name, topic_id] = f"Topic {topic.name!r} is named by its id too."
        elif (name := context.broker.topics.name_of(topic.topic_id)) is None or name not in names:
            accepted.append(topic)
    return accepted, [
        DeletableTopicResult(name=name, topic_id=topic_id, error_code=InvalidRequest.code, error_message=text)
        for (name, topic_id), text in refused.items()
    ]


def _delete(context: Context[_Parts], deletion: DeleteTopicState, mutations: Mutations) -> DeletableTopicResult:
    broker = context.broker
    try:
        topic = deletion.topic_id if deletion.name is None else deletion.name
        _require_deletion(context, topic)
        mutations.take(broker.topics.find(topic).partitions)
        gone = broker.topics.delete(topic, broker.partitions, broker.groups)
    except BrokerError as error:
        name = deletion.name
        if name is None and isinstance(error, TopicAuthorizationFailed):
            known = broker.topics.name_of(deletion.topic_id) or ""
            name = known if context.allows(Operation.DESCRIBE, ResourceType.TOPIC, known) else None
        return DeletableTopicResult(
            name=name, topic_id=deletion.topic_id, error_code=error.code, error_message=error.message
        )
    broker.topic_metrics.forget(gone.name)
    broker.forget_shares(gone.id)
    return DeletableTopicResult(name=gone.name, topic_id=gone.id)


def _require_deletion(context: Context[_Parts], topic: str | uuid.UUID) -> None:
    if context.allows(Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME):
        return
    context.require_topic(Operation.DESCRIBE, topic)
    if isinstance(topic, uuid.UUID) or topic in context.broker.metadata.topics:
        context.require_topic(Operation.DELETE, topic)


@routes.handles(ApiKey.CREATE_PARTITIONS, versions=range(4))
def create_partitions(context: Context[_Parts], request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Give topics more partitions.

    v2 flexible
    """
    times = Counter(topic.name for topic in request.topics)
    once = {topic.name: topic for topic in request.topics}
    mutations = context.mutations(strict_since=3)
    sizes = ((topic.count, context.broker.metadata.topics.get(name)) for name, topic in once.items())
    requested = sum(max(count - there.partitions, 0) for count, there in sizes if there is not None)
    results = [
        _grow(context, topic, requested, mutations, validate_only=request.validate_only)
        if times[name] == 1
        else _twice(name)
        for name, topic in once.items()
    ]
    return CreatePartitionsResponse(results=results, throttle_time_ms=mutations.throttle_time_ms)


def _twice(name: str) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=InvalidRequest.code, error_message=f"Topic {name!r} is named twice in one request."
    )


def _grow(
    context: Context[_Parts], topic: CreatePartitionsTopic, requested: int, mutations: Mutations, *, validate_only: bool
) -> CreatePartitionsTopicResult:
    assignment = (
        None
        if topic.assignments is None
        else [partitions_assignment.broker_ids for partitions_assignment in topic.assignments]
    )
    try:
        context.require(Operation.ALTER, ResourceType.TOPIC, topic.name)
        _refuse_too_many(requested)
        topics = context.broker.topics
        if context.broker.quotas.active:
            topics.grow(topic.name, topic.count, assignment=assignment, validate_only=True)
            mutations.take(topic.count - topics.find(topic.name).partitions)
        topics.grow(topic.name, topic.count, assignment=assignment, validate_only=validate_only)
    except BrokerError as error:
        return CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
    return CreatePartitionsTopicResult(name=topic.name)


@routes.handles(ApiKey.DELETE_RECORDS, versions=range(3))
def delete_records(context: Context[_Parts], request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Delete the records of partitions below an offset (-1: all).

    v2 flexible
    """
    results = [
        DeleteRecordsTopicResult(
            name=topic.name,
            partitions=[
                _drop(context, topic.name, partition.partition_index, partition.offset)
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    try:
        context.broker.logs.checkpoint_start_offsets()
    except KafkaStorageError as error:
        # Otherwise the records would be back after a crash.
        for result in itertools.chain.from_iterable(topic.partitions for topic in results):
            result.error_code = result.error_code or error.code
    return DeleteRecordsResponse(topics=results)


def _drop(context: Context[_Parts], name: str, partition: int, before: int) -> DeleteRecordsPartitionResult:
    broker = context.broker
    try:
        context.require(Operation.DELETE, ResourceType.TOPIC, name)
        start = broker.topics.delete_records(name, partition, before, broker.partitions)
    except BrokerError as error:
        return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=-1, error_code=error.code)
    return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=start)
