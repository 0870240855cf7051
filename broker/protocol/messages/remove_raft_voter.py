# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Request, Response

__all__ = ["RemoveRaftVoterRequest", "RemoveRaftVoterResponse"]


class RemoveRaftVoterRequest(Request):
    __slots__ = (
        "cluster_id",
        "voter_id",
        "voter_directory_id",
    )
    API_KEY = 81
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="cluster_id", kind="string", null_since=0),
        Field(name="voter_id", kind="int32"),
        Field(name="voter_directory_id", kind="uuid"),
    )

    def __init__(
        self, *, cluster_id: str | None = "", voter_id: int = 0, voter_directory_id: uuid.UUID = ZERO_UUID
    ) -> None:
        self.cluster_id = cluster_id
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id


class RemoveRaftVoterResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
    )
    API_KEY = 81
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
