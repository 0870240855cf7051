# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["JoinGroupRequest", "JoinGroupRequestProtocol", "JoinGroupResponse", "JoinGroupResponseMember"]


class JoinGroupRequestProtocol(Message):
    __slots__ = (
        "name",
        "metadata",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="metadata", kind="bytes"),
    )

    def __init__(self, *, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata


class JoinGroupRequest(Request):
    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )
    API_KEY = 11
    FLEXIBLE_SINCE = 6
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="session_timeout_ms", kind="int32"),
        Field(name="rebalance_timeout_ms", kind="int32", since=1),
        Field(name="member_id", kind="string"),
        Field(name="group_instance_id", kind="string", since=5, null_since=5),
        Field(name="protocol_type", kind="string"),
        Field(name="protocols", kind=JoinGroupRequestProtocol, array=True),
        Field(name="reason", kind="string", since=8, null_since=8),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: Sequence[JoinGroupRequestProtocol] = (),
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.reason = reason


class JoinGroupResponseMember(Message):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "metadata",
    )
    FIELDS: ClassVar = (
        Field(name="member_id", kind="string"),
        Field(name="group_instance_id", kind="string", since=5, null_since=5),
        Field(name="metadata", kind="bytes"),
    )

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = None, metadata: bytes = b"") -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


class JoinGroupResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )
    API_KEY = 11
    FLEXIBLE_SINCE = 6
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=2),
        Field(name="error_code", kind="int16"),
        Field(name="generation_id", kind="int32"),
        Field(name="protocol_type", kind="string", since=7, null_since=7),
        Field(name="protocol_name", kind="string", null_since=7),
        Field(name="leader", kind="string"),
        Field(name="skip_assignment", kind="bool", since=9),
        Field(name="member_id", kind="string"),
        Field(name="members", kind=JoinGroupResponseMember, array=True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: Sequence[JoinGroupResponseMember] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = members
