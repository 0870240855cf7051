"""Where the records of a block end, by a program for the schema."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.client import AvroSchema
from registry.serde import SerializationError
from registry.serde.boundaries import record_ends
from registry.serde.columns import decode_block
from tests.registry.serde.drawn import Table, arrow_column, tables, written_by_fastavro


@settings(max_examples=150, deadline=None)
@given(table=tables(), data=st.data())
def test_records_end_where_fastavro_ended_them(table: Table, data: st.DataObject) -> None:
    schema, rows = table
    bodies = [written_by_fastavro(schema, row)[5:] for row in rows]
    block = b"".join(bodies)
    ends = [0]
    for body in bodies:
        ends.append(ends[-1] + len(body))
    assert record_ends(schema.type, block, len(rows)) in (ends, None)
    assert decode_block(schema, block, len(rows)).equals(arrow_column(schema, rows))
    if not block:
        return
    at = data.draw(st.integers(0, len(block) - 1))
    broken = block[:at] + bytes([data.draw(st.integers(0, 255))]) + block[at + data.draw(st.integers(0, 2)) :]
    try:
        decoded = decode_block(schema, broken, len(rows))
    except SerializationError:
        return
    assert len(decoded) == len(rows)


ITEM = {"type": "record", "name": "I", "fields": [{"name": "a", "type": {"type": "array", "items": "double"}}]}


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        ({"type": "array", "items": "double"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "array", "items": ITEM}, b"\x80\x80\x80\x80\x80\x80\x01" + bytes(20)),
        ("string", b"\xff" * 4_000_000),
        ("string", b"\x01"),
        (["null", "int"], b"\x04"),
    ],
)
def test_bytes_that_claim_too_much_end_at_once(type_: object, body: bytes) -> None:
    schema = AvroSchema.parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "x", "type": type_}]}))
    assert record_ends(schema.type, body, 1) is None
    with pytest.raises(SerializationError, match="x"):
        decode_block(schema, body, 1)


def test_blocks_with_sizes_and_without_are_stepped_over() -> None:
    schema = AvroSchema.parse(json.dumps(ITEM))
    with_size = b"\x03\x20" + bytes(16) + b"\x02" + bytes(8) + b"\x00"
    plain = io.BytesIO()
    fastavro.schemaless_writer(plain, fastavro.parse_schema(ITEM), {"a": [0.0, 0.0]})
    block = with_size + plain.getvalue()
    assert record_ends(schema.type, block, 2) == [0, len(with_size), len(block)]
    assert [len(row["a"]) for row in decode_block(schema, block, 2).to_pylist()] == [3, 2]
