# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["DeletableTopicResult", "DeleteTopicState", "DeleteTopicsRequest", "DeleteTopicsResponse"]


class DeletableTopicResult(Message):
    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1, null_since=6),
        Field(name="topic_id", kind="uuid", since=6),
        Field(name="error_code", kind="int16", since=1),
        Field(name="error_message", kind="string", since=5, null_since=5),
    )

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: uuid.UUID = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteTopicsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "responses",
    )
    API_KEY = 20
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="responses", kind=DeletableTopicResult, array=True, since=1),
    )

    def __init__(self, *, throttle_time_ms: int = 0, responses: Sequence[DeletableTopicResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = responses


class DeleteTopicState(Message):
    __slots__ = (
        "name",
        "topic_id",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=6, null_since=6),
        Field(name="topic_id", kind="uuid", since=6),
    )

    def __init__(self, *, name: str | None = None, topic_id: uuid.UUID = ZERO_UUID) -> None:
        self.name = name
        self.topic_id = topic_id


class DeleteTopicsRequest(Request):
    __slots__ = (
        "topic_names",
        "topics",
        "timeout_ms",
    )
    API_KEY = 20
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="topic_names", kind="string", array=True, since=1, until=5),
        Field(name="topics", kind=DeleteTopicState, array=True, since=6),
        Field(name="timeout_ms", kind="int32", since=1),
    )

    def __init__(
        self, *, topic_names: Sequence[str] = (), topics: Sequence[DeleteTopicState] = (), timeout_ms: int = 0
    ) -> None:
        self.topic_names = topic_names
        self.topics = topics
        self.timeout_ms = timeout_ms
