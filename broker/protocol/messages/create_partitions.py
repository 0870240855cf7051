# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "CreatePartitionsAssignment",
    "CreatePartitionsRequest",
    "CreatePartitionsResponse",
    "CreatePartitionsTopic",
    "CreatePartitionsTopicResult",
]


class CreatePartitionsAssignment(Message):
    __slots__ = ("broker_ids",)
    FIELDS: ClassVar = (Field(name="broker_ids", kind="int32", array=True),)

    def __init__(self, *, broker_ids: Sequence[int] = ()) -> None:
        self.broker_ids = broker_ids


class CreatePartitionsTopic(Message):
    __slots__ = (
        "name",
        "count",
        "assignments",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="count", kind="int32"),
        Field(name="assignments", kind=CreatePartitionsAssignment, array=True, null_since=0),
    )

    def __init__(
        self, *, name: str = "", count: int = 0, assignments: Sequence[CreatePartitionsAssignment] | None = ()
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = assignments


class CreatePartitionsRequest(Request):
    __slots__ = (
        "topics",
        "timeout_ms",
        "validate_only",
    )
    API_KEY = 37
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="topics", kind=CreatePartitionsTopic, array=True),
        Field(name="timeout_ms", kind="int32"),
        Field(name="validate_only", kind="bool"),
    )

    def __init__(
        self, *, topics: Sequence[CreatePartitionsTopic] = (), timeout_ms: int = 0, validate_only: bool = False
    ) -> None:
        self.topics = topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


class CreatePartitionsTopicResult(Message):
    __slots__ = (
        "name",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(self, *, name: str = "", error_code: int = 0, error_message: str | None = None) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message


class CreatePartitionsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    API_KEY = 37
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="results", kind=CreatePartitionsTopicResult, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[CreatePartitionsTopicResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results
