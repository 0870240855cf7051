# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "DescribeQuorumRequest",
    "DescribeQuorumResponse",
    "Listener",
    "Node",
    "PartitionData",
    "ReplicaState",
    "ResponsePartitionData",
    "ResponseTopicData",
    "TopicData",
]


class PartitionData(Message):
    __slots__ = ("partition_index",)
    FIELDS: ClassVar = (Field(name="partition_index", kind="int32"),)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index = partition_index


class TopicData(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_name", kind="string"),
        Field(name="partitions", kind=PartitionData, array=True),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[PartitionData] = ()) -> None:
        self.topic_name = topic_name
        self.partitions = partitions


class DescribeQuorumRequest(Request):
    __slots__ = ("topics",)
    API_KEY = 55
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="topics", kind=TopicData, array=True),)

    def __init__(self, *, topics: Sequence[TopicData] = ()) -> None:
        self.topics = topics


class ReplicaState(Message):
    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )
    FIELDS: ClassVar = (
        Field(name="replica_id", kind="int32"),
        Field(name="replica_directory_id", kind="uuid", since=2),
        Field(name="log_end_offset", kind="int64"),
        Field(name="last_fetch_timestamp", kind="int64", since=1),
        Field(name="last_caught_up_timestamp", kind="int64", since=1),
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: uuid.UUID = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp


class ResponsePartitionData(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", since=2, null_since=2),
        Field(name="leader_id", kind="int32"),
        Field(name="leader_epoch", kind="int32"),
        Field(name="high_watermark", kind="int64"),
        Field(name="current_voters", kind=ReplicaState, array=True),
        Field(name="observers", kind=ReplicaState, array=True),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: Sequence[ReplicaState] = (),
        observers: Sequence[ReplicaState] = (),
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = current_voters
        self.observers = observers


class ResponseTopicData(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_name", kind="string"),
        Field(name="partitions", kind=ResponsePartitionData, array=True),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[ResponsePartitionData] = ()) -> None:
        self.topic_name = topic_name
        self.partitions = partitions


class Listener(Message):
    __slots__ = (
        "name",
        "host",
        "port",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=2),
        Field(name="host", kind="string", since=2),
        Field(name="port", kind="uint16", since=2),
    )

    def __init__(self, *, name: str = "", host: str = "", port: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port


class Node(Message):
    __slots__ = (
        "node_id",
        "listeners",
    )
    FIELDS: ClassVar = (
        Field(name="node_id", kind="int32", since=2),
        Field(name="listeners", kind=Listener, array=True, since=2),
    )

    def __init__(self, *, node_id: int = 0, listeners: Sequence[Listener] = ()) -> None:
        self.node_id = node_id
        self.listeners = listeners


class DescribeQuorumResponse(Response):
    __slots__ = (
        "error_code",
        "error_message",
        "topics",
        "nodes",
    )
    API_KEY = 55
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", since=2, null_since=2),
        Field(name="topics", kind=ResponseTopicData, array=True),
        Field(name="nodes", kind=Node, array=True, since=2),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        topics: Sequence[ResponseTopicData] = (),
        nodes: Sequence[Node] = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = topics
        self.nodes = nodes
