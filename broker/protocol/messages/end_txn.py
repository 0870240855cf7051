# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from typing import ClassVar

from broker.protocol.schema import Field, Request, Response

__all__ = ["EndTxnRequest", "EndTxnResponse"]


class EndTxnRequest(Request):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "committed",
    )
    API_KEY = 26
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="transactional_id", kind="string"),
        Field(name="producer_id", kind="int64"),
        Field(name="producer_epoch", kind="int16"),
        Field(name="committed", kind="bool"),
    )

    def __init__(
        self, *, transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0, committed: bool = False
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed


class EndTxnResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
    )
    API_KEY = 26
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="producer_id", kind="int64", since=5),
        Field(name="producer_epoch", kind="int16", since=5),
    )

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, producer_id: int = -1, producer_epoch: int = -1
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
