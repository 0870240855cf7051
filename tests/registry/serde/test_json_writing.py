"""Columns as JSON values; jsonschema and our decoder read them back."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

from registry.formats.json_schema.schema import JsonSchema
from registry.serde import (
    UnencodableValue,
    UnsupportedSchema,
    decode_json,
    encode_json,
    json_schema_of,
    json_type,
)

LINE = pa.struct([("text", pa.string()), ("flag", pa.bool_())])
EVERY = pa.struct([
    ("small", pa.int8()), ("id", pa.int64()), ("price", pa.float64()), ("share", pa.float32()), ("name", pa.string()),
    ("data", pa.binary()), ("paid", pa.bool_()), ("tags", pa.list_(pa.string())), ("lines", pa.list_(LINE)),
    ("sizes", pa.map_(pa.string(), pa.float64())),
])  # fmt: skip


def test_every_type_comes_back_as_it_was_and_fits_its_schema() -> None:
    row = {
        "small": -3, "id": -(2**63), "price": 0.1, "share": 0.5, "name": 'é"\n', "data": b"\0\xff", "paid": False, "tags": ["a", None],
        "lines": [{"text": None, "flag": True}, None], "sizes": [("a", 1.0), ("b", None)],
    }  # fmt: skip
    column = pa.array([row, None, {}], EVERY)
    schema = json_schema_of(EVERY, "Value")
    assert json_type(schema) == EVERY
    written = encode_json(column, schema, 7)  # validated by jsonschema
    assert decode_json(written, schema).equals(column)
    assert written[2].as_py() == b"\0\0\0\0\7{}"
    assert decode_json(encode_json(column), schema, framed=False).equals(column)


def test_times_are_iso_8601_and_decimals_numbers() -> None:
    type_ = pa.struct([
        ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("day", pa.date32()), ("whole", pa.decimal128(38)),
        ("price", pa.decimal128(15, 2)),
    ])  # fmt: skip
    row = {
        "at": dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC), "local": dt.datetime(2024, 2, 29), "day": dt.date(2024, 2, 29),
        "whole": decimal.Decimal(10**37), "price": decimal.Decimal("9999999999999.99"),
    }  # fmt: skip
    (text,) = encode_json(pa.array([row], type_), json_schema_of(type_)).to_pylist()
    assert json.loads(text, parse_float=decimal.Decimal) == {
        "at": "2024-02-29T01:02:03.000004Z", "local": "2024-02-29T00:00:00", "day": "2024-02-29", "whole": 10**37,
        "price": decimal.Decimal("9999999999999.99"),
    }  # fmt: skip


def registered(properties: dict[str, Any], *required: str) -> JsonSchema:
    return JsonSchema.parse(json.dumps({"type": "object", "properties": properties, "required": required}))


def test_a_null_is_written_where_the_schema_requires_the_member() -> None:
    schema = registered({"a": {"type": ["integer", "null"]}, "b": {"type": "integer"}}, "a")
    type_ = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    assert encode_json(pa.array([{}], type_), schema).to_pylist() == [b'{"a":null}']
    any_value = registered({"extra": {}})
    text = pa.array([{"extra": '{"x": [1]}'}], pa.struct([("extra", pa.string())]))
    assert encode_json(text, any_value).to_pylist() == [b'{"extra":{"x":[1]}}']


@pytest.mark.parametrize(
    ("schema", "type_", "value", "path", "words"),
    [
        (registered({"a": {"type": "integer", "maximum": 5}}), pa.int64(), 6, "a", "6 is greater than the maximum of 5"),
        (registered({"a": {"type": "integer"}}, "a"), pa.int64(), None, "a", "None is not of type 'integer'"),
        (registered({"a": {"type": "integer"}}), pa.string(), "x", "a", "'x' is not of type 'integer'"),
        (registered({"a": {}}), pa.string(), "{", "", "Expecting property name"),
        (registered({"a": {"type": "number"}}), pa.float64(), float("nan"), "", "JSON compliant"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_names_its_row_and_field(
    schema: JsonSchema, type_: pa.DataType, value: Any, path: str, words: str
) -> None:
    column = pa.array([None, {"a": value}], pa.struct([("a", type_)]))
    with pytest.raises(UnencodableValue, match=words) as caught:
        encode_json(column, schema)
    assert (caught.value.row, caught.value.path) == (1, path)


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (pa.struct([("a", pa.decimal128(16, 2))]), "field a: .* more digits than a JSON number keeps"),
        (pa.struct([("a", pa.map_(pa.int32(), pa.int32()))]), "field a: a map with keys of int32"),
        (pa.struct([("a", pa.duration("us"))]), r"field a: Arrow type duration\[us\] has no JSON type"),
    ],
)
def test_a_type_that_json_lacks_is_refused_by_name(type_: pa.DataType, words: str) -> None:
    with pytest.raises(UnsupportedSchema, match=words):
        json_schema_of(type_)
