"""The byte format of ``__transaction_state``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import CorruptMessage
from broker.transactions import Transaction, TransactionState
from broker.transactions.records import decode_key, decode_value, encode_key, encode_value

# Records that Apache Kafka 4.3.1 wrote for transactional id a904690: a first InitProducerId, AddPartitionsToTxn v3,
# the abort by another InitProducerId in its two steps, that InitProducerId, and EndTxn v5 with nothing to abort.
KEY = "0000000761393034363930"
VALUES = {
    "0001000000000000000100000000ea600000000001a1ff38692dffffffffffffffff0100080000000000000001": Transaction(
        producer_id=1, previous_producer_id=1, epoch=0, timeout_ms=60000, updated_ms=1795283249453
    ),
    "0001000000000000000100000000ea600102037474020000000000000001a1ff38694f000001a1ff38694f0100080000000000000001": Transaction(
        producer_id=1,
        previous_producer_id=1,
        epoch=0,
        timeout_ms=60000,
        state=TransactionState.ONGOING,
        partitions=frozenset({("tt", 0)}),
        updated_ms=1795283249487,
        started_ms=1795283249487,
    ),
    "0001000000000000000100010000ea600302037474020000000000000001a1ff386977000001a1ff38694f020008000000000000000102020002": (
        Transaction(
            producer_id=1,
            previous_producer_id=1,
            epoch=1,
            timeout_ms=60000,
            state=TransactionState.PREPARE_ABORT,
            partitions=frozenset({("tt", 0)}),
            updated_ms=1795283249527,
            started_ms=1795283249487,
            client_version=2,
        )
    ),
    "0001000000000000000100010000ea600501000001a1ff386987000001a1ff38694f020008000000000000000102020002": Transaction(
        producer_id=1,
        previous_producer_id=1,
        epoch=1,
        timeout_ms=60000,
        state=TransactionState.COMPLETE_ABORT,
        updated_ms=1795283249543,
        started_ms=1795283249487,
        client_version=2,
    ),
}


def test_a_key_is_what_kafka_writes() -> None:
    assert encode_key("a904690").hex() == KEY
    assert decode_key(bytes.fromhex(KEY)) == "a904690"
    assert decode_key(b"\0\7ab") is None


@pytest.mark.parametrize("data", VALUES)
def test_a_value_is_what_kafka_writes(data: str) -> None:
    assert decode_value(bytes.fromhex(data)) == VALUES[data]
    assert encode_value(VALUES[data]).hex() == data


transactions = st.builds(
    Transaction,
    producer_id=st.integers(0, (1 << 63) - 1),
    previous_producer_id=st.integers(-1, (1 << 63) - 1),
    next_producer_id=st.integers(-1, (1 << 63) - 1),
    epoch=st.integers(-1, 32767),
    timeout_ms=st.integers(1, (1 << 31) - 1),
    state=st.sampled_from([state for state in TransactionState if state is not TransactionState.EMPTY]),
    partitions=st.frozensets(st.tuples(st.text(max_size=20), st.integers(0, 99))),
    updated_ms=st.integers(0, 1 << 50),
    started_ms=st.integers(-1, 1 << 50),
    client_version=st.integers(0, 2),
)


@given(transactions)
def test_transaction_values_are_read_back(transaction: Transaction) -> None:
    assert decode_value(encode_value(transaction)) == transaction


@given(transactions)
def test_the_older_format_has_all_but_the_later_fields(transaction: Transaction) -> None:
    decoded = decode_value(encode_value(transaction, feature_level=0))
    assert (decoded.producer, decoded.state, decoded.partitions) == (
        transaction.producer,
        transaction.state,
        transaction.partitions,
    )
    assert (decoded.client_version, decoded.next_producer_id) == (0, -1)


@given(st.binary(max_size=80), st.sampled_from([b"", b"\0\0", b"\0\1"]))
def test_any_bytes_are_read_or_refused(data: bytes, head: bytes) -> None:
    for decode in (decode_key, decode_value):
        try:
            decode(head + data)
        except CorruptMessage as error:
            assert error.message
