# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["AddRaftVoterRequest", "AddRaftVoterResponse", "Listener"]


class Listener(Message):
    __slots__ = (
        "name",
        "host",
        "port",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="host", kind="string"),
        Field(name="port", kind="uint16"),
    )

    def __init__(self, *, name: str = "", host: str = "", port: int = 0) -> None:
        self.name = name
        self.host = host
        self.port = port


class AddRaftVoterRequest(Request):
    __slots__ = (
        "cluster_id",
        "timeout_ms",
        "voter_id",
        "voter_directory_id",
        "listeners",
        "ack_when_committed",
    )
    API_KEY = 80
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="cluster_id", kind="string", null_since=0),
        Field(name="timeout_ms", kind="int32"),
        Field(name="voter_id", kind="int32"),
        Field(name="voter_directory_id", kind="uuid"),
        Field(name="listeners", kind=Listener, array=True),
        Field(name="ack_when_committed", kind="bool", since=1),
    )

    def __init__(
        self,
        *,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: uuid.UUID = ZERO_UUID,
        listeners: Sequence[Listener] = (),
        ack_when_committed: bool = True,
    ) -> None:
        self.cluster_id = cluster_id
        self.timeout_ms = timeout_ms
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = listeners
        self.ack_when_committed = ack_when_committed


class AddRaftVoterResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
    )
    API_KEY = 80
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
