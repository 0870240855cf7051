"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from broker.api.parts import Common, WithGroups, WithLogs
from broker.api.routes import Context, Pending, Routes
from broker.coordinator.committed_offset import CommittedOffset, TopicPartition
from broker.errors import (
    BrokerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from broker.protocol.api import ApiKey
from broker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from broker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from broker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from broker.protocol.primitives import ZERO_UUID
from broker.security.access import Operation, ResourceType

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithGroups, WithLogs, Protocol):
    """The parts of a broker that these handlers use."""


_TOPIC_IDS_SINCE: Final = 10
_ERROR_SINCE: Final = 2


@routes.handles(ApiKey.OFFSET_COMMIT, versions=range(2, 11))
def offset_commit(context: Context[_Parts], request: OffsetCommitRequest) -> OffsetCommitResponse | Pending:
    """Commit a group's offsets.

    v2-v4 retention time · v6 leader epochs · v7 static members · v8 flexible · v9 GROUP_ID_NOT_FOUND (KIP-848) · v10
    topic ids
    """
    now_ms = time.time_ns() // 1_000_000
    expires_ms = now_ms + request.retention_time_ms if request.retention_time_ms >= 0 else -1
    offsets: dict[TopicPartition, CommittedOffset] = {}
    unknown: dict[TopicPartition, BrokerError] = {}
    names = [_name_of(context, topic) for topic in request.topics]
    try:
        context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    except BrokerError as error:
        refused = {
            (name, partition.partition_index): error
            for name, topic in zip(names, request.topics, strict=True)
            for partition in topic.partitions
        }
        return _commit_response(request, names, refused)
    for name, topic in zip(names, request.topics, strict=True):
        hidden = _hidden(context, Operation.READ, name)
        for partition in topic.partitions:
            where = (name, partition.partition_index)
            if not name:
                continue
            if hidden is not None:
                unknown[where] = hidden
            elif context.broker.logs.get(*where) is None:
                unknown[where] = UnknownTopicOrPartition(
                    f"There is no partition {partition.partition_index} of topic {name!r}."
                )
            else:
                offsets[where] = _committed(partition, expires_ms, context.broker.topics.id_of(name))
    future = context.broker.groups.commit_offsets(
        request.group_id,
        offsets,
        generation=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        version=context.version,
    )

    def answer(results: Mapping[TopicPartition, BrokerError | None]) -> OffsetCommitResponse:
        return _commit_response(request, names, {**results, **unknown})

    def failed(error: BrokerError) -> OffsetCommitResponse:
        return _commit_response(request, names, dict.fromkeys(offsets, error) | unknown)

    return Pending(future, answer, failed)


def _hidden(context: Context[_Parts], operation: Operation, topic: str) -> BrokerError | None:
    """The error if the client may not perform the operation on a topic."""
    try:
        context.require_topic(operation, topic)
    except BrokerError as error:
        return error
    return None


def _name_of(context: Context[_Parts], topic: OffsetCommitRequestTopic) -> str:
    """The topic's name; empty if its id is unknown."""
    if context.version < _TOPIC_IDS_SINCE:
        return topic.name
    return context.broker.topics.name_of(topic.topic_id) or ""


def _committed(partition: OffsetCommitRequestPartition, expires_ms: int, topic_id: uuid.UUID | None) -> CommittedOffset:
    return CommittedOffset(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        topic_id,
        expire_timestamp_ms=expires_ms,
    )


def _commit_response(
    request: OffsetCommitRequest, names: Sequence[str], results: Mapping[TopicPartition, BrokerError | None]
) -> OffsetCommitResponse:
    topics = []
    for name, topic in zip(names, request.topics, strict=True):
        partitions = []
        for partition in topic.partitions:
            error = results.get((name, partition.partition_index)) or (None if name else UnknownTopicId())
            partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error.code if error else 0
                )
            )
        topics.append(OffsetCommitResponseTopic(name=name, topic_id=topic.topic_id, partitions=partitions))
    return OffsetCommitResponse(topics=topics)


@routes.handles(ApiKey.OFFSET_FETCH, versions=range(1, 11))
def offset_fetch(context: Context[_Parts], request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Return a group's committed offsets; -1 where it has none.

    v2 all topics, error code · v5 leader epochs · v6 flexible · v7 require stable · v8 several groups (KIP-709) · v9
    member epochs · v10 topic ids
    """
    if context.version >= 8:
        stable = request.require_stable
        return OffsetFetchResponse(groups=[_fetch_group(context, group, stable=stable) for group in request.groups])
    try:
        return _fetch_one(context, request)
    except BrokerError as error:
        if context.version >= _ERROR_SINCE:
            raise
        return _all_failed(request, error)


def _all_failed(request: OffsetFetchRequest, error: BrokerError) -> OffsetFetchResponse:
    """Version 1 has error codes only per partition."""
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=error.code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )


def _fetch_one(context: Context[_Parts], request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Answer versions 1 to 7, which name one group."""
    context.require(Operation.DESCRIBE, ResourceType.GROUP, request.group_id)
    topic_partitions = None
    if request.topics is not None:
        topic_partitions = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    result = context.broker.groups.fetch_offsets(request.group_id, topic_partitions)
    unstable = context.broker.groups.unstable_offsets(request.group_id) if request.require_stable else ()
    topics: dict[str, list[OffsetFetchResponsePartition]] = {}
    for name, index in topic_partitions if topic_partitions is not None else sorted(result):
        hidden = _hidden(context, Operation.DESCRIBE, name)
        if hidden is not None and topic_partitions is None:
            continue
        if hidden is None and (name, index) in unstable:
            hidden = UnstableOffsetCommit()
        committed = _NOTHING if hidden is not None else result.get((name, index), _NOTHING)
        topics.setdefault(name, []).append(
            OffsetFetchResponsePartition(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=hidden.code if hidden is not None else 0,
            )
        )
    return OffsetFetchResponse(
        topics=[OffsetFetchResponseTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
    )


_NOTHING: Final = CommittedOffset(-1)


def _fetch_group(context: Context[_Parts], group: OffsetFetchRequestGroup, *, stable: bool) -> OffsetFetchResponseGroup:
    """One group of v8 and later. A topic is identified by its name, since v10 by its id."""
    try:
        context.require(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
        result = context.broker.groups.fetch_offsets(
            group.group_id, member_id=group.member_id, member_epoch=group.member_epoch
        )
    except BrokerError as error:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error.code)
    unstable = context.broker.groups.unstable_offsets(group.group_id) if stable else ()
    topics: list[OffsetFetchResponseTopics] = []
    if group.topics is None:
        committed: dict[str, list[int]] = {}
        for name, index in sorted(result):
            committed.setdefault(name, []).append(index)
        topics += (
            _fetched(context, name, indexes, result, unstable)
            for name, indexes in committed.items()
            if _hidden(context, Operation.DESCRIBE, name) is None
        )
    else:
        for topic in group.topics:
            name_or_id = topic.topic_id if context.version >= _TOPIC_IDS_SINCE else topic.name
            topics.append(_fetched(context, name_or_id, topic.partition_indexes, result, unstable))
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _fetched(
    context: Context[_Parts],
    topic: str | uuid.UUID,
    indexes: Sequence[int],
    offsets: Mapping[TopicPartition, CommittedOffset],
    unstable: Collection[TopicPartition],
) -> OffsetFetchResponseTopics:
    topics = context.broker.topics
    name = topics.name_of(topic) if isinstance(topic, uuid.UUID) else topic
    topic_id = topic if isinstance(topic, uuid.UUID) else topics.id_of(topic) or ZERO_UUID
    error: BrokerError | None = UnknownTopicId() if name is None else _hidden(context, Operation.DESCRIBE, name)
    partitions = []
    for index in indexes:
        refusal = UnstableOffsetCommit() if error is None and (name or "", index) in unstable else error
        committed = _NOTHING if refusal else offsets.get((name or "", index), _NOTHING)
        partitions.append(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                metadata=committed.metadata,
                error_code=refusal.code if refusal else 0,
            )
        )
    return OffsetFetchResponseTopics(name=name or "", topic_id=topic_id, partitions=partitions)


@routes.handles(ApiKey.OFFSET_DELETE, versions=range(1))
def offset_delete(context: Context[_Parts], request: OffsetDeleteRequest) -> OffsetDeleteResponse | Pending:
    """Delete committed offsets of topics that the group's members do not subscribe to."""
    context.require(Operation.DELETE, ResourceType.GROUP, request.group_id)
    known: list[TopicPartition] = []
    unknown: dict[TopicPartition, int] = {}
    for topic in request.topics:
        hidden = _hidden(context, Operation.READ, topic.name)
        for partition in topic.partitions:
            where = (topic.name, partition.partition_index)
            if hidden is not None:
                unknown[where] = hidden.code
            elif context.broker.logs.get(*where) is None:
                unknown[where] = UnknownTopicOrPartition.code
            else:
                known.append(where)
    future = context.broker.groups.delete_offsets(request.group_id, known)

    def answer(results: Mapping[TopicPartition, BrokerError | None]) -> OffsetDeleteResponse:
        codes = {where: error.code if error else 0 for where, error in results.items()}
        codes |= unknown
        return OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=partition.partition_index,
                            error_code=codes[topic.name, partition.partition_index],
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return Pending(future, answer)
