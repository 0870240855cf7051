# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "CreatableReplicaAssignment",
    "CreatableTopic",
    "CreatableTopicConfig",
    "CreatableTopicConfigs",
    "CreatableTopicResult",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
]


class CreatableReplicaAssignment(Message):
    __slots__ = (
        "partition_index",
        "broker_ids",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=2),
        Field(name="broker_ids", kind="int32", array=True, since=2),
    )

    def __init__(self, *, partition_index: int = 0, broker_ids: Sequence[int] = ()) -> None:
        self.partition_index = partition_index
        self.broker_ids = broker_ids


class CreatableTopicConfig(Message):
    __slots__ = (
        "name",
        "value",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=2),
        Field(name="value", kind="string", since=2, null_since=2),
    )

    def __init__(self, *, name: str = "", value: str | None = "") -> None:
        self.name = name
        self.value = value


class CreatableTopic(Message):
    __slots__ = (
        "name",
        "num_partitions",
        "replication_factor",
        "assignments",
        "configs",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=2),
        Field(name="num_partitions", kind="int32", since=2),
        Field(name="replication_factor", kind="int16", since=2),
        Field(name="assignments", kind=CreatableReplicaAssignment, array=True, since=2),
        Field(name="configs", kind=CreatableTopicConfig, array=True, since=2),
    )

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: Sequence[CreatableReplicaAssignment] = (),
        configs: Sequence[CreatableTopicConfig] = (),
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = assignments
        self.configs = configs


class CreateTopicsRequest(Request):
    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )
    API_KEY = 19
    FLEXIBLE_SINCE = 5
    FIELDS: ClassVar = (
        Field(name="topics", kind=CreatableTopic, array=True, since=2),
        Field(name="timeout_ms", kind="int32", since=2),
        Field(name="validate_only", kind="bool", since=2),
    )

    def __init__(
        self, *, topics: Sequence[CreatableTopic] = (), timeout_ms: int = 60000, validate_only: bool = False
    ) -> None:
        self.topics = topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatableTopicConfigs(Message):
    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=5),
        Field(name="value", kind="string", since=5, null_since=5),
        Field(name="read_only", kind="bool", since=5),
        Field(name="config_source", kind="int8", since=5),
        Field(name="is_sensitive", kind="bool", since=5),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


class CreatableTopicResult(Message):
    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "topic_config_error_code",
        "num_partitions",
        "replication_factor",
        "configs",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=2),
        Field(name="topic_id", kind="uuid", since=7),
        Field(name="error_code", kind="int16", since=2),
        Field(name="error_message", kind="string", since=2, null_since=2),
        Field(name="topic_config_error_code", kind="int16", since=5, tag=0),
        Field(name="num_partitions", kind="int32", since=5),
        Field(name="replication_factor", kind="int16", since=5),
        Field(name="configs", kind=CreatableTopicConfigs, array=True, since=5, null_since=5),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: Sequence[CreatableTopicConfigs] | None = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = configs


class CreateTopicsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 19
    FLEXIBLE_SINCE = 5
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=2),
        Field(name="topics", kind=CreatableTopicResult, array=True, since=2),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[CreatableTopicResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
