"""The records of streams groups (KIP-1071) in ``__consumer_offsets``: the definitions of Kafka's group coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from broker.groups.modern.records import GroupKey, MemberKey, RecordTypes, RecordValue, TargetAssignmentMetadataValue
from broker.protocol.schema import Field, Message

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


class StreamsGroupMetadataKey(GroupKey):
    __slots__ = ()
    API_KEY = 17


class LastAssignmentConfig(Message):
    __slots__ = ("key", "value")
    FIELDS: ClassVar = (
        Field(name="key", kind="string"),
        Field(name="value", kind="string"),
    )

    def __init__(self, *, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value


class StreamsGroupMetadataValue(RecordValue):
    __slots__ = ("epoch", "last_assignment_configs", "metadata_hash", "validated_topology_epoch")
    API_KEY = 17
    FIELDS: ClassVar = (
        Field(name="epoch", kind="int32"),
        Field(name="metadata_hash", kind="int64"),
        Field(name="validated_topology_epoch", kind="int32", tag=0),
        Field(name="last_assignment_configs", kind=LastAssignmentConfig, array=True, null_since=0, tag=1),
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: Sequence[LastAssignmentConfig] | None = (),
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.last_assignment_configs = last_assignment_configs


class StreamsGroupMemberMetadataKey(MemberKey):
    __slots__ = ()
    API_KEY = 19


class Endpoint(Message):
    __slots__ = ("host", "port")
    FIELDS: ClassVar = (
        Field(name="host", kind="string"),
        Field(name="port", kind="uint16"),
    )

    def __init__(self, *, host: str = "", port: int = 0) -> None:
        self.host = host
        self.port = port


class KeyValue(Message):
    __slots__ = ("key", "value")
    FIELDS: ClassVar = (
        Field(name="key", kind="string"),
        Field(name="value", kind="string"),
    )

    def __init__(self, *, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value


class StreamsGroupMemberMetadataValue(RecordValue):
    __slots__ = (
        "client_host",
        "client_id",
        "client_tags",
        "instance_id",
        "process_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology_epoch",
        "user_endpoint",
    )
    API_KEY = 19
    FIELDS: ClassVar = (
        Field(name="instance_id", kind="string", null_since=0),
        Field(name="rack_id", kind="string", null_since=0),
        Field(name="client_id", kind="string"),
        Field(name="client_host", kind="string"),
        Field(name="rebalance_timeout_ms", kind="int32"),
        Field(name="topology_epoch", kind="int32"),
        Field(name="process_id", kind="string"),
        Field(name="user_endpoint", kind=Endpoint, null_since=0),
        Field(name="client_tags", kind=KeyValue, array=True),
    )

    def __init__(
        self,
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: Sequence[KeyValue] = (),
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags


class StreamsGroupTargetAssignmentMetadataKey(GroupKey):
    __slots__ = ()
    API_KEY = 20


class StreamsGroupTargetAssignmentMetadataValue(TargetAssignmentMetadataValue):
    __slots__ = ()
    API_KEY = 20


class StreamsGroupTargetAssignmentMemberKey(MemberKey):
    __slots__ = ()
    API_KEY = 21


class TaskIds(Message):
    __slots__ = ("partitions", "subtopology_id")
    FIELDS: ClassVar = (
        Field(name="subtopology_id", kind="string"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(self, *, subtopology_id: str = "", partitions: Sequence[int] = ()) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = partitions


class StreamsGroupTargetAssignmentMemberValue(RecordValue):
    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")
    API_KEY = 21
    FIELDS: ClassVar = (
        Field(name="active_tasks", kind=TaskIds, array=True),
        Field(name="standby_tasks", kind=TaskIds, array=True),
        Field(name="warmup_tasks", kind=TaskIds, array=True),
    )

    def __init__(
        self,
        *,
        active_tasks: Sequence[TaskIds] = (),
        standby_tasks: Sequence[TaskIds] = (),
        warmup_tasks: Sequence[TaskIds] = (),
    ) -> None:
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks


class StreamsGroupCurrentMemberAssignmentKey(MemberKey):
    __slots__ = ()
    API_KEY = 22


class CurrentMemberAssignmentTaskIds(Message):
    __slots__ = ("assignment_epochs", "partitions", "subtopology_id")
    FIELDS: ClassVar = (
        Field(name="subtopology_id", kind="string"),
        Field(name="partitions", kind="int32", array=True),
        Field(name="assignment_epochs", kind="int32", array=True, null_since=0, tag=0),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: Sequence[int] = (),
        assignment_epochs: Sequence[int] | None = (),
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = partitions
        self.assignment_epochs = assignment_epochs


class StreamsGroupCurrentMemberAssignmentValue(RecordValue):
    __slots__ = (
        "active_tasks",
        "active_tasks_pending_revocation",
        "member_epoch",
        "previous_member_epoch",
        "standby_tasks",
        "standby_tasks_pending_revocation",
        "state",
        "warmup_tasks",
        "warmup_tasks_pending_revocation",
    )
    API_KEY = 22
    FIELDS: ClassVar = (
        Field(name="member_epoch", kind="int32"),
        Field(name="previous_member_epoch", kind="int32"),
        Field(name="state", kind="int8"),
        Field(name="active_tasks", kind=CurrentMemberAssignmentTaskIds, array=True),
        Field(name="standby_tasks", kind=CurrentMemberAssignmentTaskIds, array=True),
        Field(name="warmup_tasks", kind=CurrentMemberAssignmentTaskIds, array=True),
        Field(name="active_tasks_pending_revocation", kind=CurrentMemberAssignmentTaskIds, array=True),
        Field(name="standby_tasks_pending_revocation", kind=CurrentMemberAssignmentTaskIds, array=True),
        Field(name="warmup_tasks_pending_revocation", kind=CurrentMemberAssignmentTaskIds, array=True),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: Sequence[CurrentMemberAssignmentTaskIds] = (),
        standby_tasks: Sequence[CurrentMemberAssignmentTaskIds] = (),
        warmup_tasks: Sequence[CurrentMemberAssignmentTaskIds] = (),
        active_tasks_pending_revocation: Sequence[CurrentMemberAssignmentTaskIds] = (),
        standby_tasks_pending_revocation: Sequence[CurrentMemberAssignmentTaskIds] = (),
        warmup_tasks_pending_revocation: Sequence[CurrentMemberAssignmentTaskIds] = (),
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.active_tasks_pending_revocation = active_tasks_pending_revocation
        self.standby_tasks_pending_revocation = standby_tasks_pending_revocation
        self.warmup_tasks_pending_revocation = warmup_tasks_pending_revocation


class StreamsGroupTopologyKey(GroupKey):
    __slots__ = ()
    API_KEY = 23


class TopicConfig(Message):
    __slots__ = ("key", "value")
    FIELDS: ClassVar = (
        Field(name="key", kind="string"),
        Field(name="value", kind="string"),
    )

    def __init__(self, *, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value


class TopicInfo(Message):
    __slots__ = ("name", "partitions", "replication_factor", "topic_configs")
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind="int32"),
        Field(name="replication_factor", kind="int16"),
        Field(name="topic_configs", kind=TopicConfig, array=True),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: Sequence[TopicConfig] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = topic_configs


class CopartitionGroup(Message):
    __slots__ = ("repartition_source_topics", "source_topic_regex", "source_topics")
    FIELDS: ClassVar = (
        Field(name="source_topics", kind="int16", array=True),
        Field(name="source_topic_regex", kind="int16", array=True),
        Field(name="repartition_source_topics", kind="int16", array=True),
    )

    def __init__(
        self,
        *,
        source_topics: Sequence[int] = (),
        source_topic_regex: Sequence[int] = (),
        repartition_source_topics: Sequence[int] = (),
    ) -> None:
        self.source_topics = source_topics
        self.source_topic_regex = source_topic_regex
        self.repartition_source_topics = repartition_source_topics


class Subtopology(Message):
    __slots__ = (
        "copartition_groups",
        "repartition_sink_topics",
        "repartition_source_topics",
        "source_topic_regex",
        "source_topics",
        "state_changelog_topics",
        "subtopology_id",
    )
    FIELDS: ClassVar = (
        Field(name="subtopology_id", kind="string"),
        Field(name="source_topics", kind="string", array=True),
        Field(name="source_topic_regex", kind="string", array=True),
        Field(name="state_changelog_topics", kind=TopicInfo, array=True),
        Field(name="repartition_sink_topics", kind="string", array=True),
        Field(name="repartition_source_topics", kind=TopicInfo, array=True),
        Field(name="copartition_groups", kind=CopartitionGroup, array=True),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: Sequence[str] = (),
        source_topic_regex: Sequence[str] = (),
        state_changelog_topics: Sequence[TopicInfo] = (),
        repartition_sink_topics: Sequence[str] = (),
        repartition_source_topics: Sequence[TopicInfo] = (),
        copartition_groups: Sequence[CopartitionGroup] = (),
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = source_topics
        self.source_topic_regex = source_topic_regex
        self.state_changelog_topics = state_changelog_topics
        self.repartition_sink_topics = repartition_sink_topics
        self.repartition_source_topics = repartition_source_topics
        self.copartition_groups = copartition_groups


class StreamsGroupTopologyValue(RecordValue):
    __slots__ = ("epoch", "subtopologies")
    API_KEY = 23
    FIELDS: ClassVar = (
        Field(name="epoch", kind="int32"),
        Field(name="subtopologies", kind=Subtopology, array=True),
    )

    def __init__(self, *, epoch: int = 0, subtopologies: Sequence[Subtopology] = ()) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies


RECORDS: Final[RecordTypes] = {
    StreamsGroupMetadataKey.API_KEY: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    StreamsGroupMemberMetadataKey.API_KEY: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    StreamsGroupTargetAssignmentMetadataKey.API_KEY: (
        StreamsGroupTargetAssignmentMetadataKey,
        StreamsGroupTargetAssignmentMetadataValue,
    ),
    StreamsGroupTargetAssignmentMemberKey.API_KEY: (
        StreamsGroupTargetAssignmentMemberKey,
        StreamsGroupTargetAssignmentMemberValue,
    ),
    StreamsGroupCurrentMemberAssignmentKey.API_KEY: (
        StreamsGroupCurrentMemberAssignmentKey,
        StreamsGroupCurrentMemberAssignmentValue,
    ),
    StreamsGroupTopologyKey.API_KEY: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}
"""What is in the log, by the type number its keys begin with."""
