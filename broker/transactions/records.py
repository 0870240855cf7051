"""The records of ``__transaction_state``, byte for byte as Kafka 4 writes them (``TransactionLogKey/Value.json``).

Values are written in version 1, the first with tagged fields; versions 0 and 1 are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.errors import CorruptMessage
from broker.protocol.declare import structure, wire
from broker.protocol.primitives import MalformedMessage
from broker.protocol.schema import Message, Request, decode, encode
from broker.transactions.values import Transaction, TransactionState

__all__ = ["decode_key", "decode_value", "encode_key", "encode_value"]

_KEY_VERSION: Final = 0
_VALUE_VERSION: Final = 1
_FIRST_FEATURE_WITH_TAGS: Final = 1


@structure
class _Key(Request):
    FLEXIBLE_SINCE = 1
    transactional_id: str = wire("string")


@structure
class _Partitions(Message):
    topic: str = wire("string")
    partition_ids: Sequence[int] = wire("int32", array=True)


@structure
class _Value(Request):
    FLEXIBLE_SINCE = 1
    producer_id: int = wire("int64")
    previous_producer_id: int = wire("int64", since=1, tag=0, default=-1)
    next_producer_id: int = wire("int64", since=1, tag=1, default=-1)
    producer_epoch: int = wire("int16")
    transaction_timeout_ms: int = wire("int32")
    transaction_status: int = wire("int8")
    transaction_partitions: Sequence[_Partitions] | None = wire(_Partitions, array=True, null_since=0, default=None)
    transaction_last_update_timestamp_ms: int = wire("int64")
    transaction_start_timestamp_ms: int = wire("int64")
    client_transaction_version: int = wire("int16", since=1, tag=2)


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
