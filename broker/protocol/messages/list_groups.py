# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["ListGroupsRequest", "ListGroupsResponse", "ListedGroup"]


class ListGroupsRequest(Request):
    __slots__ = (
        "states_filter",
        "types_filter",
    )
    API_KEY = 16
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="states_filter", kind="string", array=True, since=4),
        Field(name="types_filter", kind="string", array=True, since=5),
    )

    def __init__(self, *, states_filter: Sequence[str] = (), types_filter: Sequence[str] = ()) -> None:
        self.states_filter = states_filter
        self.types_filter = types_filter


class ListedGroup(Message):
    __slots__ = (
        "group_id",
        "protocol_type",
        "group_state",
        "group_type",
    )
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="protocol_type", kind="string"),
        Field(name="group_state", kind="string", since=4),
        Field(name="group_type", kind="string", since=5),
    )

    def __init__(
        self, *, group_id: str = "", protocol_type: str = "", group_state: str = "", group_type: str = ""
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type


class ListGroupsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "groups",
    )
    API_KEY = 16
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="error_code", kind="int16"),
        Field(name="groups", kind=ListedGroup, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, groups: Sequence[ListedGroup] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = groups
