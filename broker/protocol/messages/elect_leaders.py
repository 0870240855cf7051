# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["ElectLeadersRequest", "ElectLeadersResponse", "PartitionResult", "ReplicaElectionResult", "TopicPartitions"]


class TopicPartitions(Message):
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


class ElectLeadersRequest(Request):
    __slots__ = (
        "election_type",
        "topic_partitions",
        "timeout_ms",
    )
    API_KEY = 43
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="election_type", kind="int8", since=1),
        Field(name="topic_partitions", kind=TopicPartitions, array=True, null_since=0),
        Field(name="timeout_ms", kind="int32"),
    )

    def __init__(
        self,
        *,
        election_type: int = 0,
        topic_partitions: Sequence[TopicPartitions] | None = (),
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = topic_partitions
        self.timeout_ms = timeout_ms


class PartitionResult(Message):
    __slots__ = (
        "partition_id",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="partition_id", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(self, *, partition_id: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


class ReplicaElectionResult(Message):
    __slots__ = (
        "topic",
        "partition_result",
    )
    FIELDS: ClassVar = (
        Field(name="topic", kind="string"),
        Field(name="partition_result", kind=PartitionResult, array=True),
    )

    def __init__(self, *, topic: str = "", partition_result: Sequence[PartitionResult] = ()) -> None:
        self.topic = topic
        self.partition_result = partition_result


class ElectLeadersResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "replica_election_results",
    )
    API_KEY = 43
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16", since=1),
        Field(name="replica_election_results", kind=ReplicaElectionResult, array=True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: Sequence[ReplicaElectionResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = replica_election_results
