"""Coding records one by one and in columns gives the same values and errors, and fastavro's bytes."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from registry.client import AvroSchema
from registry.serde import CorruptRecord, decode_columns, decode_record, encode_columns, encode_record
from tests.proofs import effort
from tests.registry.serde.drawn import (
    Table,
    arrow_column,
    as_record,
    from_column,
    read_by_fastavro,
    tables,
    written_by_fastavro,
)
from tests.registry.serde.evolved import evolutions

BEYOND_PYTHON = (
    "OverflowError",
    "year",
    "badly formed hexadecimal UUID",
    "with base 16",
    "date value out of range",
    "is no timestamp",
)
"""Values that a column can hold and a Python object cannot: years before 1 and after 9999, text that is no UUID."""


def everyday(examples: int) -> Any:
    # Without shrinking, which takes minutes with two drawn schemas and a timeout instead of the failure.
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=examples, deadline=None, phases=phases, suppress_health_check=list(HealthCheck))


def in_columns(message: bytes, writer: AvroSchema, reader: AvroSchema | None = None) -> Any:
    """The value of a message read as a column, or the error."""
    try:
        (run,) = decode_columns(pa.array([message]), {7: writer}.__getitem__, reader)
    except CorruptRecord as error:
        return error
    run.array.validate(full=True)
    try:
        return from_column((reader or writer).type, run.array)
    except (ValueError, OverflowError) as error:
        assert any(words in f"{type(error).__name__}: {error}" for words in BEYOND_PYTHON), error
        return BEYOND_PYTHON


def as_record_of(message: bytes, writer: AvroSchema, reader: AvroSchema | None = None) -> Any:
    try:
        return decode_record(message, {7: writer}.__getitem__, reader)[2]
    except CorruptRecord as error:
        return BEYOND_PYTHON if any(words in str(error) for words in BEYOND_PYTHON) else error


def hold_alike(message: bytes, writer: AvroSchema, reader: AvroSchema | None = None) -> Any:
    """Both ways give equal values, or both an error in the same field. Returns the columns' values."""
    column, record = in_columns(message, writer, reader), as_record_of(message, writer, reader)
    if isinstance(column, CorruptRecord) or isinstance(record, CorruptRecord):
        assert isinstance(column, CorruptRecord) and isinstance(record, CorruptRecord), (column, record)
        return column
    if BEYOND_PYTHON not in (column, record):
        assert same(column, record), (column, record)
    return column


def same(first: Any, other: Any) -> bool:
    """Equal, a number that is none being equal to itself."""
    if isinstance(first, float) and isinstance(other, float):
        return first == other or (math.isnan(first) and math.isnan(other))
    if isinstance(first, dict) and isinstance(other, dict):
        return first.keys() == other.keys() and all(same(first[name], other[name]) for name in first)
    if isinstance(first, list) and isinstance(other, list):
        return len(first) == len(other) and all(map(same, first, other))
    return bool(first == other)


def hold_written_and_read(table: Table) -> None:
    schema, rows = table
    encoded = encode_columns(schema, arrow_column(schema, rows), 7).to_pylist()
    for row, message in zip(rows, encoded, strict=True):
        assert message == written_by_fastavro(schema, row) == encode_record(schema, as_record(row), 7)
        value = hold_alike(message, schema)
        assert same(value, read_by_fastavro(message, schema))


def hold_broken(table: Table, data: st.DataObject) -> None:
    schema, rows = table
    for message in encode_columns(schema, arrow_column(schema, rows), 7).to_pylist():
        broken = bytearray(message)
        if len(broken) > 5 and data.draw(st.booleans()):
            del broken[data.draw(st.integers(5, len(broken) - 1)) :]
            assert isinstance(hold_alike(bytes(broken), schema), CorruptRecord)
            continue
        if len(broken) > 5:
            broken[data.draw(st.integers(5, len(broken) - 1))] = data.draw(st.integers(0, 255))
        else:
            broken += data.draw(st.binary(max_size=3))
        hold_no_wrong_value(bytes(broken), schema)


def hold_no_wrong_value(message: bytes, schema: AvroSchema) -> None:
    value = hold_alike(message, schema)
    if value is BEYOND_PYTHON or isinstance(value, CorruptRecord):
        return
    # fastavro also reads every message that both accept, with the same result
    assert same(value, read_by_fastavro(message, schema))


def hold_resolved(table: Table, reader: AvroSchema) -> None:
    schema, rows = table
    for message in encode_columns(schema, arrow_column(schema, rows), 7).to_pylist():
        hold_alike(message, schema, reader)


@everyday(30)
@given(tables())
def test_records_and_columns_are_fastavros(table: Table) -> None:
    hold_written_and_read(table)


@everyday(40)
@given(tables(), st.data())
def test_broken_bytes_are_an_error_in_both_or_one_value(table: Table, data: st.DataObject) -> None:
    hold_broken(table, data)


@everyday(50)
@given(evolutions())
def test_another_schema_reads_both_alike(evolution: tuple[Table, AvroSchema]) -> None:
    hold_resolved(*evolution)


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_random_schemas_are_coded_as_by_fastavro() -> None:
    many = everyday(effort(150, 20_000))
    many(given(tables())(hold_written_and_read))()
    many(given(tables(), st.data())(hold_broken))()
    many(given(evolutions())(lambda evolution: hold_resolved(*evolution)))()


RECURSIVE = AvroSchema.parse(
    '{"type":"record","name":"T","fields":[{"name":"v","type":"int"},{"name":"kids","type":{"type":"array","items":"T"}}]}'
)


def test_a_tree_is_read_with_another_schema() -> None:
    reader = AvroSchema.parse(
        '{"type":"record","name":"T","fields":[{"name":"kids","type":{"type":"array","items":"T"}},'
        '{"name":"v","type":"double"},{"name":"more","type":{"type":"map","values":"T"},"default":{}}]}'
    )
    tree = {"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}
    message = encode_record(RECURSIVE, tree, 7)
    assert decode_record(message, {7: RECURSIVE}.__getitem__)[2] == tree

    def seen(node: dict[str, Any]) -> dict[str, Any]:
        return {"kids": [seen(kid) for kid in node["kids"]], "v": float(node["v"]), "more": {}}

    assert decode_record(message, {7: RECURSIVE}.__getitem__, reader)[2] == seen(tree)
    cut = encode_record(RECURSIVE, {"v": 1, "kids": [{"v": 2, "kids": [{"v": 9, "kids": []}]}]}, 7)[:9]
    with pytest.raises(CorruptRecord, match=r"field kids\[\]\.kids\[\]\.v: the record ends within a number"):
        decode_record(cut + b"\xff", {7: RECURSIVE}.__getitem__)


@pytest.mark.parametrize(
    ("type_", "body", "words"),
    [
        ("boolean", b"\x02", "field v: a boolean of 2"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x01", "field v: symbol -1 of 2 in E"),
        (["null", "int"], b"\x01\x02", "field v: branch -1 of a union of 2"),
        ("int", b"\x80\x80\x80\x80\x10", "field v: 2147483648 is no int"),
        ("bytes", b"\x01", "field v: a length of -1"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 0},
            b"\x04\x01\x00",
            "field v: a decimal of 2 bytes, more than 2 digits",
        ),
        ({"type": "map", "values": "boolean"}, b"\x02\x02a\x05\x00", "field v[]: a boolean of 5"),
        ({"type": "map", "values": "int"}, b"\x02\x02\xff\x00\x00", "field v{}: not UTF-8"),
    ],
)
def test_a_value_that_only_fastavro_accepts_is_an_error(type_: Any, body: bytes, words: str) -> None:
    schema = AvroSchema.parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": type_}]}))
    message = b"\0\0\0\0\7" + body
    for error in (in_columns(message, schema), as_record_of(message, schema)):
        assert isinstance(error, CorruptRecord) and words in str(error)


@pytest.mark.parametrize(
    ("type_", "body", "words"),
    [
        ({"type": "int", "logicalType": "date"}, b"\x80\x80\x80\x80\x08", "is no date"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "no timestamp",
        ),
        ({"type": "string", "logicalType": "uuid"}, b"\x02x", "is no uuid: badly formed"),
    ],
)
def test_an_error_about_a_value_without_a_python_form_names_its_field(type_: Any, body: bytes, words: str) -> None:
    schema = AvroSchema.parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": type_}]}))
    with pytest.raises(CorruptRecord, match=f"field v: .*{words}"):
        decode_record(b"\0\0\0\0\7" + body, {7: schema}.__getitem__)
    assert decode_columns(pa.array([b"\0\0\0\0\7" + body]), {7: schema}.__getitem__)[0].length == 1
