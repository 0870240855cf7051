"""The records of streams groups (KIP-1071) in ``__consumer_offsets``: the definitions of Kafka's group coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.coordinator.records import RecordValue
from broker.groups.modern.records import (
    GroupKey,
    MemberKey,
    TargetAssignmentMetadataValue,
    record_types,
)
from broker.protocol.declare import structure, wire
from broker.protocol.schema import Message

__all__ = [
    "RECORDS",
    "CopartitionGroup",
    "CurrentMemberAssignmentTaskIds",
    "Endpoint",
    "KeyValue",
    "LastAssignmentConfig",
    "StreamsGroupCurrentMemberAssignmentKey",
    "StreamsGroupCurrentMemberAssignmentValue",
    "StreamsGroupMemberMetadataKey",
    "StreamsGroupMemberMetadataValue",
    "StreamsGroupMetadataKey",
    "StreamsGroupMetadataValue",
    "StreamsGroupTargetAssignmentMemberKey",
    "StreamsGroupTargetAssignmentMemberValue",
    "StreamsGroupTargetAssignmentMetadataKey",
    "StreamsGroupTargetAssignmentMetadataValue",
    "StreamsGroupTopologyKey",
    "StreamsGroupTopologyValue",
    "Subtopology",
    "TaskIds",
    "TopicConfig",
    "TopicInfo",
]


@structure
class StreamsGroupMetadataKey(GroupKey):
    API_KEY = 17


@structure
class LastAssignmentConfig(Message):
    key: str = wire("string")
    value: str = wire("string")


@structure
class StreamsGroupMetadataValue(RecordValue):
    epoch: int = wire("int32")
    metadata_hash: int = wire("int64")
    validated_topology_epoch: int = wire("int32", tag=0, default=-1)
    last_assignment_configs: Sequence[LastAssignmentConfig] | None = wire(
        LastAssignmentConfig, array=True, null_since=0, tag=1
    )


@structure
class StreamsGroupMemberMetadataKey(MemberKey):
    API_KEY = 19


@structure
class Endpoint(Message):
    host: str = wire("string")
    port: int = wire("uint16")


@structure
class KeyValue(Message):
    key: str = wire("string")
    value: str = wire("string")


@structure
class StreamsGroupMemberMetadataValue(RecordValue):
    instance_id: str | None = wire("string", null_since=0, default=None)
    rack_id: str | None = wire("string", null_since=0, default=None)
    client_id: str = wire("string")
    client_host: str = wire("string")
    rebalance_timeout_ms: int = wire("int32", default=-1)
    topology_epoch: int = wire("int32")
    process_id: str = wire("string")
    user_endpoint: Endpoint | None = wire(Endpoint, null_since=0, default=None)
    client_tags: Sequence[KeyValue] = wire(KeyValue, array=True)


@structure
class StreamsGroupTargetAssignmentMetadataKey(GroupKey):
    API_KEY = 20


@structure
class StreamsGroupTargetAssignmentMetadataValue(TargetAssignmentMetadataValue):
    pass


@structure
class StreamsGroupTargetAssignmentMemberKey(MemberKey):
    API_KEY = 21


@structure
class TaskIds(Message):
    subtopology_id: str = wire("string")
    partitions: Sequence[int] = wire("int32", array=True)


@structure
class StreamsGroupTargetAssignmentMemberValue(RecordValue):
    active_tasks: Sequence[TaskIds] = wire(TaskIds, array=True)
    standby_tasks: Sequence[TaskIds] = wire(TaskIds, array=True)
    warmup_tasks: Sequence[TaskIds] = wire(TaskIds, array=True)


@structure
class StreamsGroupCurrentMemberAssignmentKey(MemberKey):
    API_KEY = 22


@structure
class CurrentMemberAssignmentTaskIds(Message):
    subtopology_id: str = wire("string")
    partitions: Sequence[int] = wire("int32", array=True)
    assignment_epochs: Sequence[int] | None = wire("int32", array=True, null_since=0, tag=0, default=())


@structure
class StreamsGroupCurrentMemberAssignmentValue(RecordValue):
    member_epoch: int = wire("int32")
    previous_member_epoch: int = wire("int32")
    state: int = wire("int8")
    active_tasks: Sequence[CurrentMemberAssignmentTaskIds] = wire(CurrentMemberAssignmentTaskIds, array=True)
    standby_tasks: Sequence[CurrentMemberAssignmentTaskIds] = wire(CurrentMemberAssignmentTaskIds, array=True)
    warmup_tasks: Sequence[CurrentMemberAssignmentTaskIds] = wire(CurrentMemberAssignmentTaskIds, array=True)
    active_tasks_pending_revocation: Sequence[CurrentMemberAssignmentTaskIds] = wire(
        CurrentMemberAssignmentTaskIds, array=True
    )
    standby_tasks_pending_revocation: Sequence[CurrentMemberAssignmentTaskIds] = wire(
        CurrentMemberAssignmentTaskIds, array=True
    )
    warmup_tasks_pending_revocation: Sequence[CurrentMemberAssignmentTaskIds] = wire(
        CurrentMemberAssignmentTaskIds, array=True
    )


@structure
class StreamsGroupTopologyKey(GroupKey):
    API_KEY = 23


@structure
class TopicConfig(Message):
    key: str = wire("string")
    value: str = wire("string")


@structure
class TopicInfo(Message):
    name: str = wire("string")
    partitions: int = wire("int32")
    replication_factor: int = wire("int16")
    topic_configs: Sequence[TopicConfig] = wire(TopicConfig, array=True)


@structure
class CopartitionGroup(Message):
    source_topics: Sequence[int] = wire("int16", array=True)
    source_topic_regex: Sequence[int] = wire("int16", array=True)
    repartition_source_topics: Sequence[int] = wire("int16", array=True)


@structure
class Subtopology(Message):
    subtopology_id: str = wire("string")
    source_topics: Sequence[str] = wire("string", array=True)
    source_topic_regex: Sequence[str] = wire("string", array=True)
    state_changelog_topics: Sequence[TopicInfo] = wire(TopicInfo, array=True)
    repartition_sink_topics: Sequence[str] = wire("string", array=True)
    repartition_source_topics: Sequence[TopicInfo] = wire(TopicInfo, array=True)
    copartition_groups: Sequence[CopartitionGroup] = wire(CopartitionGroup, array=True)


@structure
class StreamsGroupTopologyValue(RecordValue):
    epoch: int = wire("int32")
    subtopologies: Sequence[Subtopology] = wire(Subtopology, array=True)


RECORDS: Final = record_types(
    (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
)
"""The record types of streams groups, by the type number in their keys."""
