# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["SyncGroupRequest", "SyncGroupRequestAssignment", "SyncGroupResponse"]


class SyncGroupRequestAssignment(Message):
    __slots__ = (
        "member_id",
        "assignment",
    )
    FIELDS: ClassVar = (
        Field(name="member_id", kind="string"),
        Field(name="assignment", kind="bytes"),
    )

    def __init__(self, *, member_id: str = "", assignment: bytes = b"") -> None:
        self.member_id = member_id
        self.assignment = assignment


class SyncGroupRequest(Request):
    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )
    API_KEY = 14
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="generation_id", kind="int32"),
        Field(name="member_id", kind="string"),
        Field(name="group_instance_id", kind="string", since=3, null_since=3),
        Field(name="protocol_type", kind="string", since=5, null_since=5),
        Field(name="protocol_name", kind="string", since=5, null_since=5),
        Field(name="assignments", kind=SyncGroupRequestAssignment, array=True),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: Sequence[SyncGroupRequestAssignment] = (),
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = assignments


class SyncGroupResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "protocol_type",
        "protocol_name",
        "assignment",
    )
    API_KEY = 14
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="error_code", kind="int16"),
        Field(name="protocol_type", kind="string", since=5, null_since=5),
        Field(name="protocol_name", kind="string", since=5, null_since=5),
        Field(name="assignment", kind="bytes"),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment
