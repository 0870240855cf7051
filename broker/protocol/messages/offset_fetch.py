# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "OffsetFetchRequest",
    "OffsetFetchRequestGroup",
    "OffsetFetchRequestTopic",
    "OffsetFetchRequestTopics",
    "OffsetFetchResponse",
    "OffsetFetchResponseGroup",
    "OffsetFetchResponsePartition",
    "OffsetFetchResponsePartitions",
    "OffsetFetchResponseTopic",
    "OffsetFetchResponseTopics",
]


class OffsetFetchRequestTopic(Message):
    __slots__ = (
        "name",
        "partition_indexes",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1),
        Field(name="partition_indexes", kind="int32", array=True, since=1),
    )

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name = name
        self.partition_indexes = partition_indexes


class OffsetFetchResponsePartition(Message):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=1),
        Field(name="committed_offset", kind="int64", since=1),
        Field(name="committed_leader_epoch", kind="int32", since=5),
        Field(name="metadata", kind="string", since=1, null_since=1),
        Field(name="error_code", kind="int16", since=1),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1),
        Field(name="partitions", kind=OffsetFetchResponsePartition, array=True, since=1),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetFetchResponsePartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class OffsetFetchRequestTopics(Message):
    __slots__ = (
        "name",
        "topic_id",
        "partition_indexes",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=8, until=9),
        Field(name="topic_id", kind="uuid", since=10),
        Field(name="partition_indexes", kind="int32", array=True, since=8),
    )

    def __init__(
        self, *, name: str = "", topic_id: uuid.UUID = ZERO_UUID, partition_indexes: Sequence[int] = ()
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = partition_indexes


class OffsetFetchRequestGroup(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "topics",
    )
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string", since=8),
        Field(name="member_id", kind="string", since=9, null_since=9),
        Field(name="member_epoch", kind="int32", since=9),
        Field(name="topics", kind=OffsetFetchRequestTopics, array=True, since=8, null_since=8),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: Sequence[OffsetFetchRequestTopics] | None = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = topics


class OffsetFetchRequest(Request):
    __slots__ = (
        "group_id",
        "topics",
        "groups",
        "require_stable",
    )
    API_KEY = 9
    FLEXIBLE_SINCE = 6
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string", since=1, until=7),
        Field(name="topics", kind=OffsetFetchRequestTopic, array=True, since=1, until=7, null_since=2),
        Field(name="groups", kind=OffsetFetchRequestGroup, array=True, since=8),
        Field(name="require_stable", kind="bool", since=7),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: Sequence[OffsetFetchRequestTopic] | None = (),
        groups: Sequence[OffsetFetchRequestGroup] = (),
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = topics
        self.groups = groups
        self.require_stable = require_stable


class OffsetFetchResponsePartitions(Message):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=8),
        Field(name="committed_offset", kind="int64", since=8),
        Field(name="committed_leader_epoch", kind="int32", since=8),
        Field(name="metadata", kind="string", since=8, null_since=8),
        Field(name="error_code", kind="int16", since=8),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopics(Message):
    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=8, until=9),
        Field(name="topic_id", kind="uuid", since=10),
        Field(name="partitions", kind=OffsetFetchResponsePartitions, array=True, since=8),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: Sequence[OffsetFetchResponsePartitions] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class OffsetFetchResponseGroup(Message):
    __slots__ = (
        "group_id",
        "topics",
        "error_code",
    )
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string", since=8),
        Field(name="topics", kind=OffsetFetchResponseTopics, array=True, since=8),
        Field(name="error_code", kind="int16", since=8),
    )

    def __init__(
        self, *, group_id: str = "", topics: Sequence[OffsetFetchResponseTopics] = (), error_code: int = 0
    ) -> None:
        self.group_id = group_id
        self.topics = topics
        self.error_code = error_code


class OffsetFetchResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "topics",
        "error_code",
        "groups",
    )
    API_KEY = 9
    FLEXIBLE_SINCE = 6
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=3),
        Field(name="topics", kind=OffsetFetchResponseTopic, array=True, since=1, until=7),
        Field(name="error_code", kind="int16", since=2, until=7),
        Field(name="groups", kind=OffsetFetchResponseGroup, array=True, since=8),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: Sequence[OffsetFetchResponseTopic] = (),
        error_code: int = 0,
        groups: Sequence[OffsetFetchResponseGroup] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
        self.error_code = error_code
        self.groups = groups
