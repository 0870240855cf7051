"""Coding columns, compared with fastavro for random schemas and values."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.client import AvroSchema
from registry.serde import (
    CorruptRecord,
    UnencodableValue,
    UnsupportedSchema,
    arrow_type,
    avro_schema,
    decode_columns,
    encode_columns,
)
from registry.serde.blocks import FEW_ROWS
from tests.registry.serde.drawn import EPOCH, SCALARS, Typed, logical, tables, written_by_fastavro


@settings(max_examples=80, deadline=None)
@given(tables())
def test_the_bytes_are_fastavros_and_come_back(table: tuple[AvroSchema, list[Any]]) -> None:
    schema, rows = table
    column = pa.array(rows, arrow_type(schema))
    encoded = encode_columns(schema, column, 7)
    assert encoded.to_pylist() == [written_by_fastavro(schema, row) for row in rows]
    runs = decode_columns(encoded, {7: schema}.__getitem__)
    if rows:
        many = pa.concat_arrays([encoded] * FEW_ROWS[1])  # enough of them that lists are read step by step
        (repeated,) = decode_columns(many, {7: schema}.__getitem__)
        assert repeated.array.equals(pa.concat_arrays([column] * FEW_ROWS[1]))
        # rows that were read, and slices of them, are written unchanged
        assert encode_columns(schema, repeated.array, 7).equals(many)
        assert encode_columns(schema, repeated.array.slice(len(rows) + 1), 7).equals(many.slice(len(rows) + 1))
        (run,) = runs
        run.array.validate(full=True)
        assert (run.start, run.length, run.schema_id, run.schema) == (0, len(rows), 7, schema)
        assert run.array.equals(column)
    else:
        assert runs == []


@settings(max_examples=80, deadline=None)
@given(tables(), st.data())
def test_broken_bytes_are_an_error_or_another_value_never_a_crash(
    table: tuple[AvroSchema, list[Any]], data: st.DataObject
) -> None:
    schema, rows = table
    encoded = encode_columns(schema, pa.array(rows, arrow_type(schema)), 7).to_pylist()
    if not encoded:
        return
    row = data.draw(st.integers(0, len(encoded) - 1))
    message = bytearray(encoded[row])
    if data.draw(st.booleans()):
        del message[data.draw(st.integers(0, len(message) - 1)) :]
        must_fail = True
    else:
        message[data.draw(st.integers(0, len(message) - 1))] ^= data.draw(st.integers(1, 255))
        must_fail = False
    before = [encoded[row]] * data.draw(st.sampled_from([0, FEW_ROWS[1]]))
    encoded = [*before, *encoded]
    row += len(before)
    encoded[row] = bytes(message)
    try:
        runs = decode_columns(pa.array(encoded, pa.binary()), {7: schema}.__getitem__)
    except CorruptRecord as error:
        assert error.row == row or error.row is None
    except KeyError:
        assert message[:5] != b"\0\0\0\0\7"
    else:
        assert not must_fail
        for run in runs:
            run.array.validate(full=True)


def unknown(schema_id: int) -> AvroSchema:
    raise AssertionError(f"schema {schema_id} was asked for")


def parse(*fields: tuple[str, Any], name: str = "R") -> AvroSchema:
    described = [{"name": n, **(t if isinstance(t, dict) and "default" in t else {"type": t})} for n, t in fields]
    return AvroSchema.parse(json.dumps({"type": "record", "name": name, "fields": described}))


def test_nulls_and_changing_ids_make_runs() -> None:
    first_schema, two = parse(("a", "int")), parse(("b", "string"), name="S")
    first = encode_columns(first_schema, pa.array([{"a": 1}, None, {"a": 2}]), 1).to_pylist()
    second = encode_columns(two, pa.array([{"b": "x"}, None]), 2).to_pylist()
    values = pa.array([None, *first, *second, *first[:1]], pa.binary())
    runs = decode_columns(values, {1: first_schema, 2: two}.__getitem__)
    assert [(run.start, run.length, run.schema_id) for run in runs] == [(0, 4, 1), (4, 2, 2), (6, 1, 1)]
    assert [run.array.to_pylist() for run in runs] == [
        [None, {"a": 1}, None, {"a": 2}],
        [{"b": "x"}, None],
        [{"a": 1}],
    ]
    (run,) = decode_columns(pa.nulls(2, pa.binary()), unknown)
    assert (run.length, run.schema_id, run.array.null_count) == (2, None, 2)


def test_a_slice_is_encoded_and_decoded_as_itself() -> None:
    schema = parse(("a", "long"), ("s", ["null", "string"]), ("l", {"type": "array", "items": "int"}))
    rows = [{"a": n, "s": None if n % 3 else str(n), "l": list(range(n % 4))} for n in range(20)]
    column = pa.array(rows, arrow_type(schema)).slice(5, 10)
    encoded = encode_columns(schema, column, 7)
    assert encoded.to_pylist() == [written_by_fastavro(schema, row) for row in rows[5:15]]
    (run,) = decode_columns(encoded.slice(2, 5), {7: schema}.__getitem__)
    assert run.array.to_pylist() == rows[7:12]


def test_a_union_of_several_types_is_a_struct() -> None:
    schema = parse(
        ("u", ["null", "int", "string", {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}])
    )
    rows: list[Any] = [{"u": None}, {"u": {"int": 1}}, {"u": {"string": "s"}}, {"u": {"P": {"x": 5}}}]
    column = pa.array(rows, arrow_type(schema))
    encoded = encode_columns(schema, column, 7)
    plain = [None, 1, "s", {"x": 5}]
    assert encoded.to_pylist() == [written_by_fastavro(schema, {"u": value}) for value in plain]
    (run,) = decode_columns(encoded, {7: schema}.__getitem__)
    empty = {"int": None, "string": None, "P": None}
    assert run.array.to_pylist() == [{"u": row["u"] and {**empty, **row["u"]}} for row in rows]
    with pytest.raises(UnencodableValue, match=r"row 1, field u: 2 branches"):
        encode_columns(schema, pa.array([rows[1], {"u": {"int": 1, "string": "x"}}], arrow_type(schema)), 7)


@pytest.mark.parametrize(
    ("type_", "values", "words"),
    [
        ("int", pa.array([1, None]), "row 1, field v: null"),
        ("int", pa.array([1, 2**31]), "row 1, field v: int64 does not fit int32"),
        ("string", pa.array([1, 2]), None),
        ("double", pa.array(["x"]), "row 0, field v"),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            pa.array(["A", "B"]),
            "row 1, field v: 'B' is no symbol of E",
        ),
        (logical("long", "timestamp-millis"), pa.array([0, 1500], pa.timestamp("us", "UTC")), "row 1, field v"),
        (logical("bytes", "decimal", precision=3, scale=1), pa.array([Decimal("1.25")]), "row 0, field v"),
        ("bytes", pa.array([[1]]), "field v"),
    ],
)
def test_a_value_that_does_not_fit_names_row_and_field(type_: Any, values: pa.Array, words: str | None) -> None:
    column = pa.StructArray.from_arrays([values], ["v"])
    if words is None:
        encode_columns(parse(("v", type_)), column, 1)
        return
    with pytest.raises(UnencodableValue) as caught:
        encode_columns(parse(("v", type_)), column, 1)
    assert words in str(caught.value)


def test_columns_must_be_fields_and_fields_columns_or_defaults() -> None:
    schema = parse(
        ("a", "int"), ("b", {"type": "string", "default": "x"}), ("c", {"type": ["null", "int"], "default": None})
    )
    encoded = encode_columns(schema, pa.array([{"a": 1}, {"a": 2}]), 7)
    assert encoded.to_pylist() == [written_by_fastavro(schema, {"a": n}) for n in (1, 2)]
    with pytest.raises(UnencodableValue, match="has no field z"):
        encode_columns(schema, pa.array([{"a": 1, "z": 2}]), 7)
    with pytest.raises(UnencodableValue, match="field a: the column is missing"):
        encode_columns(schema, pa.array([{"b": "y"}]), 7)


@pytest.mark.parametrize(
    ("type_", "body", "words"),
    [
        ("int", b"", "row 1, field v: the record ends"),
        ("int", b"\x80", "row 1, field v: the record ends within a number"),
        ("int", b"\x80\x80\x80\x80\x10", "row 1, field v: 2147483648 is no int"),
        ("long", b"\xff" * 10, "row 1, field v: a number is wider than 64 bits"),
        ("long", b"\xff" * 12, "row 1, field v"),
        ("int", b"\x02\x00", "row 1: 1 bytes are left over"),
        ("string", b"\x01", "row 1, field v: a length of -1"),
        ("string", b"\x0aab", "row 1, field v: a length of 5 where 2 bytes are left"),
        ("string", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "row 1, field v: a length of 9223372036854775807"),
        ("string", b"\x02\xff", "row 1, field v: not UTF-8"),
        ("boolean", b"\x02", "row 1, field v: a boolean of 2"),
        (["null", "int"], b"\x04", "row 1, field v: branch 2 of a union of 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "row 1, field v: symbol 1 of 1 in E"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f", "row 1, field v: a block of 2147483647 items"),
        ({"type": "array", "items": "int"}, b"\x02\x02", "row 1, field v: the record ends"),
        (logical("int", "time-millis"), b"\x01", "row 1, field v: -1 ms is no time of day"),
        (logical("bytes", "decimal", precision=2, scale=0), b"\x04\x01\x00", "row 1, field v"),
        (
            logical("bytes", "decimal", precision=2, scale=0),
            b"\x24" + b"\x01" * 18,
            "row 1, field v: a decimal of 18 bytes",
        ),
    ],
)
def test_corrupt_bytes_name_row_and_field(type_: Any, body: bytes, words: str) -> None:
    schema = parse(("v", type_))
    good = {"int": b"\0", "long": b"\0", "string": b"\0", "boolean": b"\0"}.get(str(type_), b"\0")
    if isinstance(type_, dict) and type_.get("logicalType") == "decimal":
        good = b"\x02\x01"
    values = pa.array([b"\0\0\0\0\1" + good, b"\0\0\0\0\1" + body], pa.binary())
    with pytest.raises(CorruptRecord) as caught:
        decode_columns(values, {1: schema}.__getitem__)
    assert words in str(caught.value)


@pytest.mark.parametrize("message", [b"", b"\0\0\0\0", b"\1\0\0\0\1\0", b"hello there"])
def test_a_message_without_a_frame_is_reported(message: bytes) -> None:
    values = pa.array([None, message], pa.binary())
    with pytest.raises(CorruptRecord, match="row 1: not in Confluent framing"):
        decode_columns(values, unknown)


def test_blocks_with_sizes_are_read() -> None:
    schema = parse(("v", {"type": "array", "items": "long"}))
    body = b"\x03\x04\x02\x04" + b"\x02\x06" + b"\0"
    (run,) = decode_columns(pa.array([b"\0\0\0\0\1" + body]), {1: schema}.__getitem__)
    assert run.array.to_pylist() == [{"v": [1, 2, 3]}]


def test_a_reader_schema_promotes_fills_in_and_leaves_out() -> None:
    writer = parse(("a", "int"), ("gone", "string"), ("old", "int"), ("n", ["null", "int"]))
    reader = AvroSchema.parse(
        json.dumps(
            {
                "type": "record",
                "name": "R",
                "fields": [
                    {"name": "new", "type": "long", "aliases": ["old"]},
                    {"name": "a", "type": ["null", "double"]},
                    {"name": "extra", "type": {"type": "array", "items": "string"}, "default": ["x"]},
                    {"name": "when", "type": logical("long", "timestamp-millis"), "default": 1000},
                    {"name": "n", "type": ["null", "long"]},
                ],
            }
        )
    )
    rows = [{"a": 1, "gone": "g", "old": 5, "n": None}, {"a": 2, "gone": "h", "old": 6, "n": 7}]
    values = encode_columns(writer, pa.array(rows, arrow_type(writer)), 7)
    (run,) = decode_columns(values, {7: writer}.__getitem__, reader)
    assert run.array.type == arrow_type(reader)
    moment = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert run.array.to_pylist() == [
        {"new": 5, "a": 1.0, "extra": ["x"], "when": moment, "n": None},
        {"new": 6, "a": 2.0, "extra": ["x"], "when": moment, "n": 7},
    ]
    prepared = [fastavro.parse_schema(json.loads(schema.resolved)) for schema in (writer, reader)]
    for value, expected in zip(values.to_pylist(), run.array.to_pylist(), strict=True):
        # fastavro hands a default out as the plain number, logical type or not.
        assert fastavro.schemaless_reader(io.BytesIO(value[5:]), *prepared) == {**expected, "when": 1000}


def test_a_reader_without_fields_keeps_nulls() -> None:
    writer = parse(("v", ["null", {"type": "record", "name": "P", "fields": [{"name": "a", "type": "int"}]}]))
    reader = parse(("v", [{"type": "record", "name": "P", "fields": []}, "null"]))
    values = encode_columns(writer, pa.array([{"v": None}, {"v": {"a": 1}}], arrow_type(writer)), 7)
    (run,) = decode_columns(values, {7: writer}.__getitem__, reader)
    assert run.array.to_pylist() == [{"v": None}, {"v": {}}]


def test_a_reader_that_cannot_take_a_value_names_it() -> None:
    writer = parse(("e", {"type": "enum", "name": "E", "symbols": ["A", "B"]}), ("n", ["null", "int"]))
    values = encode_columns(writer, pa.array([{"e": "A", "n": 1}, {"e": "B", "n": None}]), 7)
    narrow = parse(("e", {"type": "enum", "name": "E", "symbols": ["A"]}), ("n", ["null", "int"]))
    with pytest.raises(CorruptRecord, match="row 1, field e: 'B' is no symbol of E"):
        decode_columns(values, {7: writer}.__getitem__, narrow)
    required = parse(("e", {"type": "enum", "name": "E", "symbols": ["A", "B"]}), ("n", "int"))
    with pytest.raises(CorruptRecord, match="row 1, field n: null"):
        decode_columns(values, {7: writer}.__getitem__, required)
    with pytest.raises(CorruptRecord, match="field q: the writer's schema lacks the field"):
        decode_columns(values, {7: writer}.__getitem__, parse(("q", "int")))


def test_an_error_in_a_list_names_the_row_of_the_list() -> None:
    schema = parse(("l", {"type": "array", "items": "int"}))
    column = pa.StructArray.from_arrays([pa.array([[1, 2], [], [3, None]], pa.list_(pa.int32()))], ["l"])
    with pytest.raises(UnencodableValue, match=r"row 2, field l\[\]: null"):
        encode_columns(schema, column, 1)
    writer = parse(("l", {"type": "array", "items": ["null", "int"]}))
    values = encode_columns(writer, column, 7)
    with pytest.raises(CorruptRecord, match=r"row 2, field l\[\]: null"):
        decode_columns(values, {7: writer}.__getitem__, schema)


ITEMS: list[Typed] = [
    ("int", st.integers(-100, 1000)),
    ("string", st.text(max_size=3)),
    (["null", "double"], st.none() | st.floats(allow_nan=False)),
    ({"type": "map", "values": "long"}, st.dictionaries(st.text(max_size=2), st.integers(0, 9), max_size=2)),
    ({"type": "array", "items": "boolean"}, st.lists(st.booleans(), max_size=2)),
]


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(ITEMS), st.data())
def test_long_lists_among_short_ones(item: Typed, data: st.DataObject) -> None:
    type_, values = item
    schema = parse(("before", "string"), ("v", {"type": "array", "items": type_}), ("after", "int"))
    few = data.draw(st.lists(values, min_size=3, max_size=3))
    lengths = data.draw(st.permutations([0, 1, 63, 64, 65, 66, 200]))
    rows = [{"before": "b", "v": [few[n % 3] for n in range(length)], "after": length} for length in lengths]
    column = pa.array(rows, arrow_type(schema))
    encoded = encode_columns(schema, column, 7)
    assert encoded.to_pylist() == [written_by_fastavro(schema, row) for row in rows]
    (run,) = decode_columns(encoded, {7: schema}.__getitem__)
    assert run.array.equals(column)
    message = bytearray(encoded[lengths.index(200)].as_py())
    del message[-data.draw(st.integers(1, 100)) :]
    with pytest.raises(CorruptRecord, match="row 1"):
        decode_columns(pa.array([encoded[0].as_py(), bytes(message)]), {7: schema}.__getitem__)


WIDER = {
    "int": ["int", "long", "float", "double"],
    "long": ["long", "double"],
    "float": ["float", "double"],
    "string": ["string", "bytes"],
    "bytes": ["bytes"],
}


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[AvroSchema, AvroSchema, list[Any]]:
    """A writer, a reader that left out, reordered, widened and added, and rows of the writer."""
    plain = {
        "int": SCALARS[1][1],
        "long": st.integers(-(2**50), 2**50),
        "float": SCALARS[3][1],
        "string": SCALARS[5][1],
    }
    kinds = draw(st.lists(st.sampled_from(list(plain)), min_size=1, max_size=5))
    optional = [draw(st.booleans()) for _ in kinds]
    written = [(f"f{n}", ["null", k] if o else k) for n, (k, o) in enumerate(zip(kinds, optional, strict=True))]
    nested = draw(st.booleans())
    read: list[tuple[str, Any]] = []
    for number, kind in enumerate(kinds):
        if draw(st.booleans()):
            wide = draw(st.sampled_from(WIDER[kind]))
            read.append((f"f{number}", ["null", wide] if optional[number] or draw(st.booleans()) else wide))
    read = draw(st.permutations(read))
    read.append(("added", {"type": ["null", "string"], "default": None}))
    values: st.SearchStrategy[Any] = st.fixed_dictionaries(
        {f"f{n}": st.none() | plain[k] if o else plain[k] for n, (k, o) in enumerate(zip(kinds, optional, strict=True))}
    )
    schemas = [parse(*fields) for fields in (written, read)]
    if nested:
        schemas = [parse(("l", {"type": "array", "items": json.loads(s.resolved)}), name="Outer") for s in schemas]
        values = st.fixed_dictionaries({"l": st.lists(values, max_size=3)})
    return schemas[0], schemas[1], draw(st.lists(values, min_size=1, max_size=5))


@settings(max_examples=80, deadline=None)
@given(evolutions())
def test_readers_get_the_same_values_as_with_fastavro(evolution: tuple[AvroSchema, AvroSchema, list[Any]]) -> None:
    writer, reader, rows = evolution
    values = encode_columns(writer, pa.array(rows, arrow_type(writer)), 7)
    (run,) = decode_columns(values, {7: writer}.__getitem__, reader)
    prepared = [fastavro.parse_schema(json.loads(schema.resolved)) for schema in (writer, reader)]
    expected = [fastavro.schemaless_reader(io.BytesIO(value[5:]), *prepared) for value in values.to_pylist()]
    assert run.array.type == arrow_type(reader)
    # A number promoted to float by fastavro keeps digits a float does not have; Arrow rounds it, as Java does.
    assert run.array.equals(pa.array(expected, arrow_type(reader)))


@pytest.mark.parametrize(
    ("items", "body"),
    [
        ("null", b"\x80\x80\x08" * 5000 + b"\0"),
        ("null", b"\xff\xff\x07\x02" * 5000 + b"\0"),
        ({"type": "array", "items": "null"}, b"\xd0\x0f" + b"\x80\x80\x08\0" * 1000 + b"\0"),
    ],
)
def test_a_few_bytes_cannot_announce_items_without_end(items: Any, body: bytes) -> None:
    schema = AvroSchema.parse(json.dumps({"type": "array", "items": items}))
    with pytest.raises(CorruptRecord, match=r"row 0.* a block of"):
        decode_columns(pa.array([b"\0\0\0\0\1" + body]), lambda _: schema)


def test_a_recursive_schema_has_no_columns() -> None:
    schema = AvroSchema.parse('{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}')
    with pytest.raises(UnsupportedSchema, match=r"field next: the record L holds itself"):
        arrow_type(schema)


def test_a_schema_of_endless_columns_is_refused() -> None:
    inner: Any = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "null"}]}
    for level in range(1, 60):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{level - 1}"}]
        inner = {"type": "record", "name": f"R{level}", "fields": fields}
    schema = AvroSchema.parse(json.dumps(inner))
    with pytest.raises(UnsupportedSchema, match="columns once its records are written out"):
        decode_columns(pa.array([b"\0\0\0\0\1"]), lambda _: schema)
    with pytest.raises(UnsupportedSchema, match="columns once its records are written out"):
        arrow_type(schema)


@settings(max_examples=50, deadline=None)
@given(tables())
def test_an_arrow_type_has_a_schema_that_takes_its_values(table: tuple[AvroSchema, list[Any]]) -> None:
    column = pa.array(table[1], arrow_type(table[0]))
    derived = avro_schema(column.type, "Derived", "a.b")
    encoded = encode_columns(derived, column, 3)
    for run in decode_columns(encoded, {3: derived}.__getitem__):
        assert run.array.to_pylist() == column.to_pylist()


def test_calls_do_not_grow_with_rows() -> None:
    schema = parse(
        ("a", "long"),
        ("s", ["null", "string"]),
        ("d", logical("bytes", "decimal", precision=10, scale=2)),
        ("e", {"type": "enum", "name": "E", "symbols": ["A", "B"]}),
        ("t", logical("long", "timestamp-micros")),
    )

    def calls(rows: int) -> int:
        row = {"a": 1, "s": "x", "d": Decimal("1.00"), "e": "B", "t": EPOCH}
        column = pa.array([row, {**row, "s": None}] * (rows // 2), arrow_type(schema))
        count = 0

        def profile(_frame: Any, event: str, _argument: Any) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            decode_columns(encode_columns(schema, column, 1), {1: schema}.__getitem__)
        finally:
            sys.setprofile(None)
        return count

    calls(10)
    assert calls(1_000) == calls(10_000)


def test_times_of_day_keep_their_meaning() -> None:
    schema = parse(("t", logical("int", "time-millis")))
    column = pa.array([{"t": time(1, 2, 3, 4000)}], arrow_type(schema))
    (run,) = decode_columns(encode_columns(schema, column, 1), {1: schema}.__getitem__)
    assert run.array.to_pylist() == [{"t": time(1, 2, 3, 4000)}]
