# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["DescribeClusterBroker", "DescribeClusterRequest", "DescribeClusterResponse"]


class DescribeClusterRequest(Request):
    __slots__ = (
        "include_cluster_authorized_operations",
        "endpoint_type",
        "include_fenced_brokers",
    )
    API_KEY = 60
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="include_cluster_authorized_operations", kind="bool"),
        Field(name="endpoint_type", kind="int8", since=1),
        Field(name="include_fenced_brokers", kind="bool", since=2),
    )

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers


class DescribeClusterBroker(Message):
    __slots__ = (
        "broker_id",
        "host",
        "port",
        "rack",
        "is_fenced",
    )
    FIELDS: ClassVar = (
        Field(name="broker_id", kind="int32"),
        Field(name="host", kind="string"),
        Field(name="port", kind="int32"),
        Field(name="rack", kind="string", null_since=0),
        Field(name="is_fenced", kind="bool", since=2),
    )

    def __init__(
        self, *, broker_id: int = 0, host: str = "", port: int = 0, rack: str | None = None, is_fenced: bool = False
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced


class DescribeClusterResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )
    API_KEY = 60
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="endpoint_type", kind="int8", since=1),
        Field(name="cluster_id", kind="string"),
        Field(name="controller_id", kind="int32"),
        Field(name="brokers", kind=DescribeClusterBroker, array=True),
        Field(name="cluster_authorized_operations", kind="int32"),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: Sequence[DescribeClusterBroker] = (),
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = brokers
        self.cluster_authorized_operations = cluster_authorized_operations
