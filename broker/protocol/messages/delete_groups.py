# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["DeletableGroupResult", "DeleteGroupsRequest", "DeleteGroupsResponse"]


class DeleteGroupsRequest(Request):
    __slots__ = ("groups_names",)
    API_KEY = 42
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (Field(name="groups_names", kind="string", array=True),)

    def __init__(self, *, groups_names: Sequence[str] = ()) -> None:
        self.groups_names = groups_names


class DeletableGroupResult(Message):
    __slots__ = (
        "group_id",
        "error_code",
    )
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="error_code", kind="int16"),
    )

    def __init__(self, *, group_id: str = "", error_code: int = 0) -> None:
        self.group_id = group_id
        self.error_code = error_code


class DeleteGroupsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    API_KEY = 42
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="results", kind=DeletableGroupResult, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[DeletableGroupResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results
