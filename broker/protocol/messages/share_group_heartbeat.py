# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["Assignment", "ShareGroupHeartbeatRequest", "ShareGroupHeartbeatResponse", "TopicPartitions"]


class ShareGroupHeartbeatRequest(Request):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "rack_id",
        "subscribed_topic_names",
    )
    API_KEY = 76
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string", since=1),
        Field(name="member_id", kind="string", since=1),
        Field(name="member_epoch", kind="int32", since=1),
        Field(name="rack_id", kind="string", since=1, null_since=1),
        Field(name="subscribed_topic_names", kind="string", array=True, since=1, null_since=1),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: Sequence[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names


class TopicPartitions(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid", since=1),
        Field(name="partitions", kind="int32", array=True, since=1),
    )

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic_id = topic_id
        self.partitions = partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    FIELDS: ClassVar = (Field(name="topic_partitions", kind=TopicPartitions, array=True, since=1),)

    def __init__(self, *, topic_partitions: Sequence[TopicPartitions] = ()) -> None:
        self.topic_partitions = topic_partitions


class ShareGroupHeartbeatResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )
    API_KEY = 76
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="error_code", kind="int16", since=1),
        Field(name="error_message", kind="string", since=1, null_since=1),
        Field(name="member_id", kind="string", since=1, null_since=1),
        Field(name="member_epoch", kind="int32", since=1),
        Field(name="heartbeat_interval_ms", kind="int32", since=1),
        Field(name="assignment", kind=Assignment, since=1, null_since=1),
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
