# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "Assignment",
    "ConsumerGroupHeartbeatRequest",
    "ConsumerGroupHeartbeatResponse",
    "ResponseTopicPartitions",
    "TopicPartitions",
]


class TopicPartitions(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic_id = topic_id
        self.partitions = partitions


class ConsumerGroupHeartbeatRequest(Request):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
    )
    API_KEY = 68
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="member_id", kind="string"),
        Field(name="member_epoch", kind="int32"),
        Field(name="instance_id", kind="string", null_since=0),
        Field(name="rack_id", kind="string", null_since=0),
        Field(name="rebalance_timeout_ms", kind="int32"),
        Field(name="subscribed_topic_names", kind="string", array=True, null_since=0),
        Field(name="subscribed_topic_regex", kind="string", since=1, null_since=1),
        Field(name="server_assignor", kind="string", null_since=0),
        Field(name="topic_partitions", kind=TopicPartitions, array=True, null_since=0),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: Sequence[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: Sequence[TopicPartitions] | None = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions


class ResponseTopicPartitions(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic_id = topic_id
        self.partitions = partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    FIELDS: ClassVar = (Field(name="topic_partitions", kind=ResponseTopicPartitions, array=True),)

    def __init__(self, *, topic_partitions: Sequence[ResponseTopicPartitions] = ()) -> None:
        self.topic_partitions = topic_partitions


class ConsumerGroupHeartbeatResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )
    API_KEY = 68
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="member_id", kind="string", null_since=0),
        Field(name="member_epoch", kind="int32"),
        Field(name="heartbeat_interval_ms", kind="int32"),
        Field(name="assignment", kind=Assignment, null_since=0),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment
