# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "Assignment",
    "DescribedGroup",
    "Endpoint",
    "KeyValue",
    "Member",
    "StreamsGroupDescribeRequest",
    "StreamsGroupDescribeResponse",
    "Subtopology",
    "TaskIds",
    "TaskOffset",
    "TopicInfo",
    "Topology",
]


class StreamsGroupDescribeRequest(Request):
    __slots__ = (
        "group_ids",
        "include_authorized_operations",
    )
    API_KEY = 89
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="group_ids", kind="string", array=True),
        Field(name="include_authorized_operations", kind="bool"),
    )

    def __init__(self, *, group_ids: Sequence[str] = (), include_authorized_operations: bool = False) -> None:
        self.group_ids = group_ids
        self.include_authorized_operations = include_authorized_operations


class KeyValue(Message):
    __slots__ = (
        "key",
        "value",
    )
    FIELDS: ClassVar = (
        Field(name="key", kind="string"),
        Field(name="value", kind="string"),
    )

    def __init__(self, *, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value


class TopicInfo(Message):
    __slots__ = (
        "name",
        "partitions",
        "replication_factor",
        "topic_configs",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind="int32"),
        Field(name="replication_factor", kind="int16"),
        Field(name="topic_configs", kind=KeyValue, array=True),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: Sequence[KeyValue] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = topic_configs


class Subtopology(Message):
    __slots__ = (
        "subtopology_id",
        "source_topics",
        "repartition_sink_topics",
        "state_changelog_topics",
        "repartition_source_topics",
    )
    FIELDS: ClassVar = (
        Field(name="subtopology_id", kind="string"),
        Field(name="source_topics", kind="string", array=True),
        Field(name="repartition_sink_topics", kind="string", array=True),
        Field(name="state_changelog_topics", kind=TopicInfo, array=True),
        Field(name="repartition_source_topics", kind=TopicInfo, array=True),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: Sequence[str] = (),
        repartition_sink_topics: Sequence[str] = (),
        state_changelog_topics: Sequence[TopicInfo] = (),
        repartition_source_topics: Sequence[TopicInfo] = (),
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = source_topics
        self.repartition_sink_topics = repartition_sink_topics
        self.state_changelog_topics = state_changelog_topics
        self.repartition_source_topics = repartition_source_topics


class Topology(Message):
    __slots__ = (
        "epoch",
        "subtopologies",
    )
    FIELDS: ClassVar = (
        Field(name="epoch", kind="int32"),
        Field(name="subtopologies", kind=Subtopology, array=True, null_since=0),
    )

    def __init__(self, *, epoch: int = 0, subtopologies: Sequence[Subtopology] | None = ()) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies


class Endpoint(Message):
    __slots__ = (
        "host",
        "port",
    )
    FIELDS: ClassVar = (
        Field(name="host", kind="string"),
        Field(name="port", kind="uint16"),
    )

    def __init__(self, *, host: str = "", port: int = 0) -> None:
        self.host = host
        self.port = port


class TaskOffset(Message):
    __slots__ = (
        "subtopology_id",
        "partition",
        "offset",
    )
    FIELDS: ClassVar = (
        Field(name="subtopology_id", kind="string"),
        Field(name="partition", kind="int32"),
        Field(name="offset", kind="int64"),
    )

    def __init__(self, *, subtopology_id: str = "", partition: int = 0, offset: int = 0) -> None:
        self.subtopology_id = subtopology_id
        self.partition = partition
        self.offset = offset


class TaskIds(Message):
    __slots__ = (
        "subtopology_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="subtopology_id", kind="string"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(self, *, subtopology_id: str = "", partitions: Sequence[int] = ()) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = partitions


class Assignment(Message):
    __slots__ = (
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
    )
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


class Member(Message):
    __slots__ = (
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topology_epoch",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "assignment",
        "target_assignment",
        "is_classic",
    )
    FIELDS: ClassVar = (
        Field(name="member_id", kind="string"),
        Field(name="member_epoch", kind="int32"),
        Field(name="instance_id", kind="string", null_since=0),
        Field(name="rack_id", kind="string", null_since=0),
        Field(name="client_id", kind="string"),
        Field(name="client_host", kind="string"),
        Field(name="topology_epoch", kind="int32"),
        Field(name="process_id", kind="string"),
        Field(name="user_endpoint", kind=Endpoint, null_since=0),
        Field(name="client_tags", kind=KeyValue, array=True),
        Field(name="task_offsets", kind=TaskOffset, array=True),
        Field(name="task_end_offsets", kind=TaskOffset, array=True),
        Field(name="assignment", kind=Assignment),
        Field(name="target_assignment", kind=Assignment),
        Field(name="is_classic", kind="bool"),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: Sequence[KeyValue] = (),
        task_offsets: Sequence[TaskOffset] = (),
        task_end_offsets: Sequence[TaskOffset] = (),
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        is_classic: bool = False,
    ) -> None:
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.assignment = assignment if assignment is not None else Assignment()
        self.target_assignment = target_assignment if target_assignment is not None else Assignment()
        self.is_classic = is_classic


class DescribedGroup(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "topology",
        "members",
        "authorized_operations",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="group_id", kind="string"),
        Field(name="group_state", kind="string"),
        Field(name="group_epoch", kind="int32"),
        Field(name="assignment_epoch", kind="int32"),
        Field(name="topology", kind=Topology, null_since=0),
        Field(name="members", kind=Member, array=True),
        Field(name="authorized_operations", kind="int32"),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: Sequence[Member] = (),
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.topology = topology
        self.members = members
        self.authorized_operations = authorized_operations


class StreamsGroupDescribeResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    API_KEY = 89
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="groups", kind=DescribedGroup, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, groups: Sequence[DescribedGroup] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = groups
