"""Avro records as JSON values and back: every type comes back as the same bytes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from registry.client import AvroSchema
from registry.serde import (
    CorruptRecord,
    UnencodableValue,
    decode_record,
    encode_record,
    record_from_json,
    record_to_json,
)
from tests.registry.serde.drawn import Table, logical, tables, written_by_fastavro


def schema_of(type_: Any) -> AvroSchema:
    return AvroSchema.parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "f", "type": type_}]}))


def as_json(schema: AvroSchema, message: bytes) -> Any:
    return json.loads(json.dumps(record_to_json(message, lambda _: schema)))


@given(tables())
def test_what_is_written_as_json_is_read_to_the_same_bytes(table: Table) -> None:
    schema, rows = table
    for message in (written_by_fastavro(schema, row) for row in rows):
        assert record_from_json(schema, as_json(schema, message), 7) == message


def fixed(name: str, size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


ORDER = {"type": "record", "name": "Order", "fields": [{"name": "a", "type": "int"}]}
PAIR = {"type": "record", "name": "Pair", "fields": [*ORDER["fields"], {"name": "b", "type": "int", "default": 0}]}
MONEY = logical("bytes", "decimal", precision=9, scale=2)
MOMENT = logical("long", "timestamp-millis")


@pytest.mark.parametrize(
    ("type_", "printed"),
    [
        (MONEY, "-12.50"),
        (logical("bytes", "decimal", precision=60, scale=0), "9" * 60),
        (fixed("D", 8, logicalType="decimal", precision=18, scale=3), "0.001"),
        ("bytes", "AP8="),
        (fixed("F", 2), "AP8="),
        (logical("string", "uuid"), "6f1d2c4e-1111-4000-8000-0123456789ab"),
        (logical("int", "date"), "2026-11-25"),
        (logical("int", "time-millis"), "10:30:00.125000"),
        (logical("long", "time-micros"), "10:30:00.125001"),
        (MOMENT, "2026-11-25 10:30:00.125000+00:00"),
        (logical("long", "timestamp-micros"), "1969-12-31 23:59:59.999999+00:00"),
        (logical("long", "local-timestamp-millis"), "2026-11-25 10:30:00"),
        (logical("long", "local-timestamp-micros"), "2026-11-25 10:30:00.000001"),
        (logical("long", "timestamp-nanos"), 1764066600000000001),
        (["null", MONEY], "12.50"),
        (["null", MONEY], None),
        (["null", {"type": "map", "values": "string"}], {"map": "x"}),
        ({"type": "array", "items": MOMENT}, ["2026-11-25 10:30:00+00:00"]),
        ({"type": "map", "values": MONEY}, {"a": "1.00", "b": "0.00"}),
        # unions of several types: by the value alone where it tells
        (["string", "int", MONEY], 5),
        (["string", "long", "double"], 5.0),
        (["string", "bytes"], "AP8="),
        (["string", "bytes"], {"bytes": "AP8="}),
        (["bytes", MOMENT, "null"], "2026-11-25 10:30:00+00:00"),
        (["string", MOMENT], {"long": "2026-11-25 10:30:00+00:00"}),
        (["string", {"type": "enum", "name": "E", "symbols": ["A"]}], {"E": "A"}),
        (["float", "double"], 0.1),
        (["float", "double"], {"float": 0.5}),
        ([ORDER, PAIR], {"a": 1}),
        ([ORDER, PAIR], {"a": 1, "b": 2}),
        ([ORDER, {"type": "map", "values": "int"}], {"map": {"a": 1}}),
        (["string", {"type": "map", "values": "string"}], {"map": {"string": "x"}}),
    ],
)
def test_every_type_comes_back_as_it_is_printed(type_: Any, printed: Any) -> None:
    schema = schema_of(type_)
    assert as_json(schema, record_from_json(schema, {"f": printed}, 7)) == {"f": printed}


def test_what_means_the_same_is_taken_too() -> None:
    for type_, value, printed in (
        (MONEY, 12.5, "12.50"),
        (MONEY, "1E+2", "100.00"),
        (MONEY, "12.500", "12.50"),
        (MOMENT, "2026-11-25T11:30:00+01:00", "2026-11-25 10:30:00+00:00"),
        (MOMENT, "2026-11-25T10:30Z", "2026-11-25 10:30:00+00:00"),
        (MOMENT, 0, "1970-01-01 00:00:00+00:00"),
        (logical("int", "date"), 1, "1970-01-02"),
        (["null", "string"], {"string": "x"}, "x"),
        (["null", ORDER], {"Order": {"a": 1}}, {"a": 1}),
        ("double", 5, 5.0),
    ):
        schema = schema_of(type_)
        assert as_json(schema, record_from_json(schema, {"f": value}, 7)) == {"f": printed}


def test_numbers_that_were_parsed_as_decimals_keep_their_digits() -> None:
    long = logical("bytes", "decimal", precision=30, scale=10)
    for type_, text, printed in (
        (long, "1234567890123456789.1234567891", "1234567890123456789.1234567891"),
        (long, "1e3", "1000.0000000000"),
        ({"type": "array", "items": long}, "[0.1000000001, 5]", ["0.1000000001", "5.0000000000"]),
        (["null", MONEY], "-12.50", "-12.50"),
        ("double", "0.12345678901234567890", 0.12345678901234568),
        ("float", "0.5", 0.5),
        (["float", "double"], "0.1", 0.1),
        (["string", "long", "double"], "5.0", 5.0),
    ):
        schema, value = schema_of(type_), json.loads(text, parse_float=Decimal)
        assert as_json(schema, record_from_json(schema, {"f": value}, 7)) == {"f": printed}


@pytest.mark.parametrize(
    ("type_", "value", "words"),
    [
        (MONEY, "12.505", '"12.505" is more than a decimal of 9 digits, 2 of them after the point'),
        (MONEY, "12345678.00", "more than a decimal of 9 digits"),
        (MONEY, "1E+999999999", "more than a decimal of 9 digits"),
        (MONEY, "1E-999999999", "more than a decimal of 9 digits"),
        (MONEY, "NaN", "is no number"),
        (MONEY, "much", 'is no decimal: give for example "12.50"'),
        (MONEY, True, "is no decimal"),
        ("bytes", "not base64!", "is no base64, which stands for bytes"),
        (fixed("F", 2), "AA==", "is 1 bytes; F has 2"),
        (logical("int", "date"), "2026-13-01", '"2026-13-01" is no date such as "2026-11-25"'),
        (MOMENT, "2026-11-25 10:30:00", "it has no zone; Z at its end is UTC"),
        (MOMENT, "2026-11-25T10:30:00.000001Z", "the type has milliseconds"),
        (logical("string", "uuid"), "x", "is no uuid such as"),
        ("int", 2**31, "2147483648 is outside of the range of int"),
        ("int", 1.0, "1.0 is no int: give a whole number"),
        ("int", None, "null, but the schema allows no null here"),
        ("float", 1e300, "1e+300 is too large for a float"),
        ("double", 10**400, "is too large for a double"),
        ("double", Decimal("1e400"), "1E+400 is too large for a double"),
        ("float", Decimal("1e39"), "1E+39 is too large for a float"),
        ("int", Decimal("1.0"), "1.0 is no int: give a whole number"),
        (MONEY, Decimal("12.505"), "12.505 is more than a decimal of 9 digits, 2 of them after the point"),
        ("string", 5, "5 is not text in quotes"),
        ("string", "\ud800", "is no Unicode text"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "C", '"C" is none of the symbols A, B'),
        (["null", "int"], "x", '"x" is no int'),
        (["string", "int"], 1.5, "1.5 fits none of the types string, int"),
        (["string", "int"], {"int": "x"}, '"x" is no int'),
        ({"type": "array", "items": "int"}, [1, "x"], "field f[]"),
        (ORDER, {}, "field f.a: it is missing, and the schema has no default for it"),
        (PAIR, {"a": 1, "bb": 1}, "the schema Pair has no field bb; is b meant?"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_field(type_: Any, value: Any, words: str) -> None:
    with pytest.raises(UnencodableValue) as failed:
        record_from_json(schema_of(type_), {"f": value}, 7)
    assert words in str(failed.value) and "field f" in str(failed.value)


def test_missing_fields_have_the_defaults_of_the_schema() -> None:
    types: list[tuple[Any, Any]] = [
        ("bytes", "\u00ff"),
        (MONEY, "\u0001"),
        (MOMENT, 1000),
        (["bytes", "string"], "a"),
        (["null", "int"], None),
        ({"type": "array", "items": ["string", "null"]}, ["x"]),
        ({"type": "map", "values": PAIR}, {"k": {"a": 1}}),
    ]
    fields = [{"name": f"f{n}", "type": type_, "default": default} for n, (type_, default) in enumerate(types)]
    text = json.dumps({"type": "record", "name": "R", "fields": [*fields, {"name": "n", "type": ["null", "int"]}]})
    schema = AvroSchema.parse(text)
    empty = AvroSchema.parse('{"type": "record", "name": "R", "fields": []}')
    expected = decode_record(encode_record(empty, {}, 1), lambda _: empty, schema_of_defaults(text))[2]
    assert decode_record(record_from_json(schema, {}, 1), lambda _: schema)[2] == {**expected, "n": None}


def schema_of_defaults(text: str) -> AvroSchema:
    document = json.loads(text)
    document["fields"] = [field for field in document["fields"] if "default" in field]
    return AvroSchema.parse(json.dumps(document))


def test_bytes_that_contradict_the_schema_are_refused() -> None:
    schema = schema_of(["string", "int"])
    message = record_from_json(schema, {"f": 5}, 7)
    for data in (message[:-1], message + b"x", message[:5] + b"\x06"):
        with pytest.raises(CorruptRecord):
            record_to_json(data, lambda _: schema)


def test_a_list_of_itself_is_written_and_read() -> None:
    text = '{"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L", "string"]}]}'
    schema = AvroSchema.parse(text)
    value = {"next": {"next": {"next": "end"}}}
    assert as_json(schema, record_from_json(schema, value, 7)) == value
    for _ in range(3000):
        value = {"next": value}
    with pytest.raises(UnencodableValue, match="nested too deep"):
        record_from_json(schema, value, 7)
