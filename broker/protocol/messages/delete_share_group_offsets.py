# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "DeleteShareGroupOffsetsRequest",
    "DeleteShareGroupOffsetsRequestTopic",
    "DeleteShareGroupOffsetsResponse",
    "DeleteShareGroupOffsetsResponseTopic",
]


class DeleteShareGroupOffsetsRequestTopic(Message):
    __slots__ = ("topic_name",)
    FIELDS: ClassVar = (Field(name="topic_name", kind="string"),)

    def __init__(self, *, topic_name: str = "") -> None:
        self.topic_name = topic_name


class DeleteShareGroupOffsetsRequest(Request):
    __slots__ = (
        "group_id",
        "topics",
    )
    API_KEY = 92
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="topics", kind=DeleteShareGroupOffsetsRequestTopic, array=True),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[DeleteShareGroupOffsetsRequestTopic] = ()) -> None:
        self.group_id = group_id
        self.topics = topics


class DeleteShareGroupOffsetsResponseTopic(Message):
    __slots__ = (
        "topic_name",
        "topic_id",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="topic_name", kind="string"),
        Field(name="topic_id", kind="uuid"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


class DeleteShareGroupOffsetsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "responses",
    )
    API_KEY = 92
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="responses", kind=DeleteShareGroupOffsetsResponseTopic, array=True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: Sequence[DeleteShareGroupOffsetsResponseTopic] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = responses
