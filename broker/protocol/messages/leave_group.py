# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["LeaveGroupRequest", "LeaveGroupResponse", "MemberIdentity", "MemberResponse"]


class MemberIdentity(Message):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "reason",
    )
    FIELDS: ClassVar = (
        Field(name="member_id", kind="string", since=3),
        Field(name="group_instance_id", kind="string", since=3, null_since=3),
        Field(name="reason", kind="string", since=5, null_since=5),
    )

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = None, reason: str | None = None) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


class LeaveGroupRequest(Request):
    __slots__ = (
        "group_id",
        "member_id",
        "members",
    )
    API_KEY = 13
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="member_id", kind="string", until=2),
        Field(name="members", kind=MemberIdentity, array=True, since=3),
    )

    def __init__(self, *, group_id: str = "", member_id: str = "", members: Sequence[MemberIdentity] = ()) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = members


class MemberResponse(Message):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "error_code",
    )
    FIELDS: ClassVar = (
        Field(name="member_id", kind="string", since=3),
        Field(name="group_instance_id", kind="string", since=3, null_since=3),
        Field(name="error_code", kind="int16", since=3),
    )

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = "", error_code: int = 0) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


class LeaveGroupResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "members",
    )
    API_KEY = 13
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="error_code", kind="int16"),
        Field(name="members", kind=MemberResponse, array=True, since=3),
    )

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, members: Sequence[MemberResponse] = ()
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = members
