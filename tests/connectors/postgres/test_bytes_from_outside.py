"""Any bytes from a server: columns are decoded like single rows, and invalid messages and values raise errors."""

from __future__ import annotations

import struct
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connect.api import DataError
from connectors.postgres import pgoutput, texts
from connectors.postgres.large import WholeTransactions
from connectors.postgres.pgoutput import HEAD
from connectors.postgres.spans import Messages
from tests.proofs import effort

_HEAD = struct.pack(">cQQQ", b"w", 7, 8, 9)
_VALUES = st.one_of(st.none(), st.just(b"u"), st.text(max_size=12))


def _tuple(row: list[str | bytes | None]) -> bytes:
    parts = [struct.pack(">H", len(row))]
    for value in row:
        if isinstance(value, str):
            parts.append(b"t" + struct.pack(">I", len(value.encode())) + value.encode())
        else:
            parts.append(value or b"n")
    return b"".join(parts)


@settings(max_examples=effort(60, 2000))
@given(st.integers(0, 5).flatmap(lambda n: st.lists(st.lists(_VALUES, min_size=n, max_size=n), min_size=1, max_size=8)))
def test_rows_side_by_side_are_the_rows_one_by_one(rows: list[list[str | bytes | None]]) -> None:
    messages = Messages([_tuple(row) for row in rows])
    columns, ends = messages.walk(messages.begins, messages.ends, len(rows[0]))
    assert ends.tolist() == messages.ends.tolist()
    for index, column in enumerate(columns):
        given_values = [row[index] for row in rows]
        assert messages.texts(column).to_pylist() == [v if isinstance(v, str) else None for v in given_values]
        assert [kind == ord("u") for kind in column.kinds.tolist()] == [v == b"u" for v in given_values]


@settings(max_examples=effort(60, 2000))
@given(st.lists(st.binary(max_size=24), min_size=1, max_size=4), st.integers(0, 4))
def test_rows_of_any_bytes_are_read_or_refused(parts: list[bytes], width: int) -> None:
    messages = Messages(parts)
    try:
        columns, _ = messages.walk(messages.begins, messages.ends, width)
        for column in columns:
            messages.texts(column)
    except DataError:
        pass


@pytest.mark.parametrize(
    "read", [pgoutput.begin, pgoutput.commit, pgoutput.relation, pgoutput.truncate, pgoutput.message]
)
@settings(max_examples=effort(40, 1000))
@given(body=st.binary(max_size=60))
def test_messages_of_any_bytes_are_read_or_refused(read: object, body: bytes) -> None:
    assert callable(read)
    try:
        read(_HEAD + b"x" + body)
    except DataError:
        pass


class _Said:
    def __init__(self, messages: list[bytes]) -> None:
        self._messages = iter(messages)

    def next(self) -> bytes | None:
        return next(self._messages, None)


@settings(max_examples=effort(60, 1000))
@given(st.lists(st.tuples(st.sampled_from(b"SEcAIUDRB"), st.binary(max_size=34)), max_size=8))
def test_pieces_of_transactions_of_any_bytes_are_read_or_refused(said: list[tuple[int, bytes]]) -> None:
    whole = WholeTransactions(_Said([_HEAD + bytes([kind]) + body for kind, body in said]))
    try:
        while (message := whole.next()) is not None:
            assert len(message) > HEAD
    except DataError:
        pass
    finally:
        whole.close()


_READERS = [
    texts.from_hex,
    texts.bits,
    texts.decimal_or_none,
    texts.variable_decimal,
    texts.money,
    texts.days,
    texts.iso_date,
    texts.time_micros,
    texts.timestamp_micros,
    texts.iso_timestamp,
    partial(texts.zoned_timestamp, digits=3),
    texts.zoned_time,
    texts.interval_micros,
    texts.interval_text,
    texts.hstore,
    texts.point,
    texts.array,
]


@settings(max_examples=effort(80, 3000))
@given(st.text(alphabet="0123456789-+:. TPYMDHSBCeEinfatyN(){},\\\"'=>x/", max_size=20))
@example("infinity")
@example("{")
@example("")
def test_values_of_any_text_are_read_or_refused(text: str) -> None:
    for read in _READERS:
        try:
            read(text)
        except DataError as error:
            assert repr(text) in str(error)
