# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["Coordinator", "FindCoordinatorRequest", "FindCoordinatorResponse"]


class FindCoordinatorRequest(Request):
    __slots__ = (
        "key",
        "key_type",
        "coordinator_keys",
    )
    API_KEY = 10
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="key", kind="string", until=3),
        Field(name="key_type", kind="int8", since=1),
        Field(name="coordinator_keys", kind="string", array=True, since=4),
    )

    def __init__(self, *, key: str = "", key_type: int = 0, coordinator_keys: Sequence[str] = ()) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = coordinator_keys


class Coordinator(Message):
    __slots__ = (
        "key",
        "node_id",
        "host",
        "port",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="key", kind="string", since=4),
        Field(name="node_id", kind="int32", since=4),
        Field(name="host", kind="string", since=4),
        Field(name="port", kind="int32", since=4),
        Field(name="error_code", kind="int16", since=4),
        Field(name="error_message", kind="string", since=4, null_since=4),
    )

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


class FindCoordinatorResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "node_id",
        "host",
        "port",
        "coordinators",
    )
    API_KEY = 10
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="error_code", kind="int16", until=3),
        Field(name="error_message", kind="string", since=1, until=3, null_since=1),
        Field(name="node_id", kind="int32", until=3),
        Field(name="host", kind="string", until=3),
        Field(name="port", kind="int32", until=3),
        Field(name="coordinators", kind=Coordinator, array=True, since=4),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: Sequence[Coordinator] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = coordinators
