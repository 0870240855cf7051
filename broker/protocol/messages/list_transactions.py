# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["ListTransactionsRequest", "ListTransactionsResponse", "TransactionState"]


class ListTransactionsRequest(Request):
    __slots__ = (
        "state_filters",
        "producer_id_filters",
        "duration_filter",
        "transactional_id_pattern",
    )
    API_KEY = 66
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="state_filters", kind="string", array=True),
        Field(name="producer_id_filters", kind="int64", array=True),
        Field(name="duration_filter", kind="int64", since=1),
        Field(name="transactional_id_pattern", kind="string", since=2, null_since=2),
    )

    def __init__(
        self,
        *,
        state_filters: Sequence[str] = (),
        producer_id_filters: Sequence[int] = (),
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = state_filters
        self.producer_id_filters = producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern


class TransactionState(Message):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "transaction_state",
    )
    FIELDS: ClassVar = (
        Field(name="transactional_id", kind="string"),
        Field(name="producer_id", kind="int64"),
        Field(name="transaction_state", kind="string"),
    )

    def __init__(self, *, transactional_id: str = "", producer_id: int = 0, transaction_state: str = "") -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


class ListTransactionsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "unknown_state_filters",
        "transaction_states",
    )
    API_KEY = 66
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="unknown_state_filters", kind="string", array=True),
        Field(name="transaction_states", kind=TransactionState, array=True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: Sequence[str] = (),
        transaction_states: Sequence[TransactionState] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = unknown_state_filters
        self.transaction_states = transaction_states
