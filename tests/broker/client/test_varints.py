"""Columns of varints are encoded as aiokafka encodes each number, and decoded again."""

from __future__ import annotations

import numpy as np
from aiokafka.record.util import encode_varint
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.client.varints import Varints
from broker.protocol.record_columns import varints

_EDGES = [edge + step for bits in range(6, 64, 7) for edge in (1 << bits, -(1 << bits)) for step in (-1, 0, 1)]
_LIMIT = 2**63


def encoded(number: int) -> bytes:
    made = bytearray()
    encode_varint(number, made.append)
    return bytes(made)


@settings(max_examples=50)
@given(st.lists(st.integers(-_LIMIT, _LIMIT - 1) | st.integers(-200, 200) | st.sampled_from(_EDGES)))
def test_numbers_are_written_as_kafka_does_and_read_again(numbers: list[int]) -> None:
    column = Varints.of(np.array(numbers, np.int64))
    texts = Varints.joined([column, Varints.zeros(len(numbers))]).to_pylist()
    assert texts == [encoded(number) + b"\x00" for number in numbers]
    assert column.lengths.tolist() == [len(encoded(number)) for number in numbers]
    data = np.frombuffer(b"".join(texts), np.uint8)
    begins = np.concatenate(([0], np.cumsum(column.lengths + 1)))[: len(numbers)].astype(np.int64)
    back, behind = varints(data, begins)
    assert back.tolist() == numbers
    assert (behind == begins + column.lengths).all()
