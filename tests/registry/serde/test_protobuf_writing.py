"""Columns as Protobuf messages; Google's runtime and our decoder read them back."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

from registry.formats.protobuf.schema import ProtobufSchema
from registry.serde import (
    SerializationError,
    UnencodableValue,
    UnsupportedSchema,
    decode_protobuf,
    encode_protobuf,
    frame,
    protobuf_schema_of,
    protobuf_type,
)
from tests.registry.serde.test_protobuf import RICH, full_order

LINE = pa.struct([("text", pa.string()), ("flag", pa.bool_())])
EVERY = pa.struct([
    ("small", pa.int8()), ("id", pa.int64()), ("count", pa.uint32()), ("big", pa.uint64()), ("price", pa.float64()),
    ("share", pa.float32()), ("name", pa.string()), ("data", pa.binary()), ("paid", pa.bool_()),
    ("at", pa.timestamp("us", "UTC")), ("took", pa.duration("us")), ("day", pa.date32()), ("tags", pa.list_(pa.string())),
    ("line", LINE), ("lines", pa.list_(LINE)), ("sizes", pa.map_(pa.string(), pa.int32())),
    ("by_number", pa.map_(pa.int64(), LINE)),
])  # fmt: skip


def encoded(column: pa.Array, schema: ProtobufSchema, message: str | None = None) -> pa.Array:
    return encode_protobuf(column, schema, 7, message)


def test_every_type_comes_back_as_it_was() -> None:
    row = {
        "small": -3, "id": -(2**63), "count": 2**32 - 1, "big": 2**64 - 1, "price": 0.1, "share": 0.5, "name": "é", "data": b"\0",
        "paid": False, "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC), "took": dt.timedelta(microseconds=-1_500_000),
        "day": dt.date(2024, 2, 29), "tags": ["a", ""], "line": {"text": None, "flag": True},
        "lines": [{"text": "x", "flag": None}, {}], "sizes": [("a", 1)], "by_number": [(5, {"text": "five", "flag": None})],
    }  # fmt: skip
    column = pa.array([row, None, {}], EVERY)
    schema = protobuf_schema_of(EVERY, "Value")
    back = decode_protobuf(encoded(column, schema), lambda _: schema, schema)
    first, second, third = back.to_pylist()
    assert first == pa.array([row], EVERY).to_pylist()[0]
    assert second is None
    empty = dict.fromkeys(row) | {"tags": [], "lines": [], "sizes": [], "by_number": []}
    assert third == empty  # a null of an optional field stays null; a list that is missing is empty to Protobuf


def test_a_registered_message_of_every_kind_is_written() -> None:
    schema = ProtobufSchema.parse(RICH)
    row = decode_protobuf(
        pa.array([frame(7, b"\0" + full_order(schema).SerializeToString())]),  # type: ignore[attr-defined]
        lambda _: schema,
        schema,
    )
    back = decode_protobuf(encoded(row, schema), lambda _: schema, schema)
    assert back.equals(row)
    inner = pa.array([{"count": 3}], pa.struct([("count", pa.int64())]))
    (data,) = encoded(inner, schema, "shop.Order.Line").to_pylist()
    assert data[:8] == b"\0\0\0\0\7" + bytes([4, 0, 0])  # two indexes, each 0, as zigzag numbers
    numbers = pa.array(
        [{"big": decimal.Decimal(2**64 - 1), "kind": "7"}],
        pa.struct([("big", pa.decimal128(20)), ("kind", pa.string())]),
    )
    (value,) = decode_protobuf(encoded(numbers, schema), lambda _: schema, schema).to_pylist()
    assert (value["big"], value["kind"]) == (2**64 - 1, "7")
    assert json.loads(row.to_pylist()[0]["extra"]) == json.loads(back.to_pylist()[0]["extra"])


@pytest.mark.parametrize(
    ("type_", "values", "path", "words"),
    [
        (pa.struct([("rank", pa.int64())]), [{"rank": 1}, {"rank": 2**31}], "rank", "2147483648"),
        (pa.struct([("kind", pa.string())]), [None, {"kind": "CD"}], "kind", "'CD' is no value of shop.Kind"),
        (pa.struct([("tags", pa.list_(pa.string()))]), [{}, {"tags": [None]}], "tags", "a null in a list"),
        (pa.struct([("big", pa.decimal128(5, 1))]), [{}, {"big": decimal.Decimal("1.5")}], "big", "1.5 is no whole number"),
        (pa.struct([("at", pa.string())]), [{}, {"at": "now"}], "at", "'now' is no time"),
        (
            pa.struct([("parts", pa.list_(pa.struct([("count", pa.int64())])))]), [{}, {"parts": [{"count": -1}]}], "parts.count", "-1",
        ),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_names_its_row_and_field(
    type_: pa.DataType, values: list[Any], path: str, words: str
) -> None:
    with pytest.raises(UnencodableValue, match=words) as caught:
        encoded(pa.array(values, type_), ProtobufSchema.parse(RICH))
    assert (caught.value.row, caught.value.path) == (1, path)


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (pa.int64(), "make it a struct"),
        (pa.struct([("price", pa.decimal128(10, 2))]), r"field price: Arrow type decimal128\(10, 2\) has no Protobuf type here: cast it"),
        (pa.struct([("a", pa.struct([("two words", pa.int32())]))]), "field a.two words: Protobuf has no field name"),
        (pa.struct([("a", pa.list_(pa.list_(pa.int32())))]), "field a: Arrow type list"),
        (pa.struct([("a", pa.map_(pa.float64(), pa.int32()))]), "field a: a map with keys of double"),
    ],
)  # fmt: skip
def test_a_type_without_a_message_is_refused_by_name(type_: pa.DataType, words: str) -> None:
    with pytest.raises(SerializationError, match=words) as caught:
        protobuf_schema_of(type_)
    assert isinstance(caught.value, UnsupportedSchema)


def test_messages_are_named_apart_from_fields() -> None:
    type_ = pa.struct([("Line", LINE), ("line", LINE)])
    with_both = protobuf_schema_of(type_)
    assert protobuf_type(with_both) == type_
