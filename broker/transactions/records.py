"""The records of ``__transaction_state``, byte for byte as Kafka 4 writes them (``TransactionLogKey/Value.json``).

Values are written in version 1, the first with tagged fields; versions 0 and 1 are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from broker.errors import CorruptMessage
from broker.protocol.primitives import MalformedMessage
from broker.protocol.schema import Field, Message, Request, decode, encode
from broker.transactions.values import Transaction, TransactionState

__all__ = ["decode_key", "decode_value", "encode_key", "encode_value"]

_KEY_VERSION: Final = 0
_VALUE_VERSION: Final = 1
_FIRST_FEATURE_WITH_TAGS: Final = 1


class _Key(Request):
    __slots__ = ("transactional_id",)
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (Field(name="transactional_id", kind="string"),)

    def __init__(self, *, transactional_id: str = "") -> None:
        self.transactional_id = transactional_id


class _Partitions(Message):
    __slots__ = ("partition_ids", "topic")
    FIELDS: ClassVar = (Field(name="topic", kind="string"), Field(name="partition_ids", kind="int32", array=True))

    def __init__(self, *, topic: str = "", partition_ids: Sequence[int] = ()) -> None:
        self.topic = topic
        self.partition_ids = partition_ids


class _Value(Request):
    __slots__ = (
        "client_transaction_version", "next_producer_id", "previous_producer_id", "producer_epoch", "producer_id",
        "transaction_last_update_timestamp_ms", "transaction_partitions", "transaction_start_timestamp_ms",
        "transaction_status", "transaction_timeout_ms",
    )  # fmt: skip
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (
        Field(name="producer_id", kind="int64"),
        Field(name="previous_producer_id", kind="int64", since=1, tag=0),
        Field(name="next_producer_id", kind="int64", since=1, tag=1),
        Field(name="producer_epoch", kind="int16"),
        Field(name="transaction_timeout_ms", kind="int32"),
        Field(name="transaction_status", kind="int8"),
        Field(name="transaction_partitions", kind=_Partitions, array=True, null_since=0),
        Field(name="transaction_last_update_timestamp_ms", kind="int64"),
        Field(name="transaction_start_timestamp_ms", kind="int64"),
        Field(name="client_transaction_version", kind="int16", since=1, tag=2),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        previous_producer_id: int = -1,
        next_producer_id: int = -1,
        producer_epoch: int = 0,
        transaction_timeout_ms: int = 0,
        transaction_status: int = 0,
        transaction_partitions: Sequence[_Partitions] | None = None,
        transaction_last_update_timestamp_ms: int = 0,
        transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version


def encode_key(transactional_id: str) -> bytes:
    return _KEY_VERSION.to_bytes(2) + bytes(encode(_Key(transactional_id=transactional_id), 0))


def encode_value(transaction: Transaction, feature_level: int = 2) -> bytes:
    """The value of a transactional id; below level 1 of the feature ``transaction.version`` in the format without tags."""
    version = _VALUE_VERSION if feature_level >= _FIRST_FEATURE_WITH_TAGS else 0
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    partitions = [_Partitions(topic=topic, partition_ids=numbers) for topic, numbers in topics.items()]
    value = _Value(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.number,
        transaction_partitions=None if transaction.state is TransactionState.EMPTY else partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
    )
    return version.to_bytes(2) + bytes(encode(value, version))


def decode_key(data: bytes) -> str | None:
    """The transactional id; None for a record of another kind. Raises CorruptMessage."""
    if int.from_bytes(data[:2], signed=True) != _KEY_VERSION or len(data) < 2:
        return None
    try:
        return decode(_Key, data, 0, 2).transactional_id
    except MalformedMessage as error:
        raise CorruptMessage(f"A key of __transaction_state cannot be read: {error}") from error


def decode_value(data: bytes) -> Transaction:
    """Raises CorruptMessage for what is malformed or in a version not known here."""
    version = int.from_bytes(data[:2], signed=True)
    if len(data) < 2 or not 0 <= version <= _VALUE_VERSION:
        raise CorruptMessage(f"TransactionLogValue has version {version}; versions 0 and {_VALUE_VERSION} are known.")
    try:
        value = decode(_Value, data, version, 2)
    except MalformedMessage as error:
        raise CorruptMessage(f"A value of __transaction_state cannot be read: {error}") from error
    state = _STATES.get(value.transaction_status)
    if state is None:
        raise CorruptMessage(f"A transaction is in state {value.transaction_status}, which is not known.")
    named = value.transaction_partitions or ()
    return Transaction(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset((one.topic, number) for one in named for number in one.partition_ids),
        updated_ms=value.transaction_last_update_timestamp_ms,
        started_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
    )


_STATES: Final = {state.number: state for state in TransactionState}
