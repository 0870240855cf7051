"""Bytes that claim more than they contain, unknown ids, and the locations in error messages."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.client import AvroSchema, NotFound, Unavailable
from registry.serde import (
    CorruptRecord,
    Origin,
    SerializationError,
    UnknownSchema,
    UnsupportedSchema,
    arrow_type,
    decode_columns,
    decode_record,
    encode_columns,
)

HEADER = b"\0\0\0\0\7"


def parse(type_: Any) -> AvroSchema:
    return AvroSchema.parse(json.dumps({"type": "record", "name": "R", "fields": [{"name": "v", "type": type_}]}))


HOSTILE: list[tuple[Any, bytes]] = [
    ("string", b"\xfe\xff\xff\xff\xff\xff\x0f"),
    ("bytes", b"\xfe\xff\xff\xff\x0f"),
    ({"type": "array", "items": "string"}, b"\xfe\xff\xff\xff\x0f"),
    ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f"),
    ({"type": "map", "values": "null"}, b"\xfe\xff\xff\xff\x0f"),
    ({"type": "fixed", "name": "F", "size": 1 << 30}, b"\0" * 100),
    ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}, b"\x80\x89\x7a" + b"\x01" * 1_000_000),
]


@pytest.mark.parametrize(("type_", "body"), HOSTILE)
def test_announced_lengths_are_not_allocated(type_: Any, body: bytes) -> None:
    schema, messages = parse(type_), pa.array([HEADER + body] * 2)
    allocated = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(CorruptRecord, match="field v"):
            decode_columns(messages, lambda _: schema)
        with pytest.raises(CorruptRecord, match="field v"):
            decode_record(HEADER + body, lambda _: schema)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 80 << 20 and pa.total_allocated_bytes() - allocated < 80 << 20


def test_a_wide_fixed_that_most_rows_lack_is_refused() -> None:
    schema = parse(["null", {"type": "fixed", "name": "F", "size": 1 << 20}])
    wide = encode_columns(schema, pa.array([{"v": b"\1" * (1 << 20)}], arrow_type(schema)), 7)
    few = pa.array([wide[0].as_py(), HEADER + b"\0"])
    assert [row["v"] is None for run in decode_columns(few, lambda _: schema) for row in run.array.to_pylist()] == [
        False,
        True,
    ]
    many = pa.array([wide[0].as_py()] * 2 + [HEADER + b"\0"] * 4000)
    with pytest.raises(UnsupportedSchema, match="4002 rows of a fixed of 1048576 bytes"):
        decode_columns(many, lambda _: schema)


def test_a_decimal_with_more_leading_bytes_than_it_needs_is_read() -> None:
    schema = parse({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2})
    for body in (b"\x80\x08" + b"\xff" * 511 + b"\x85", b"\x02\x85", b"\x28" + b"\xff" * 19 + b"\x85"):
        (run,) = decode_columns(pa.array([HEADER + body]), lambda _: schema)
        assert str(run.array[0].as_py()["v"]) == str(decode_record(HEADER + body, lambda _: schema)[2]["v"]) == "-1.23"


def test_a_union_of_logical_types_is_coded() -> None:
    fields = ["null", {"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-micros"}]
    schema = parse([*fields, {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}])
    bodies = [b"\0", b"\x02\x03", b"\x04\x81\x01", b"\x06\x02\x7f"]
    (run,) = decode_columns(pa.array([HEADER + body for body in bodies]), lambda _: schema)
    assert encode_columns(schema, run.array, 7).to_pylist() == [HEADER + body for body in bodies]
    kinds = [next((k for k, v in (row["v"] or {}).items() if v is not None), None) for row in run.array.to_pylist()]
    assert kinds == [None, "int", "long", "bytes"]


def test_a_number_for_a_logical_type_is_the_number_beneath() -> None:
    schema = parse({"type": "long", "logicalType": "timestamp-micros"})
    column = pa.StructArray.from_arrays([pa.array([5, -1])], ["v"])
    assert encode_columns(schema, column, 7).to_pylist() == [HEADER + b"\x0a", HEADER + b"\x01"]


def test_a_record_batch_is_its_rows() -> None:
    schema, batch = parse("int"), pa.RecordBatch.from_pylist([{"v": 1}, {"v": 2}])
    assert encode_columns(schema, batch, 7).to_pylist() == [HEADER + b"\x02", HEADER + b"\x04"]


def test_nanoseconds_are_kept() -> None:
    for logical in ("timestamp-nanos", "local-timestamp-nanos"):
        schema = parse({"type": "long", "logicalType": logical})
        column = pa.array([{"v": 1_700_000_000_123_456_789}], arrow_type(schema))
        message = encode_columns(schema, column, 7)
        assert decode_columns(message, lambda _: schema)[0].array.equals(column)
        assert decode_record(message[0].as_py(), lambda _: schema)[2] == {"v": 1_700_000_000_123_456_789}


def test_an_unknown_id_is_the_records_fault_and_a_silent_registry_is_not() -> None:
    schema = parse("int")
    messages = pa.array([None, HEADER + b"\x02", b"\0\0\0\0\x09\x02"])

    def resolve(schema_id: int) -> AvroSchema:
        if schema_id == 9:
            raise NotFound("Schema 9 not found", 40403)
        return schema

    with pytest.raises(UnknownSchema) as caught:
        decode_columns(messages, resolve, origin=Origin("orders", 1, [10, 20, 30]))
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.row) == ("orders", 1, 30, 2)
    assert str(error).startswith("topic orders, partition 1, offset 30: the registry has no schema with the id 9")
    with pytest.raises(UnknownSchema, match="topic orders, offset 4: there is no schema with the id 7"):
        decode_record(HEADER + b"\x02", dict[int, AvroSchema]().__getitem__, origin=Origin("orders", offsets=4))

    def silent(_: int) -> AvroSchema:
        raise Unavailable("no registry answered")

    with pytest.raises(Unavailable):
        decode_columns(messages, silent)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([None, 1, 2, 3]), max_size=12), st.data())
def test_any_mixture_of_ids_comes_back_in_order(ids: list[int | None], data: st.DataObject) -> None:
    schemas = {1: parse("int"), 2: parse("string"), 3: parse(["null", "double"])}
    drawn = {1: st.integers(0, 9), 2: st.text(max_size=3), 3: st.none() | st.floats(0, 1)}
    values = [None if i is None else {"v": data.draw(drawn[i])} for i in ids]
    messages = [
        None if i is None else encode_columns(schemas[i], pa.array([value], arrow_type(schemas[i])), i)[0].as_py()
        for i, value in zip(ids, values, strict=True)
    ]
    runs = decode_columns(pa.array(messages, pa.binary()), schemas.__getitem__)
    assert [row for run in runs for row in run.array.to_pylist()] == values
    assert [run.start for run in runs] == [sum(run.length for run in runs[:index]) for index in range(len(runs))]
    for run in runs:
        assert {i for i in ids[run.start : run.start + run.length] if i is not None} <= {run.schema_id}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=30), min_size=1, max_size=5))
def test_any_bytes_are_rows_or_a_clear_error(messages: list[bytes]) -> None:
    schema = parse({"type": "map", "values": ["null", "string", {"type": "array", "items": "long"}]})
    try:
        decode_columns(pa.array([HEADER + message for message in messages]), lambda _: schema)
    except SerializationError as error:
        assert error.row is not None
