from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import json

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from connect.api import DataError, Field, Schema, SchemaType
from connect.converters.avro_columns import from_avro_column, to_avro_column
from connect.converters.avro_reading import schema_from_avro
from connect.converters.avro_schema import schema_to_avro
from registry.client import AvroSchema
from registry.serde.columns import decode_columns, encode_columns
from tests.support.schemas import schemas, values_of


def avro_of(schema):
    """Its Avro form, unless two of its structs have the same name by chance."""
    try:
        return schema_to_avro(schema)
    except DataError as error:
        assume("two different structs" not in str(error))
        raise


@settings(max_examples=200, deadline=None)
@given(schemas)
def test_a_schema_survives_avro(schema):
    assert schema_from_avro(json.loads(json.dumps(avro_of(schema)))) == schema


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_values_survive_avro(data):
    schema = data.draw(schemas)
    values = data.draw(st.lists(values_of(schema), min_size=1, max_size=5))
    column = pa.array(values, schema.arrow_type)
    form = AvroSchema.parse(json.dumps(avro_of(schema)))
    written = encode_columns(form, to_avro_column(schema, column), 7)
    for run in decode_columns(written, lambda _: form):
        if run.schema is not None:
            assert from_avro_column(schema, run.array).equals(column)


def test_a_record_is_written_as_confluent_does():
    schema = Schema.struct(
        {
            "id": Schema(SchemaType.INT64),
            "small": Schema(SchemaType.INT8, optional=True),
            "price": Schema.decimal(2),
            "on": Schema.date(default=dt.date(1970, 1, 2)),
        },
        name="shop.Order",
        version=3,
    )
    assert schema_to_avro(schema) == {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "small", "type": ["null", {"type": "int", "connect.type": "int8"}], "default": None},
            {
                "name": "price",
                "type": {
                    "type": "bytes",
                    "scale": 2,
                    "precision": 64,
                    "connect.version": 1,
                    "connect.parameters": {"scale": "2"},
                    "connect.name": "org.apache.kafka.connect.data.Decimal",
                    "logicalType": "decimal",
                },
            },
            {
                "name": "on",
                "type": {
                    "type": "int",
                    "connect.version": 1,
                    "connect.default": 1,
                    "connect.name": "org.apache.kafka.connect.data.Date",
                    "logicalType": "date",
                },
                "default": 1,
            },
        ],
        "connect.version": 3,
        "connect.name": "shop.Order",
    }


def test_a_nameless_struct_gets_confluent_s_name():
    inner = Schema.struct({"a": Schema(SchemaType.INT32)})
    form = schema_to_avro(Schema.struct({"inner": inner}))
    assert (form["namespace"], form["name"]) == ("io.confluent.connect.avro", "ConnectDefault")
    assert form["fields"][0]["type"]["name"] == "ConnectDefault2"
    assert schema_from_avro(form).name is None


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        (Schema(SchemaType.STRING), "x"),
        (Schema(SchemaType.BYTES), b"\x00\xff"),
        (Schema.decimal(2), decimal.Decimal("-1.50")),
        (Schema.timestamp(), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        (Schema.time(), dt.time(1, 2, 3)),
        (Schema.array(Schema(SchemaType.INT32)), [1, 2]),
        (Schema(SchemaType.FLOAT64, optional=True), 2.0),
    ],
)
def test_defaults_survive(schema, default):
    whole = Schema.struct([Field("f", dataclasses.replace(schema, default=default))], name="R")
    assert schema_from_avro(json.loads(json.dumps(schema_to_avro(whole)))) == whole


def test_schemas_written_by_others_are_read():
    form = {
        "type": "record",
        "name": "E",
        "namespace": "n",
        "doc": "an event",
        "fields": [
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
            {"name": "either", "type": ["null", "string", "long"], "default": None},
            {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "raw", "type": {"type": "fixed", "name": "Raw", "size": 4}},
            {"name": "again", "type": ["null", "Kind"]},
        ],
    }
    schema = schema_from_avro(form)
    assert schema.name == "n.E" and schema.parameters["io.confluent.connect.avro.record.doc"] == "an event"
    assert schema.field("kind").schema.parameters["io.confluent.connect.avro.Enum"] == "n.Kind"
    assert schema.field("either").schema.field_names == ("string", "int64") or schema.field("either").schema.fields
    assert schema.field("micros").schema.type is SchemaType.INT64
    assert schema.field("again").schema.optional
    avro = AvroSchema.parse(json.dumps(form))
    rows = [{"kind": "A", "either": {"string": "x", "long": None}, "micros": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
             "raw": b"abcd", "again": None}]  # fmt: skip
    from registry.serde.arrow_types import arrow_type

    column = pa.array(rows, arrow_type(avro))
    made = from_avro_column(schema, decode_columns(encode_columns(avro, column, 1), lambda _: avro)[0].array)
    assert made.type == schema.arrow_type
    assert made[0].as_py()["micros"] == 1_577_836_800_000_000
    assert made[0].as_py()["raw"] == b"abcd"


def test_recursion_is_refused_by_name():
    form = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
    with pytest.raises(DataError, match="Node contains itself"):
        schema_from_avro(form)


def test_names_that_avro_forbids_are_refused():
    with pytest.raises(DataError, match="field name 'a-b'"):
        schema_to_avro(Schema.struct({"a-b": Schema(SchemaType.INT32)}))


def test_two_structs_of_one_name_must_be_equal():
    struct = Schema.struct({"a": Schema(SchemaType.INT32)}, name="S")
    other = Schema.struct({"b": Schema(SchemaType.INT32)}, name="S")
    assert schema_to_avro(Schema.struct({"x": struct, "y": struct.as_optional()}))["fields"][1]["type"] == ["null", "S"]
    with pytest.raises(DataError, match="called 'S'"):
        schema_to_avro(Schema.struct({"x": struct, "y": other}))


def test_maps_without_text_keys_travel_as_entries():
    schema = Schema.struct({"m": Schema.map(Schema(SchemaType.INT32), Schema(SchemaType.STRING))}, name="R")
    form = AvroSchema.parse(json.dumps(schema_to_avro(schema)))
    column = pa.array([{"m": [(1, "a"), (2, "b")]}, {"m": []}], schema.arrow_type)
    written = encode_columns(form, to_avro_column(schema, column), 1)
    (run,) = decode_columns(written, lambda _: form)
    assert schema_from_avro(json.loads(form.resolved)) == schema
    assert from_avro_column(schema, run.array).equals(column)
