"""JSON values as columns of a JSON Schema."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from registry.formats.json_schema.schema import JsonSchema
from registry.serde import CorruptRecord, UnsupportedSchema, decode_json, frame, json_type

ORDER = {
    "type": "object",
    "definitions": {"line": {"type": "object", "properties": {"count": {"type": "integer", "connect.type": "int32"}}}},
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": "number"},
        "name": {"type": "string"},
        "paid": {"type": "boolean"},
        "note": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "rank": {"type": ["integer", "null"]},
        "kind": {"enum": ["A", "B"]},
        "data": {"type": "string", "connect.type": "bytes"},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "sizes": {"type": "object", "additionalProperties": {"type": "number"}},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        "anything": {},
        "both": {"allOf": [{"$ref": "#/definitions/line"}, {"properties": {"more": {"type": "string"}}}]},
    },
}


def schema(value: Any, references: dict[str, str] | None = None) -> JsonSchema:
    return JsonSchema.parse(json.dumps(value), references or {})


def framed(*values: Any) -> pa.Array:
    return pa.array([None if v is None else frame(3, json.dumps(v).encode()) for v in values], pa.binary())


def test_every_kind_of_value_has_a_column() -> None:
    full = {
        "id": 1, "price": 2, "name": "ä", "paid": True, "note": None, "rank": 2.0, "kind": "B", "data": "AQI=",
        "lines": [{"count": 1}, None], "sizes": {"a": 1.5}, "either": 7, "anything": {"x": [1]},
        "both": {"count": 2, "more": "m"}, "unknown": 1,
    }  # fmt: skip
    column = decode_json(framed(full, None, {}), schema(ORDER))
    assert column.type == json_type(schema(ORDER))
    column.validate(full=True)
    first, missing, empty = column.to_pylist()
    assert first == {
        "id": 1, "price": 2.0, "name": "ä", "paid": True, "note": None, "rank": 2, "kind": "B", "data": b"\x01\x02",
        "lines": [{"count": 1}, None], "sizes": [("a", 1.5)], "either": "7", "anything": '{"x": [1]}',
        "both": {"count": 2, "more": "m"},
    }  # fmt: skip
    assert missing is None
    assert empty == dict.fromkeys(first)


def test_references_to_other_documents_are_followed() -> None:
    value = {"type": "object", "properties": {"line": {"$ref": "line.json#/definitions/l"}}}
    line = json.dumps({"definitions": {"l": {"$ref": "#/definitions/m"}, "m": {"type": "integer"}}})
    made = schema(value, {"line.json": line})
    assert decode_json(framed({"line": 3}), made).to_pylist() == [{"line": 3}]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"id": "x"}, "field id: expected int64, the value is \"x\""),
        ({"id": 1.5}, "field id: expected int64"),
        ({"id": True}, "field id: expected int64, the value is true"),
        ({"id": 2**70}, "field id: expected int64"),
        ({"paid": 1}, "field paid: expected bool, the value is 1"),
        ({"data": "?"}, "field data: expected binary"),
        ({"lines": {"count": 1}}, "field lines: expected an array"),
        ({"lines": [{"count": 1 << 40}]}, r"field lines\[\].count: expected int32"),
        ([1], "expected an object, the value is "),
    ],
)  # fmt: skip
def test_values_of_another_type_name_their_field(value: Any, words: str) -> None:
    with pytest.raises(CorruptRecord, match=words):
        decode_json(framed({}, value), schema(ORDER))


def test_broken_records_name_their_row() -> None:
    for data in (b"\x00\x00\x00\x00\x03{", b"{}", b"", b"\x00\x00\x00\x00\x03" + b"[" * 100_000):
        with pytest.raises(CorruptRecord, match="row 1"):
            decode_json(pa.array([framed({})[0].as_py(), data]), schema(ORDER))
    assert decode_json(pa.array([b'{"id": 1}']), schema(ORDER), framed=False)[0]["id"].as_py() == 1


def test_schemas_that_contain_themselves_and_broken_references_are_refused_by_name() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    with pytest.raises(UnsupportedSchema, match="the JSON Schema # contains itself"):
        json_type(schema(tree))
    with pytest.raises(UnsupportedSchema, match="refers to '#/definitions/x', which does not exist"):
        json_type(JsonSchema.parse('{"properties": {"a": {"$ref": "#/definitions/x"}}}', strict=False))
