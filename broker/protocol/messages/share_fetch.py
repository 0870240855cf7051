# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "AcknowledgementBatch",
    "AcquiredRecords",
    "FetchPartition",
    "FetchTopic",
    "ForgottenTopic",
    "LeaderIdAndEpoch",
    "NodeEndpoint",
    "PartitionData",
    "ShareFetchRequest",
    "ShareFetchResponse",
    "ShareFetchableTopicResponse",
]


class AcknowledgementBatch(Message):
    __slots__ = (
        "first_offset",
        "last_offset",
        "acknowledge_types",
    )
    FIELDS: ClassVar = (
        Field(name="first_offset", kind="int64", since=1),
        Field(name="last_offset", kind="int64", since=1),
        Field(name="acknowledge_types", kind="int8", array=True, since=1),
    )

    def __init__(self, *, first_offset: int = 0, last_offset: int = 0, acknowledge_types: Sequence[int] = ()) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types = acknowledge_types


class FetchPartition(Message):
    __slots__ = (
        "partition_index",
        "acknowledgement_batches",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=1),
        Field(name="acknowledgement_batches", kind=AcknowledgementBatch, array=True, since=1),
    )

    def __init__(
        self, *, partition_index: int = 0, acknowledgement_batches: Sequence[AcknowledgementBatch] = ()
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = acknowledgement_batches


class FetchTopic(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid", since=1),
        Field(name="partitions", kind=FetchPartition, array=True, since=1),
    )

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, partitions: Sequence[FetchPartition] = ()) -> None:
        self.topic_id = topic_id
        self.partitions = partitions


class ForgottenTopic(Message):
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


class ShareFetchRequest(Request):
    __slots__ = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "share_acquire_mode",
        "is_renew_ack",
        "topics",
        "forgotten_topics_data",
    )
    API_KEY = 78
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string", since=1, null_since=1),
        Field(name="member_id", kind="string", since=1, null_since=1),
        Field(name="share_session_epoch", kind="int32", since=1),
        Field(name="max_wait_ms", kind="int32", since=1),
        Field(name="min_bytes", kind="int32", since=1),
        Field(name="max_bytes", kind="int32", since=1),
        Field(name="max_records", kind="int32", since=1),
        Field(name="batch_size", kind="int32", since=1),
        Field(name="share_acquire_mode", kind="int8", since=2),
        Field(name="is_renew_ack", kind="bool", since=2),
        Field(name="topics", kind=FetchTopic, array=True, since=1),
        Field(name="forgotten_topics_data", kind=ForgottenTopic, array=True, since=1),
    )

    def __init__(
        self,
        *,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: Sequence[FetchTopic] = (),
        forgotten_topics_data: Sequence[ForgottenTopic] = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.share_acquire_mode = share_acquire_mode
        self.is_renew_ack = is_renew_ack
        self.topics = topics
        self.forgotten_topics_data = forgotten_topics_data


class LeaderIdAndEpoch(Message):
    __slots__ = (
        "leader_id",
        "leader_epoch",
    )
    FIELDS: ClassVar = (
        Field(name="leader_id", kind="int32", since=1),
        Field(name="leader_epoch", kind="int32", since=1),
    )

    def __init__(self, *, leader_id: int = 0, leader_epoch: int = 0) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class AcquiredRecords(Message):
    __slots__ = (
        "first_offset",
        "last_offset",
        "delivery_count",
    )
    FIELDS: ClassVar = (
        Field(name="first_offset", kind="int64", since=1),
        Field(name="last_offset", kind="int64", since=1),
        Field(name="delivery_count", kind="int16", since=1),
    )

    def __init__(self, *, first_offset: int = 0, last_offset: int = 0, delivery_count: int = 0) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_count = delivery_count


class PartitionData(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "acknowledge_error_code",
        "acknowledge_error_message",
        "current_leader",
        "records",
        "acquired_records",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=1),
        Field(name="error_code", kind="int16", since=1),
        Field(name="error_message", kind="string", since=1, null_since=1),
        Field(name="acknowledge_error_code", kind="int16", since=1),
        Field(name="acknowledge_error_message", kind="string", since=1, null_since=1),
        Field(name="current_leader", kind=LeaderIdAndEpoch, since=1),
        Field(name="records", kind="records", since=1),
        Field(name="acquired_records", kind=AcquiredRecords, array=True, since=1),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        records: bytes = b"",
        acquired_records: Sequence[AcquiredRecords] = (),
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.acknowledge_error_code = acknowledge_error_code
        self.acknowledge_error_message = acknowledge_error_message
        self.current_leader = current_leader if current_leader is not None else LeaderIdAndEpoch()
        self.records = records
        self.acquired_records = acquired_records


class ShareFetchableTopicResponse(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid", since=1),
        Field(name="partitions", kind=PartitionData, array=True, since=1),
    )

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, partitions: Sequence[PartitionData] = ()) -> None:
        self.topic_id = topic_id
        self.partitions = partitions


class NodeEndpoint(Message):
    __slots__ = (
        "node_id",
        "host",
        "port",
        "rack",
    )
    FIELDS: ClassVar = (
        Field(name="node_id", kind="int32", since=1),
        Field(name="host", kind="string", since=1),
        Field(name="port", kind="int32", since=1),
        Field(name="rack", kind="string", since=1, null_since=1),
    )

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class ShareFetchResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )
    API_KEY = 78
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="error_code", kind="int16", since=1),
        Field(name="error_message", kind="string", since=1, null_since=1),
        Field(name="acquisition_lock_timeout_ms", kind="int32", since=1),
        Field(name="responses", kind=ShareFetchableTopicResponse, array=True, since=1),
        Field(name="node_endpoints", kind=NodeEndpoint, array=True, since=1),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: Sequence[ShareFetchableTopicResponse] = (),
        node_endpoints: Sequence[NodeEndpoint] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = responses
        self.node_endpoints = node_endpoints
