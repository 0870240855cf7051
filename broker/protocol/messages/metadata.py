# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "MetadataRequest",
    "MetadataRequestTopic",
    "MetadataResponse",
    "MetadataResponseBroker",
    "MetadataResponsePartition",
    "MetadataResponseTopic",
]


class MetadataRequestTopic(Message):
    __slots__ = (
        "topic_id",
        "name",
    )
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid", since=10),
        Field(name="name", kind="string", null_since=10),
    )

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, name: str | None = "") -> None:
        self.topic_id = topic_id
        self.name = name


class MetadataRequest(Request):
    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )
    API_KEY = 3
    FLEXIBLE_SINCE = 9
    FIELDS: ClassVar = (
        Field(name="topics", kind=MetadataRequestTopic, array=True, null_since=1),
        Field(name="allow_auto_topic_creation", kind="bool", since=4),
        Field(name="include_cluster_authorized_operations", kind="bool", since=8, until=10),
        Field(name="include_topic_authorized_operations", kind="bool", since=8),
    )

    def __init__(
        self,
        *,
        topics: Sequence[MetadataRequestTopic] | None = (),
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations


class MetadataResponseBroker(Message):
    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )
    FIELDS: ClassVar = (
        Field(name="node_id", kind="int32"),
        Field(name="host", kind="string"),
        Field(name="port", kind="int32"),
        Field(name="rack", kind="string", since=1, null_since=1),
    )

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class MetadataResponsePartition(Message):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "offline_replicas",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="partition_index", kind="int32"),
        Field(name="leader_id", kind="int32"),
        Field(name="leader_epoch", kind="int32", since=7),
        Field(name="replica_nodes", kind="int32", array=True),
        Field(name="isr_nodes", kind="int32", array=True),
        Field(name="offline_replicas", kind="int32", array=True, since=5),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: Sequence[int] = (),
        isr_nodes: Sequence[int] = (),
        offline_replicas: Sequence[int] = (),
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = replica_nodes
        self.isr_nodes = isr_nodes
        self.offline_replicas = offline_replicas


class MetadataResponseTopic(Message):
    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="name", kind="string", null_since=12),
        Field(name="topic_id", kind="uuid", since=10),
        Field(name="is_internal", kind="bool", since=1),
        Field(name="partitions", kind=MetadataResponsePartition, array=True),
        Field(name="topic_authorized_operations", kind="int32", since=8),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: uuid.UUID = ZERO_UUID,
        is_internal: bool = False,
        partitions: Sequence[MetadataResponsePartition] = (),
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = partitions
        self.topic_authorized_operations = topic_authorized_operations


class MetadataResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "cluster_authorized_operations",
        "error_code",
    )
    API_KEY = 3
    FLEXIBLE_SINCE = 9
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=3),
        Field(name="brokers", kind=MetadataResponseBroker, array=True),
        Field(name="cluster_id", kind="string", since=2, null_since=2),
        Field(name="controller_id", kind="int32", since=1),
        Field(name="topics", kind=MetadataResponseTopic, array=True),
        Field(name="cluster_authorized_operations", kind="int32", since=8, until=10),
        Field(name="error_code", kind="int16", since=13),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        brokers: Sequence[MetadataResponseBroker] = (),
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: Sequence[MetadataResponseTopic] = (),
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code
