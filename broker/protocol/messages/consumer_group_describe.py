# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "Assignment",
    "ConsumerGroupDescribeRequest",
    "ConsumerGroupDescribeResponse",
    "DescribedGroup",
    "Member",
    "TopicPartitions",
]


class ConsumerGroupDescribeRequest(Request):
    __slots__ = (
        "group_ids",
        "include_authorized_operations",
    )
    API_KEY = 69
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="group_ids", kind="string", array=True),
        Field(name="include_authorized_operations", kind="bool"),
    )

    def __init__(self, *, group_ids: Sequence[str] = (), include_authorized_operations: bool = False) -> None:
        self.group_ids = group_ids
        self.include_authorized_operations = include_authorized_operations


class TopicPartitions(Message):
    __slots__ = (
        "topic_id",
        "topic_name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid"),
        Field(name="topic_name", kind="string"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(
        self, *, topic_id: uuid.UUID = ZERO_UUID, topic_name: str = "", partitions: Sequence[int] = ()
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = partitions


class Assignment(Message):
    __slots__ = ("topic_partitions",)
    FIELDS: ClassVar = (Field(name="topic_partitions", kind=TopicPartitions, array=True),)

    def __init__(self, *, topic_partitions: Sequence[TopicPartitions] = ()) -> None:
        self.topic_partitions = topic_partitions


class Member(Message):
    __slots__ = (
        "member_id",
        "instance_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "assignment",
        "target_assignment",
        "member_type",
    )
    FIELDS: ClassVar = (
        Field(name="member_id", kind="string"),
        Field(name="instance_id", kind="string", null_since=0),
        Field(name="rack_id", kind="string", null_since=0),
        Field(name="member_epoch", kind="int32"),
        Field(name="client_id", kind="string"),
        Field(name="client_host", kind="string"),
        Field(name="subscribed_topic_names", kind="string", array=True),
        Field(name="subscribed_topic_regex", kind="string", null_since=0),
        Field(name="assignment", kind=Assignment),
        Field(name="target_assignment", kind=Assignment),
        Field(name="member_type", kind="int8", since=1),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: Sequence[str] = (),
        subscribed_topic_regex: str | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        member_type: int = -1,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment = assignment if assignment is not None else Assignment()
        self.target_assignment = target_assignment if target_assignment is not None else Assignment()
        self.member_type = member_type


class DescribedGroup(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
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
        Field(name="assignor_name", kind="string"),
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
        assignor_name: str = "",
        members: Sequence[Member] = (),
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = members
        self.authorized_operations = authorized_operations


class ConsumerGroupDescribeResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    API_KEY = 69
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="groups", kind=DescribedGroup, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, groups: Sequence[DescribedGroup] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = groups
