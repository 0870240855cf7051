# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from typing import ClassVar

from broker.protocol.schema import Field, Request, Response

__all__ = ["HeartbeatRequest", "HeartbeatResponse"]


class HeartbeatRequest(Request):
    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
    )
    API_KEY = 12
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="generation_id", kind="int32"),
        Field(name="member_id", kind="string"),
        Field(name="group_instance_id", kind="string", since=3, null_since=3),
    )

    def __init__(
        self, *, group_id: str = "", generation_id: int = 0, member_id: str = "", group_instance_id: str | None = None
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id


class HeartbeatResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )
    API_KEY = 12
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="error_code", kind="int16"),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
