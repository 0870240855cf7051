"""Topics for administrators: create, delete, add partitions, delete records."""

from __future__ import annotations

import itertools
import uuid
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
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
    WithSteps,
    WithTopicMetrics,
)
from broker.api.routes import Context, Pending, Routes, in_steps
from broker.errors import (
    BrokerError,
    InvalidRequest,
    KafkaStorageError,
    PolicyViolation,
    TopicAuthorizationFailed,
)
from broker.metadata.image import NewTopic, Topic
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
from broker.steps import Step

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
    WithSteps,
    WithTopicMetrics,
    Protocol,
):
    """The parts of a broker that these handlers use."""


_MOST_PARTITIONS: Final = 10_000
"""The most partitions that one request may create, because Kafka's controller limits records per request."""


_COMMITTED_TOGETHER: Final = 1000
"""Partitions of topics that one change creates: its records take 20 ms of the event loop."""


@routes.handles(ApiKey.CREATE_TOPICS, versions=range(2, 8))
def create_topics(context: Context[_Parts], request: CreateTopicsRequest) -> CreateTopicsResponse | Pending:
    """Create topics, or only validate the request with `validate_only`.

    v4 default partitions and replicas (KIP-464) · v5 flexible, answers with the configuration · v7 topic ids
    """
    return in_steps(context.broker.steps, _create_topics(context, request))


def _create_topics(
    context: Context[_Parts], request: CreateTopicsRequest
) -> Generator[Step, None, CreateTopicsResponse]:
    mutations = context.mutations(strict_since=6)
    times = Counter(topic.name for topic in request.topics)
    by_name = {topic.name: topic for topic in request.topics}
    results: dict[str, CreatableTopicResult] = dict.fromkeys(by_name, CreatableTopicResult())
    may_create = context.allows(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    requested = sum(_partitions(context, topic) for topic in request.topics if times[topic.name] == 1)
    topics = context.broker.topics
    together: list[NewTopic] = []
    for name, topic in by_name.items():
        try:
            if times[name] > 1:
                raise InvalidRequest(f"Topic {name!r} is named {times[name]} times in one request.")
            if not may_create:
                context.require(Operation.CREATE, ResourceType.TOPIC, name)
            _refuse_too_many(requested)
            new = topics.new(
                name,
                partitions=topic.num_partitions,
                replication_factor=topic.replication_factor,
                assignment={assignment.partition_index: assignment.broker_ids for assignment in topic.assignments},
                configs={config.name: config.value for config in topic.configs},
            )
            if context.broker.quotas.active:
                # Only valid creations count against the quota.
                mutations.take(new.partitions)
        except BrokerError as error:
            results[name] = _not_created(name, error)
            continue
        if request.validate_only:
            # As in Kafka the id is random and never used again.
            results[name] = _created(context, Topic(name, uuid.uuid4(), new.partitions, new.configs))
        else:
            together.append(new)
            if sum(topic.partitions for topic in together) >= _COMMITTED_TOGETHER:
                yield from _commit(context, together, results)
                together = []
        yield None
    yield from _commit(context, together, results)
    return CreateTopicsResponse(topics=list(results.values()), throttle_time_ms=mutations.throttle_time_ms)


def _commit(
    context: Context[_Parts], new: Sequence[NewTopic], results: dict[str, CreatableTopicResult]
) -> Generator[Step]:
    """Create topics and set their results."""
    if not new:
        return
    metadata = context.broker.metadata
    failed: Mapping[str, BrokerError]
    try:
        failed = yield from metadata.create_topics(new)
    except BrokerError as error:
        failed = {topic.name: error for topic in new}
    for name, *_ in new:
        results[name] = _not_created(name, failed[name]) if name in failed else _created(context, metadata.topics[name])
        yield None


def _not_created(name: str, error: BrokerError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        error_code=error.code,
        error_message=error.message,
        num_partitions=-1,
        replication_factor=-1,
        configs=(),
    )


def _created(context: Context[_Parts], topic: Topic) -> CreatableTopicResult:
    if not context.allows(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        return CreatableTopicResult(
            name=topic.name,
            topic_id=topic.id,
            error_message=None,
            topic_config_error_code=TopicAuthorizationFailed.code,
            num_partitions=-1,
            replication_factor=-1,
        )
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        num_partitions=topic.partitions,
        replication_factor=1,
        configs=_settled(context, topic),
    )


def _partitions(context: Context[_Parts], topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return context.broker.config.num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0)


def _refuse_too_many(requested: int) -> None:
    if requested > _MOST_PARTITIONS:
        raise PolicyViolation(f"{requested} partitions are wanted; one request may make {_MOST_PARTITIONS}.")


def _settled(context: Context[_Parts], topic: Topic) -> list[CreatableTopicConfigs]:
    entries = context.broker.resources.topic_entries(topic.configs)
    return [
        CreatableTopicConfigs(
            name=entry.name, value=entry.value, config_source=entry.source, is_sensitive=entry.sensitive
        )
        for entry in entries
    ]


@routes.handles(ApiKey.DELETE_TOPICS, versions=range(1, 7))
def delete_topics(context: Context[_Parts], request: DeleteTopicsRequest) -> DeleteTopicsResponse | Pending:
    """Delete topics with all their records, at once.

    v4 flexible · v5 error messages · v6 by id
    """
    return in_steps(context.broker.steps, _delete_topics(context, request))


def _delete_topics(
    context: Context[_Parts], request: DeleteTopicsRequest
) -> Generator[Step, None, DeleteTopicsResponse]:
    by_name = [DeleteTopicState(name=name) for name in request.topic_names]
    topics = request.topics if context.version >= 6 else by_name
    accepted, responses = _sorted_out(context, topics)
    mutations = context.mutations(strict_since=5)
    gone = []
    for deletion in accepted:
        try:
            gone.append(_deletable(context, deletion, mutations))
        except BrokerError as error:
            responses.append(_not_deleted(context, deletion, error))
        yield None
    try:
        yield from context.broker.topics.delete(gone, context.broker.partitions, context.broker.groups)
    except BrokerError as error:
        responses += [
            DeletableTopicResult(name=topic.name, topic_id=topic.id, error_code=error.code, error_message=error.message)
            for topic in gone
        ]
    else:
        for topic in gone:
            context.broker.topic_metrics.forget(topic.name)
            context.broker.forget_shares(topic.id)
            responses.append(DeletableTopicResult(name=topic.name, topic_id=topic.id))
            yield None
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


def _deletable(context: Context[_Parts], deletion: DeleteTopicState, mutations: Mutations) -> Topic:
    topic = deletion.topic_id if deletion.name is None else deletion.name
    _require_deletion(context, topic)
    found = context.broker.topics.find(topic)
    mutations.take(found.partitions)
    context.broker.topics.require_deletable(found)
    return found


def _not_deleted(context: Context[_Parts], deletion: DeleteTopicState, error: BrokerError) -> DeletableTopicResult:
    name = deletion.name
    if name is None and isinstance(error, TopicAuthorizationFailed):
        known = context.broker.topics.name_of(deletion.topic_id) or ""
        name = known if context.allows(Operation.DESCRIBE, ResourceType.TOPIC, known) else None
    return DeletableTopicResult(
        name=name, topic_id=deletion.topic_id, error_code=error.code, error_message=error.message
    )


def _require_deletion(context: Context[_Parts], topic: str | uuid.UUID) -> None:
    if context.allows(Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME):
        return
    context.require_topic(Operation.DESCRIBE, topic)
    if isinstance(topic, uuid.UUID) or topic in context.broker.metadata.topics:
        context.require_topic(Operation.DELETE, topic)


@routes.handles(ApiKey.CREATE_PARTITIONS, versions=range(4))
def create_partitions(context: Context[_Parts], request: CreatePartitionsRequest) -> CreatePartitionsResponse | Pending:
    """Give topics more partitions.

    v2 flexible
    """
    return in_steps(context.broker.steps, _create_partitions(context, request))


def _create_partitions(
    context: Context[_Parts], request: CreatePartitionsRequest
) -> Generator[Step, None, CreatePartitionsResponse]:
    times = Counter(topic.name for topic in request.topics)
    once = {topic.name: topic for topic in request.topics}
    mutations = context.mutations(strict_since=3)
    sizes = ((topic.count, context.broker.metadata.topics.get(name)) for name, topic in once.items())
    requested = sum(max(count - there.partitions, 0) for count, there in sizes if there is not None)
    results = []
    for name, topic in once.items():
        if times[name] > 1:
            results.append(_twice(name))
            continue
        grown = yield from _grow(context, topic, requested, mutations, validate_only=request.validate_only)
        results.append(grown)
    return CreatePartitionsResponse(results=results, throttle_time_ms=mutations.throttle_time_ms)


def _twice(name: str) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(
        name=name, error_code=InvalidRequest.code, error_message=f"Topic {name!r} is named twice in one request."
    )


def _grow(
    context: Context[_Parts], topic: CreatePartitionsTopic, requested: int, mutations: Mutations, *, validate_only: bool
) -> Generator[Step, None, CreatePartitionsTopicResult]:
    assignment = (
        None
        if topic.assignments is None
        else [partitions_assignment.broker_ids for partitions_assignment in topic.assignments]
    )
    try:
        context.require(Operation.ALTER, ResourceType.TOPIC, topic.name)
        _refuse_too_many(requested)
        more = context.broker.topics.growth(topic.name, topic.count, assignment=assignment)
        if context.broker.quotas.active:
            mutations.take(more)
        if not validate_only:
            yield from context.broker.metadata.grow_topic(topic.name, topic.count)
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
