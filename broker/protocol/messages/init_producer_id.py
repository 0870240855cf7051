# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from typing import ClassVar

from broker.protocol.schema import Field, Request, Response

__all__ = ["InitProducerIdRequest", "InitProducerIdResponse"]


class InitProducerIdRequest(Request):
    __slots__ = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable2_pc",
        "keep_prepared_txn",
    )
    API_KEY = 22
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="transactional_id", kind="string", null_since=0),
        Field(name="transaction_timeout_ms", kind="int32"),
        Field(name="producer_id", kind="int64", since=3),
        Field(name="producer_epoch", kind="int16", since=3),
        Field(name="enable2_pc", kind="bool", since=6),
        Field(name="keep_prepared_txn", kind="bool", since=6),
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn


class InitProducerIdResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
        "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
    )
    API_KEY = 22
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="producer_id", kind="int64"),
        Field(name="producer_epoch", kind="int16"),
        Field(name="ongoing_txn_producer_id", kind="int64", since=6),
        Field(name="ongoing_txn_producer_epoch", kind="int16", since=6),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch
