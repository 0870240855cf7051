from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import ConverterContext, DataError, Schema, SchemaType
from connect.converters.json import JsonConfig, JsonConverter
from connect.data.json_schema import schema_from_json, schema_to_json
from tests.support.schemas import schemas, values_of
from tidegate.kit.config import parse


def converter(**settings):
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return JsonConverter(parse(JsonConfig, named), ConverterContext(is_key=False))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_written_values_are_read_back(data):
    schema = data.draw(schemas)
    values = data.draw(st.lists(values_of(schema), min_size=1, max_size=5))
    column = pa.array(values, schema.arrow_type)
    for format_ in ("BASE64", "NUMERIC")[: 1 if "Decimal" in repr(schema) else 2]:
        json_converter = converter(decimal_format=format_)
        written = json_converter.from_connect("t", schema, column)
        assert written.null_count == column.null_count
        runs = json_converter.to_connect("t", written)
        if column.null_count == len(column):
            continue
        (run,) = runs
        assert run.schema == schema
        assert run.values.equals(column)


@settings(max_examples=200, deadline=None)
@given(schemas)
def test_a_schema_s_json_says_all_of_it(schema):
    assert schema_from_json(json.loads(json.dumps(schema_to_json(schema)))) == schema


def test_a_schema_is_written_as_kafka_connect_does():
    schema = Schema.struct({"id": Schema(SchemaType.INT64), "at": Schema.timestamp(optional=True)}, name="Row")
    written = converter().from_connect("t", schema, pa.array([{"id": 1, "at": None}], schema.arrow_type))
    assert written[0].as_py() == (
        b'{"schema":{"type":"struct","fields":[{"type":"int64","optional":false,"field":"id"},'
        b'{"type":"int64","optional":true,"name":"org.apache.kafka.connect.data.Timestamp","version":1,"field":"at"}],'
        b'"optional":false,"name":"Row"},"payload":{"id":1,"at":null}}'
    )


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (Schema(SchemaType.STRING), 'a"b\\c\n\x01é😀', r'"a\"b\\c\n\u0001é\uD83D\uDE00"'),
        (Schema(SchemaType.STRING), "\x0b\x1f\x7f", '"\\u000B\\u001F\x7f"'),
        (Schema(SchemaType.FLOAT64), 1.0, "1.0"),
        (Schema(SchemaType.FLOAT64), float("inf"), '"Infinity"'),
        (Schema(SchemaType.BOOLEAN), True, "true"),
        (Schema(SchemaType.BYTES), b"\x00\xff", '"AP8="'),
        (Schema.decimal(2), "12.34", '"BNI="'),
        (Schema.decimal(2), "-0.01", '"/w=="'),
        (Schema.date(), "1970-01-03", "2"),
        (Schema.array(Schema(SchemaType.INT8)), [1, 2], "[1,2]"),
        (Schema.map(Schema(SchemaType.STRING), Schema(SchemaType.INT32)), [("k", 1)], '{"k":1}'),
        (Schema.map(Schema(SchemaType.INT32), Schema(SchemaType.INT32)), [(3, 1)], "[[3,1]]"),
        (Schema.struct([]), {}, "{}"),
    ],
)
def test_a_value_is_written_as_kafka_connect_does(schema, value, text):
    if isinstance(value, str) and schema.type is not SchemaType.STRING:
        column = pa.array([value]).cast(schema.arrow_type)
    else:
        column = pa.array([value], schema.arrow_type)
    written = converter(schemas_enable="false").from_connect("t", schema, column)
    assert written[0].as_py().decode() == text


def test_slices_are_written_by_their_own_rows():
    schema = Schema.array(Schema.struct({"a": Schema(SchemaType.INT32)}))
    column = pa.array([[{"a": 1}], [], [{"a": 2}, {"a": 3}], [{"a": 4}]], schema.arrow_type).slice(1, 2)
    written = converter(schemas_enable="false").from_connect("t", schema, column)
    assert written.to_pylist() == [b"[]", b'[{"a":2},{"a":3}]']


def test_a_tombstone_stays_one_among_others():
    schema = Schema(SchemaType.INT32, optional=True, default=7)
    written = converter().from_connect("t", schema, pa.array([1, None], pa.int32()))
    assert written.null_count == 1
    (run,) = converter().to_connect("t", written)
    assert run.values.to_pylist() == [1, None]


def test_a_change_of_schema_makes_a_new_run():
    first, other = Schema(SchemaType.INT32), Schema(SchemaType.STRING)
    parts = [converter().from_connect("t", first, pa.array([1, 2], pa.int32())),
             converter().from_connect("t", other, pa.array(["x"])), pa.array([None], pa.binary())]  # fmt: skip
    runs = converter().to_connect("t", pa.concat_arrays(parts))
    assert [(run.schema, run.values.to_pylist()) for run in runs] == [(first, [1, 2]), (other, ["x", None])]


def test_without_schemas_texts_pass_through():
    data = pa.array([b'{"a": 1}', None, b"[1,2]"], pa.binary())
    (run,) = converter(schemas_enable="false").to_connect("t", data)
    assert run.schema is None and run.values.to_pylist() == ['{"a": 1}', None, "[1,2]"]
    assert converter(schemas_enable="false").from_connect("t", None, run.values).to_pylist() == data.to_pylist()


@pytest.mark.parametrize("text", [b"{", b'{"a":1}', b'{"schema":{"type":"x"},"payload":1}', b"\xff",
                                  b'{"schema":{"type":"int32"},"payload":"x"}', b'{"schema":{"type":"int8"},"payload":300}'])  # fmt: skip
def test_the_row_at_fault_is_named(text):
    good = b'{"schema":{"type":"int32","optional":false},"payload":1}'
    with pytest.raises(DataError) as caught:
        converter().to_connect("t", pa.array([good, good, text], pa.binary()))
    assert caught.value.rows == (2,)
    assert "a value of t" in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["int8", "struct", "map", "array"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["schema", "payload", "type", "fields", "field", "name", "optional", "default", "items", "keys",
                         "values", "version", "parameters"]), inner, max_size=5), max_leaves=12,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_bytes_are_read_or_refused(data):
    try:
        converter().to_connect("t", pa.array([data], pa.binary()))
    except DataError:
        pass


@pytest.mark.parametrize(
    ("message", "begin", "end"),
    [
        (b'{"a": oops}', "a value of t is broken JSON: ", "line 1 column 7 (char 6)"),
        (b' [{"a": 1}', "a value of t is broken JSON: ", "(char 10)"),
        (
            b"[INFO] started",
            "a value of t is not JSON: ",
            "set value.converter=org.apache.kafka.connect.storage.StringConverter",
        ),
        (
            b"oops",
            "a value of t is not JSON: ",
            "it looks like text: set value.converter=org.apache.kafka.connect.storage.StringConverter",
        ),
    ],
)
@pytest.mark.parametrize("schemas_enable", ["true", "false"])
def test_broken_json_is_told_from_text(message, begin, end, schemas_enable):
    with pytest.raises(DataError) as raised:
        converter(schemas_enable=schemas_enable).to_connect("t", pa.array([message], pa.binary()))
    assert str(raised.value).startswith(begin) and str(raised.value).endswith(end)
