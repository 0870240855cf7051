"""Kafka messages that aiokafka lacks, declared in its style. Field names are those of Kafka's message JSON."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Array,
    Boolean,
    CompactArray,
    CompactString,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
)

__all__ = [
    "IncrementalAlterConfigsRequest",
    "LogDirsRequest",
    "ProducersRequest",
    "TopicMetadataRequest",
    "TopicNamesRequest",
]


class _Uuid(AbstractType[uuid.UUID]):  # type: ignore[misc]
    @classmethod
    def encode(cls, value: uuid.UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> uuid.UUID:
        return uuid.UUID(bytes=data.read(16))


_NO_ID = uuid.UUID(int=0)


class _MetadataResponse(Response):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 12
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString("utf-8")),
                ("port", Int32),
                ("rack", CompactString("utf-8")),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", CompactString("utf-8")),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition_index", Int32),
                        ("leader_id", Int32),
                        ("leader_epoch", Int32),
                        ("replica_nodes", CompactArray(Int32)),
                        ("isr_nodes", CompactArray(Int32)),
                        ("offline_replicas", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("topic_authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _MetadataRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 12
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _MetadataResponse
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(("topic_id", _Uuid), ("name", CompactString("utf-8")), ("tags", TaggedFields)),
        ),
        ("allow_auto_topic_creation", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class TopicMetadataRequest(Request[_MetadataRequest]):  # type: ignore[misc]
    """Metadata v12: the first version with topic ids that can ask by name (KIP-516). Creates nothing."""

    API_KEY = 3

    def __init__(self, topics: Sequence[str] | None) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[_MetadataRequest]) -> _MetadataRequest:
        topics: list[Any] | None = None if self._topics is None else [(_NO_ID, name, {}) for name in self._topics]
        return request_struct_class(topics, False, False, {})


class _TopicNames(AbstractType[list[tuple[str, bool]]]):  # type: ignore[misc]
    """The topics of a Metadata response, each as its name and whether it is internal. The rest is stepped over: of 100,000 topics
    it takes seconds to decode.
    """

    @classmethod
    def encode(cls, value: list[tuple[str, bool]]) -> bytes:
        raise NotImplementedError("answers are only read")

    @classmethod
    def decode(cls, data: BytesIO) -> list[tuple[str, bool]]:
        answer, at = data.getbuffer(), data.tell()
        names = []
        count, at = _varint(answer, at)
        for _ in range(count - 1):
            size, at = _varint(answer, at + _ERROR_BYTES)
            end = at + size - 1
            names.append((str(answer[at:end], "utf-8"), bool(answer[end + _UUID_BYTES])))
            partitions, at = _varint(answer, end + _UUID_BYTES + 1)
            for _ in range(partitions - 1):
                at += _PARTITION_BYTES
                for _ in range(3):  # replicas, those in sync, those offline
                    nodes, at = _varint(answer, at)
                    at += 4 * max(nodes - 1, 0)
                at = _behind_tags(answer, at)
            at = _behind_tags(answer, at + _OPERATIONS_BYTES)
        data.seek(at)
        return names


_ERROR_BYTES = 2
_UUID_BYTES = 16
_PARTITION_BYTES = _ERROR_BYTES + 4 + 4 + 4
"""Error, number, leader and its epoch."""
_OPERATIONS_BYTES = 4


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """An unsigned varint, and where it ends."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
        shift += 7


def _behind_tags(data: memoryview, at: int) -> int:
    count, at = _varint(data, at)
    for _ in range(count):
        _, at = _varint(data, at)
        size, at = _varint(data, at)
        at += size
    return at


class _NamesResponse(Response):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 12
    SCHEMA = Schema(
        *(
            ("topics", _TopicNames) if name == "topics" else (name, kind)
            for name, kind in zip(_MetadataResponse.SCHEMA.names, _MetadataResponse.SCHEMA.fields, strict=True)
        )
    )


class _NamesRequest(_MetadataRequest):
    RESPONSE_TYPE = _NamesResponse


class TopicNamesRequest(Request[_NamesRequest]):  # type: ignore[misc]
    """Metadata v12 about all topics, for their names alone."""

    API_KEY = 3

    def build(self, request_struct_class: type[_NamesRequest]) -> _NamesRequest:
        return request_struct_class(None, False, False, {})


class _IncrementalAlterConfigsResponse(Response):  # type: ignore[misc]
    API_KEY = 44
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "responses",
            Array(
                ("error_code", Int16),
                ("error_message", String("utf-8")),
                ("resource_type", Int8),
                ("resource_name", String("utf-8")),
            ),
        ),
    )


class _IncrementalAlterConfigsRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = 44
    API_VERSION = 0
    RESPONSE_TYPE = _IncrementalAlterConfigsResponse
    SCHEMA = Schema(
        (
            "resources",
            Array(
                ("resource_type", Int8),
                ("resource_name", String("utf-8")),
                (
                    "configs",
                    Array(("name", String("utf-8")), ("config_operation", Int8), ("value", String("utf-8"))),
                ),
            ),
        ),
        ("validate_only", Boolean),
    )


class IncrementalAlterConfigsRequest(Request[_IncrementalAlterConfigsRequest]):  # type: ignore[misc]
    """KIP-339. ``changes`` are (key, operation, value): operation 0 sets, 1 resets to the default."""

    API_KEY = 44

    def __init__(self, resource_type: int, name: str, changes: Sequence[tuple[str, int, str | None]]) -> None:
        self._resource = (resource_type, name, list(changes))

    def build(self, request_struct_class: type[_IncrementalAlterConfigsRequest]) -> _IncrementalAlterConfigsRequest:
        return request_struct_class([self._resource], False)


class _LogDirsResponse(Response):  # type: ignore[misc]
    API_KEY = 35
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "results",
            Array(
                ("error_code", Int16),
                ("log_dir", String("utf-8")),
                (
                    "topics",
                    Array(
                        ("name", String("utf-8")),
                        (
                            "partitions",
                            Array(
                                ("partition_index", Int32),
                                ("partition_size", Int64),
                                ("offset_lag", Int64),
                                ("is_future_key", Boolean),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    )


class _LogDirsRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = 35
    API_VERSION = 1
    RESPONSE_TYPE = _LogDirsResponse
    SCHEMA = Schema(("topics", Array(("topic", String("utf-8")), ("partitions", Array(Int32)))))


class LogDirsRequest(Request[_LogDirsRequest]):  # type: ignore[misc]
    """DescribeLogDirs (KIP-113) of partitions by topic."""

    API_KEY = 35

    def __init__(self, topics: Sequence[tuple[str, Sequence[int]]]) -> None:
        self._topics = [(topic, list(partitions)) for topic, partitions in topics]

    def build(self, request_struct_class: type[_LogDirsRequest]) -> _LogDirsRequest:
        return request_struct_class(self._topics)


class _ProducersResponse(Response):  # type: ignore[misc]
    API_KEY = 61
    API_VERSION = 0
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("name", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition_index", Int32),
                        ("error_code", Int16),
                        ("error_message", CompactString("utf-8")),
                        (
                            "active_producers",
                            CompactArray(
                                ("producer_id", Int64),
                                ("producer_epoch", Int32),
                                ("last_sequence", Int32),
                                ("last_timestamp", Int64),
                                ("coordinator_epoch", Int32),
                                ("current_txn_start_offset", Int64),
                                ("tags", TaggedFields),
                            ),
                        ),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _ProducersRequest(RequestStruct):  # type: ignore[misc]
    API_KEY = 61
    API_VERSION = 0
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _ProducersResponse
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(
                ("name", CompactString("utf-8")), ("partition_indexes", CompactArray(Int32)), ("tags", TaggedFields)
            ),
        ),
        ("tags", TaggedFields),
    )


class ProducersRequest(Request[_ProducersRequest]):  # type: ignore[misc]
    """DescribeProducers (KIP-664) of partitions by topic."""

    API_KEY = 61

    def __init__(self, topics: Sequence[tuple[str, Sequence[int]]]) -> None:
        self._topics: list[tuple[str, list[int], dict[int, bytes]]] = [(topic, list(ids), {}) for topic, ids in topics]

    def build(self, request_struct_class: type[_ProducersRequest]) -> _ProducersRequest:
        return request_struct_class(self._topics, {})
