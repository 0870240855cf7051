# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["DescribeGroupsRequest", "DescribeGroupsResponse", "DescribedGroup", "DescribedGroupMember"]


class DescribeGroupsRequest(Request):
    __slots__ = (
        "groups",
        "include_authorized_operations",
    )
    API_KEY = 15
    FLEXIBLE_SINCE = 5
    FIELDS: ClassVar = (
        Field(name="groups", kind="string", array=True),
        Field(name="include_authorized_operations", kind="bool", since=3),
    )

    def __init__(self, *, groups: Sequence[str] = (), include_authorized_operations: bool = False) -> None:
        self.groups = groups
        self.include_authorized_operations = include_authorized_operations


class DescribedGroupMember(Message):
    __slots__ = (
        "member_id",
        "group_instance_id",
        "client_id",
        "client_host",
        "member_metadata",
        "member_assignment",
    )
    FIELDS: ClassVar = (
        Field(name="member_id", kind="string"),
        Field(name="group_instance_id", kind="string", since=4, null_since=4),
        Field(name="client_id", kind="string"),
        Field(name="client_host", kind="string"),
        Field(name="member_metadata", kind="bytes"),
        Field(name="member_assignment", kind="bytes"),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


class DescribedGroup(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
        "members",
        "authorized_operations",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", since=6, null_since=6),
        Field(name="group_id", kind="string"),
        Field(name="group_state", kind="string"),
        Field(name="protocol_type", kind="string"),
        Field(name="protocol_data", kind="string"),
        Field(name="members", kind=DescribedGroupMember, array=True),
        Field(name="authorized_operations", kind="int32", since=3),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: Sequence[DescribedGroupMember] = (),
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = members
        self.authorized_operations = authorized_operations


class DescribeGroupsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    API_KEY = 15
    FLEXIBLE_SINCE = 5
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="groups", kind=DescribedGroup, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, groups: Sequence[DescribedGroup] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = groups
