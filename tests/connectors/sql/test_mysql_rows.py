"""The text protocol's rows as Arrow data: received rows equal those sent, however they are split; invalid bytes are
refused.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.sql.mysql_rows import Packets, columns_of_rows

_EOF = b"\xfe\x00\x00\x02\x00"


def _lenenc(value: bytes | None) -> bytes:
    if value is None:
        return b"\xfb"
    if len(value) < 251:
        return bytes([len(value)]) + value
    if len(value) < 1 << 16:
        return b"\xfc" + len(value).to_bytes(2, "little") + value
    return b"\xfd" + len(value).to_bytes(3, "little") + value


def _packets(*payloads: bytes) -> bytes:
    made = b""
    for payload in payloads:
        for start in range(0, len(payload) + 1, 0xFFFFFF):
            part = payload[start : start + 0xFFFFFF]
            made += len(part).to_bytes(3, "little") + b"\x07" + part
    return made


def _read(stream: bytes, piece: int, chunk_bytes: int, count: int) -> list[list[bytes | None]]:
    pieces = iter([stream[at : at + piece] for at in range(0, len(stream), piece)])
    packets = Packets(lambda: next(pieces, b""), chunk_bytes=chunk_bytes)
    rows: list[list[bytes | None]] = []
    while packets.last is None:
        block, starts = packets.next()
        columns = [column.to_pylist() for column in columns_of_rows(block, starts, count)]
        rows += [list(row) for row in zip(*columns, strict=True)]
    assert packets.last == _EOF
    return rows


_CELLS = st.one_of(st.none(), st.binary(max_size=5), st.integers(0, 70_000).map(lambda n: b"\xfe" * n))


@given(st.lists(st.lists(_CELLS, min_size=2, max_size=2), max_size=8), st.integers(1, 99_999), st.integers(1, 99_999))
@settings(max_examples=40, deadline=None)
def test_rows_arrive_whatever_the_pieces(rows: list[list[bytes | None]], piece: int, chunk_bytes: int) -> None:
    stream = _packets(*(b"".join(map(_lenenc, row)) for row in rows), _EOF)
    assert _read(stream, max(piece, len(stream) // 50), chunk_bytes, 2) == rows


@pytest.mark.parametrize("length", [0xFFFFFF - 5, 0xFFFFFF - 4, 0xFFFFFF - 3, 0xFFFFFF + 9])
def test_a_row_longer_than_a_packet_is_joined(length: int) -> None:
    big = bytes(length)
    rows = [[b"a"], [b"\xfd" * 3], [big], [None]]
    stream = _packets(*(_lenenc(row[0]) if row[0] is not big else b"\xfe" + length.to_bytes(8, "little") + big for row in rows), _EOF)  # fmt: skip
    assert _read(stream, 1 << 20, 1 << 20, 1) == rows


@given(st.binary(max_size=60), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_other_bytes_are_refused_or_read(payload: bytes, count: int) -> None:
    packets = Packets(iter([_packets(payload, _EOF), b""]).__next__, chunk_bytes=100)
    try:
        while packets.last is None:
            columns_of_rows(*packets.next(), count)
    except (ValueError, EOFError):
        pass
