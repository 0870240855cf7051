"""The binary log's bytes: every encoded value is decoded again, and invalid bytes are refused."""

from __future__ import annotations

import datetime as dt
import json
import re
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import ConnectError, DataError
from connectors.mysql.binlog import events, values
from connectors.mysql.binlog.gtid import MariaDbGtids, MySqlGtids
from connectors.mysql.binlog.json import json_text
from connectors.mysql.binlog.rows import (
    PADDING,
    Cells,
    ImageLayout,
    Physical,
    decimal_bytes,
    image_starts,
    physical_columns,
)
from connectors.mysql.config import MySqlConfig
from connectors.mysql.connections import Server
from connectors.mysql.setup import lost_because
from tidegate.kit.config import parse

_EPOCH = dt.datetime(1970, 1, 1)


def cells(packed: list[bytes | None]) -> tuple[np.ndarray, bytes, Cells]:
    """Values one after the other; None takes no room."""
    ends = np.cumsum([0 if p is None else len(p) for p in packed])
    begins = np.concatenate([[0], ends[:-1]])
    null = np.array([p is None for p in packed])
    data = b"".join(p or b"" for p in packed) + bytes(PADDING)
    return np.frombuffer(data, np.uint8), data, Cells(begins.astype(np.int64), ends.astype(np.int64), null)


@pytest.mark.parametrize(("size", "unsigned"), [(n, u) for n in (1, 2, 3, 4, 8) for u in (False, True)])
def test_integers_are_read_exactly(size: int, unsigned: bool) -> None:
    low, high = (0, (1 << 8 * size) - 1) if unsigned else (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1)
    expected = [low, high, None, 1, 77]
    packed = [None if v is None else v.to_bytes(size, "little", signed=not unsigned) for v in expected]
    data, _, cells_found = cells(packed)
    assert values.integers(data, cells_found, size, unsigned=unsigned).to_pylist() == expected


def pack_decimal(value: Decimal, precision: int, scale: int) -> bytes:
    digits = "".join(map(str, value.as_tuple().digits)).rjust(precision, "0")
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    head = len(whole) % 9
    groups = ([whole[:head]] if head else []) + [whole[i : i + 9] for i in range(head, len(whole), 9)]
    groups += [fraction[i : i + 9] for i in range(0, len(fraction), 9)]
    made = bytearray(b"".join(int(g).to_bytes(decimal_bytes(len(g)), "big") for g in groups))
    made[0] ^= 0x80
    return bytes(b ^ 0xFF for b in made) if value < 0 else bytes(made)


@settings(max_examples=15)
@given(st.data())
def test_decimals_are_read_exactly(data: st.DataObject) -> None:
    precision = data.draw(st.integers(1, 65))
    scale = data.draw(st.integers(0, min(precision, 30)))
    limit = 10**precision - 1
    numerals = data.draw(st.lists(st.integers(-limit, limit), min_size=1, max_size=5))
    expected = [Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)) for n in numerals]
    numbers, _, cells_found = cells([pack_decimal(v, precision, scale) for v in expected])
    column = Physical(246, decimal_bytes(precision - scale) + decimal_bytes(scale), 0, precision | scale << 8)
    assert values.decimals(numbers, cells_found, column).to_pylist() == expected


def _fraction(micros: int, digits: int) -> bytes:
    size = (digits + 1) // 2
    return (micros // 10 ** (6 - 2 * size)).to_bytes(size, "big") if size else b""


@settings(max_examples=15)
@given(
    st.lists(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)), min_size=1, max_size=5), st.integers(0, 6)
)
def test_datetimes_are_read_exactly(expected: list[dt.datetime], digits: int) -> None:
    expected = [w.replace(microsecond=w.microsecond // 10 ** (6 - digits) * 10 ** (6 - digits)) for w in expected]
    packed = [
        (
            (((w.year * 13 + w.month) << 5 | w.day) << 17 | w.hour << 12 | w.minute << 6 | w.second) + 0x8000000000
        ).to_bytes(5, "big")
        + _fraction(w.microsecond, digits)
        for w in expected
    ]
    numbers, _, cells_found = cells(packed)
    column = Physical(18, 5 + (digits + 1) // 2, 0, digits)
    micros = [(w - _EPOCH) // dt.timedelta(microseconds=1) for w in expected]
    assert values.datetimes(numbers, cells_found, column).to_pylist() == micros


@settings(max_examples=15)
@given(st.lists(st.integers(-3_020_399_000_000, 3_020_399_000_000), min_size=1, max_size=5))
def test_times_are_read_exactly(expected: list[int]) -> None:
    packed = []
    for micros in expected:
        seconds, fraction = divmod(abs(micros), 1_000_000)
        whole = (seconds // 3600 << 12 | seconds // 60 % 60 << 6 | seconds % 60) << 24 | fraction
        packed.append(((-whole if micros < 0 else whole) + 0x800000000000).to_bytes(6, "big"))
    numbers, _, cells_found = cells(packed)
    assert values.times(numbers, cells_found, Physical(19, 6, 0, 6)).to_pylist() == expected


def test_dates_that_are_none_are_null() -> None:
    packed = [
        (y << 9 | m << 5 | d).to_bytes(3, "little")
        for y, m, d in ((2024, 2, 29), (0, 0, 0), (2024, 0, 1), (1970, 1, 1))
    ]
    numbers, _, cells_found = cells(packed)
    days = (dt.date(2024, 2, 29) - dt.date(1970, 1, 1)).days
    assert values.dates(numbers, cells_found).to_pylist() == [days, None, None, 0]


_TABLE = events.TableMap(1, "d", "t", (3, 15, 252, 3), (0, 40, 2, 0))


def image(row: tuple[int | None, bytes | None, bytes | None, int | None]) -> bytes:
    a, b, c, d = row
    made = bytes([sum(1 << i for i, v in enumerate(row) if v is None)])
    made += b"" if a is None else a.to_bytes(4, "little", signed=True)
    made += b"" if b is None else bytes([len(b)]) + b
    made += b"" if c is None else len(c).to_bytes(2, "little") + c
    return made + (b"" if d is None else d.to_bytes(4, "little", signed=True))


_row = st.tuples(
    st.none() | st.integers(-5, 5),
    st.none() | st.binary(max_size=40),
    st.none() | st.binary(max_size=300),
    st.none() | st.integers(0, 9),
)


@settings(max_examples=20)
@given(st.lists(_row, min_size=1, max_size=8))
def test_images_are_found_and_read(rows: list[Any]) -> None:
    columns = physical_columns(_TABLE)
    layout = ImageLayout(columns, b"\x0f")
    data = b"head" + b"".join(image(row) for row in rows)
    starts = image_starts(data, 4, len(data), (layout,))
    assert len(starts) == len(rows)
    padded = data + bytes(PADDING)
    numbers = np.frombuffer(padded, np.uint8)
    cell_columns = layout.cells(numbers, np.array(starts))
    made = [
        values.integers(numbers, cell_columns[0], 4, unsigned=False).to_pylist(),
        values.blobs(padded, cell_columns[1]).to_pylist(),
        values.blobs(padded, cell_columns[2]).to_pylist(),
        values.integers(numbers, cell_columns[3], 4, unsigned=False).to_pylist(),
    ]
    assert list(zip(*made, strict=True)) == rows
    for cut in (1, len(data) // 2):  # rows that end too early
        try:
            assert len(image_starts(data, 4, len(data) - cut, (layout,))) < len(rows)
        except DataError:
            pass


@settings(max_examples=80)
@given(st.binary(max_size=60), st.sampled_from(["map", "rows", "image", "json", "payload", "query"]))
def test_anything_else_is_refused(data: bytes, what: str) -> None:
    refusals = (
        DataError,
        ConnectError,
        IndexError,
        struct.error,
        UnicodeDecodeError,
    )  # the last three: see Decoder.feed
    try:
        if what == "map":
            physical_columns(events.table_map(data, 0))
        elif what == "rows":
            events.rows(data, 0, extra=True, images=2)
        elif what == "image":
            image_starts(data, 0, len(data), (ImageLayout(physical_columns(_TABLE), b"\x0f"),))
        elif what == "json":
            json.loads(json_text(data))
        elif what == "payload":
            events.payload_events(data, 0)
        else:
            events.query(data, 0, compressed=True)
    except refusals:
        pass


def pack_json(value: Any) -> tuple[int, bytes]:
    """Kind and bytes of a value, in the small form."""
    if value is None or isinstance(value, bool):
        return 0x04, bytes([{None: 0, True: 1, False: 2}[value]])
    if isinstance(value, int):
        return 0x09, struct.pack("<q", value)
    if isinstance(value, float):
        return 0x0B, struct.pack("<d", value)
    if isinstance(value, str):
        raw = value.encode()
        size, length = b"", len(raw)
        while True:
            size += bytes([length & 0x7F | (0x80 if length > 0x7F else 0)])
            length >>= 7
            if not length:
                return 0x0C, size + raw
    is_object = isinstance(value, dict)
    keys = [k.encode() for k in value] if is_object else []
    items = [pack_json(v) for v in (value.values() if is_object else value)]
    at = 4 + 4 * len(keys) + 3 * len(items)
    head, tail = b"", b"".join(keys)
    for key in keys:
        head += struct.pack("<HH", at, len(key))
        at += len(key)
    for kind, raw in items:
        if kind == 0x04:
            head += bytes([kind]) + raw.ljust(2, b"\0")
        else:
            head += bytes([kind]) + struct.pack("<H", at)
            tail += raw
            at += len(raw)
    return (0x00 if is_object else 0x02), struct.pack("<HH", len(items), at) + head + tail


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=20)
@given(_json)
def test_json(value: Any) -> None:
    kind, raw = pack_json(value)
    assert json.loads(json_text(bytes([kind]) + raw)) == value


def test_sets_of_gtids() -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    known = MySqlGtids(f"{uuid}:1-5:7-9")
    for number in (10, 6, 12):
        known.add(f"{uuid}:{number}")
    assert str(known) == f"{uuid}:1-10:12-12"
    assert MySqlGtids(f"{uuid}:2-4").within(known) and not MySqlGtids(f"{uuid}:11").within(known)
    assert known.encoded() == struct.pack("<Q", 1) + bytes.fromhex(uuid.replace("-", "")) + struct.pack(
        "<QQQQQ", 2, 1, 11, 12, 13
    )
    two = uuid.replace("3e11", "4e11")
    both = known.united(MySqlGtids(f"{uuid}:11,{two}:1-3"))
    assert str(both) == f"{uuid}:1-12,{two}:1-3" and str(known) == f"{uuid}:1-10:12-12"
    assert str(both.retain(re.compile("4e11.*"), excluded=False)) == f"{two}:1-3"
    assert str(both.retain(re.compile("4e11.*"), excluded=True)) == f"{uuid}:1-12"
    maria = MariaDbGtids("0-1-5,1-2-7")
    maria.add("0-3-6")
    assert (
        str(maria) == "0-3-6,1-2-7" and MariaDbGtids("0-1-6").within(maria) and not maria.within(MariaDbGtids("0-1-9"))
    )
    for wrong in ("0-1", "x", f"{uuid}"):
        with pytest.raises(ConnectError):
            MariaDbGtids(wrong)
    with pytest.raises(ConnectError):
        MySqlGtids("nonsense:1-2")


def test_purged_transactions_of_excluded_servers_are_not_missed() -> None:
    counted, other = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"

    class Purged(Server):
        def __init__(self) -> None:
            self.mariadb = False

        def value(self, statement: str, *parameters: Any) -> Any:
            return f"{counted}:1-5,\n{other}:1-9"

    config = {"database.hostname": "h", "database.user": "u", "topic.prefix": "t"}
    offset = {"gtids": f"{counted}:1-7"}
    assert "has purged" in str(lost_because(Purged(), offset, parse(MySqlConfig, config)))
    assert lost_because(Purged(), offset, parse(MySqlConfig, config | {"gtid.source.includes": counted})) is None
    assert lost_because(Purged(), offset, parse(MySqlConfig, config | {"gtid.source.excludes": "4e11.*"})) is None
