"""The records of ``__transaction_state``, byte for byte as Kafka 4 writes them (``TransactionLogKey/Value.json``).

Values are written in version 1, the first with tagged fields; versions 0 and 1 are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.coordinator import records
from broker.coordinator.records import RecordKey, RecordValue
from broker.errors import CorruptMessage
from broker.protocol.declare import structure, wire
from broker.protocol.fields import Message
from broker.transactions.values import Transaction, TransactionState

__all__ = ["TRANSACTIONS_TOPIC", "decode_key", "decode_value", "encode_key", "encode_value"]

TRANSACTIONS_TOPIC: Final = "__transaction_state"
_FIRST_FEATURE_WITH_TAGS: Final = 1


@structure
class TransactionLogKey(RecordKey):
    API_KEY = 0
    transactional_id: str = wire("string")


@structure
class PartitionsSchema(Message):
    topic: str = wire("string")
    partition_ids: Sequence[int] = wire("int32", array=True)


@structure
class TransactionLogValue(RecordValue):
    FLEXIBLE_SINCE = 1
    LATEST = 1
    producer_id: int = wire("int64")
    previous_producer_id: int = wire("int64", since=1, tag=0, default=-1)
    next_producer_id: int = wire("int64", since=1, tag=1, default=-1)
    producer_epoch: int = wire("int16")
    transaction_timeout_ms: int = wire("int32")
    transaction_status: int = wire("int8")
    transaction_partitions: Sequence[PartitionsSchema] | None = wire(
        PartitionsSchema, array=True, null_since=0, default=None
    )
    transaction_last_update_timestamp_ms: int = wire("int64")
    transaction_start_timestamp_ms: int = wire("int64")
    client_transaction_version: int = wire("int16", since=1, tag=2)


def encode_key(transactional_id: str) -> bytes:
    return records.encode_key(TransactionLogKey(transactional_id=transactional_id))


def encode_value(transaction: Transaction, feature_level: int = 2) -> bytes:
    """The value of a transactional id.

    Below level 1 of the feature ``transaction.version`` it uses the format without tags.
    """
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        topics.setdefault(topic, []).append(partition)
    partitions = [PartitionsSchema(topic=topic, partition_ids=numbers) for topic, numbers in topics.items()]
    value = TransactionLogValue(
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
    return records.encode_value(value, 1 if feature_level >= _FIRST_FEATURE_WITH_TAGS else 0)


def decode_key(data: bytes) -> str | None:
    """The transactional id; None for a record of another kind. Raises CorruptMessage."""
    if records.type_number(data) != TransactionLogKey.API_KEY:
        return None
    return records.decode_key(TransactionLogKey, data, TRANSACTIONS_TOPIC).transactional_id


def decode_value(data: bytes) -> Transaction:
    """Raises CorruptMessage for a malformed value or an unknown version."""
    value = records.decode_value(TransactionLogValue, data, TRANSACTIONS_TOPIC)
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
        partitions=frozenset(
            (partitions_schema.topic, number)
            for partitions_schema in named
            for number in partitions_schema.partition_ids
        ),
        updated_ms=value.transaction_last_update_timestamp_ms,
        started_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
    )


_STATES: Final = {state.number: state for state in TransactionState}
