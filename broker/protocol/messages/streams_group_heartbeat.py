# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "CopartitionGroup",
    "Endpoint",
    "EndpointToPartitions",
    "KeyValue",
    "ResponseEndpoint",
    "ResponseTaskIds",
    "Status",
    "StreamsGroupHeartbeatRequest",
    "StreamsGroupHeartbeatResponse",
    "Subtopology",
    "TaskIds",
    "TaskOffset",
    "TopicInfo",
    "TopicPartition",
    "Topology",
]


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


class CopartitionGroup(Message):
    __slots__ = (
        "source_topics",
        "source_topic_regex",
        "repartition_source_topics",
    )
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
        "subtopology_id",
        "source_topics",
        "source_topic_regex",
        "state_changelog_topics",
        "repartition_sink_topics",
        "repartition_source_topics",
        "copartition_groups",
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


class Topology(Message):
    __slots__ = (
        "epoch",
        "subtopologies",
    )
    FIELDS: ClassVar = (
        Field(name="epoch", kind="int32"),
        Field(name="subtopologies", kind=Subtopology, array=True),
    )

    def __init__(self, *, epoch: int = 0, subtopologies: Sequence[Subtopology] = ()) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies


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


class StreamsGroupHeartbeatRequest(Request):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "endpoint_information_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "topology",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "process_id",
        "user_endpoint",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
        "shutdown_application",
    )
    API_KEY = 88
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="member_id", kind="string"),
        Field(name="member_epoch", kind="int32"),
        Field(name="endpoint_information_epoch", kind="int32"),
        Field(name="instance_id", kind="string", null_since=0),
        Field(name="rack_id", kind="string", null_since=0),
        Field(name="rebalance_timeout_ms", kind="int32"),
        Field(name="topology", kind=Topology, null_since=0),
        Field(name="active_tasks", kind=TaskIds, array=True, null_since=0),
        Field(name="standby_tasks", kind=TaskIds, array=True, null_since=0),
        Field(name="warmup_tasks", kind=TaskIds, array=True, null_since=0),
        Field(name="process_id", kind="string", null_since=0),
        Field(name="user_endpoint", kind=Endpoint, null_since=0),
        Field(name="client_tags", kind=KeyValue, array=True, null_since=0),
        Field(name="task_offsets", kind=TaskOffset, array=True, null_since=0),
        Field(name="task_end_offsets", kind=TaskOffset, array=True, null_since=0),
        Field(name="shutdown_application", kind="bool"),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: Sequence[TaskIds] | None = (),
        standby_tasks: Sequence[TaskIds] | None = (),
        warmup_tasks: Sequence[TaskIds] | None = (),
        process_id: str | None = None,
        user_endpoint: Endpoint | None = None,
        client_tags: Sequence[KeyValue] | None = (),
        task_offsets: Sequence[TaskOffset] | None = (),
        task_end_offsets: Sequence[TaskOffset] | None = (),
        shutdown_application: bool = False,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application


class Status(Message):
    __slots__ = (
        "status_code",
        "status_detail",
    )
    FIELDS: ClassVar = (
        Field(name="status_code", kind="int8"),
        Field(name="status_detail", kind="string"),
    )

    def __init__(self, *, status_code: int = 0, status_detail: str = "") -> None:
        self.status_code = status_code
        self.status_detail = status_detail


class ResponseTaskIds(Message):
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


class ResponseEndpoint(Message):
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


class TopicPartition(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic", kind="string"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic = topic
        self.partitions = partitions


class EndpointToPartitions(Message):
    __slots__ = (
        "user_endpoint",
        "active_partitions",
        "standby_partitions",
    )
    FIELDS: ClassVar = (
        Field(name="user_endpoint", kind=ResponseEndpoint),
        Field(name="active_partitions", kind=TopicPartition, array=True),
        Field(name="standby_partitions", kind=TopicPartition, array=True),
    )

    def __init__(
        self,
        *,
        user_endpoint: ResponseEndpoint | None = None,
        active_partitions: Sequence[TopicPartition] = (),
        standby_partitions: Sequence[TopicPartition] = (),
    ) -> None:
        self.user_endpoint = user_endpoint if user_endpoint is not None else ResponseEndpoint()
        self.active_partitions = active_partitions
        self.standby_partitions = standby_partitions


class StreamsGroupHeartbeatResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "acceptable_recovery_lag",
        "task_offset_interval_ms",
        "status",
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "endpoint_information_epoch",
        "partitions_by_user_endpoint",
    )
    API_KEY = 88
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="member_id", kind="string"),
        Field(name="member_epoch", kind="int32"),
        Field(name="heartbeat_interval_ms", kind="int32"),
        Field(name="acceptable_recovery_lag", kind="int32"),
        Field(name="task_offset_interval_ms", kind="int32"),
        Field(name="status", kind=Status, array=True, null_since=0),
        Field(name="active_tasks", kind=ResponseTaskIds, array=True, null_since=0),
        Field(name="standby_tasks", kind=ResponseTaskIds, array=True, null_since=0),
        Field(name="warmup_tasks", kind=ResponseTaskIds, array=True, null_since=0),
        Field(name="endpoint_information_epoch", kind="int32"),
        Field(name="partitions_by_user_endpoint", kind=EndpointToPartitions, array=True, null_since=0),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: Sequence[Status] | None = (),
        active_tasks: Sequence[ResponseTaskIds] | None = (),
        standby_tasks: Sequence[ResponseTaskIds] | None = (),
        warmup_tasks: Sequence[ResponseTaskIds] | None = (),
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: Sequence[EndpointToPartitions] | None = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.task_offset_interval_ms = task_offset_interval_ms
        self.status = status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint
