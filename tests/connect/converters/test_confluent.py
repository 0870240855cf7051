"""The converters can read the output of Confluent's Python serializers, and these can read the converters' output."""

from __future__ import annotations

import datetime as dt
import decimal
import json

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from connect.api import ConverterContext, DataError, Schema, SchemaType
from connect.converters.avro import AvroConverter, AvroConverterConfig
from connect.converters.protobuf import ProtobufConverter, ProtobufConverterConfig
from connect.converters.registry_json import JsonSchemaConverter, JsonSchemaConverterConfig
from registry.client import RegistryClient
from tests.support.registry import RegistryThread
from tidegate.kit.config import parse

CONTEXT = SerializationContext("orders", MessageField.VALUE)
PLACE = Schema.struct({"city": Schema(SchemaType.STRING, optional=True)}, name="shop.Place")
ORDER = Schema.struct(
    {
        "id": Schema(SchemaType.INT64),
        "name": Schema(SchemaType.STRING, optional=True),
        "small": Schema(SchemaType.INT8),
        "price": Schema.decimal(2),
        "day": Schema.date(),
        "at": Schema.timestamp(),
        "tags": Schema.array(Schema(SchemaType.STRING)),
        "counts": Schema.map(Schema(SchemaType.STRING), Schema(SchemaType.INT32)),
        "place": PLACE.as_optional(),
    },
    name="shop.Order",
)
ROW = {
    "id": 7,
    "name": "é",
    "small": -3,
    "price": decimal.Decimal("-12.50"),
    "day": dt.date(2024, 2, 29),
    "at": dt.datetime(2024, 2, 29, 10, 11, 12, 123000, tzinfo=dt.UTC),
    "tags": ["a", "b"],
    "counts": {"x": 1},
    "place": {"city": "Bern"},
}
KINDS = {
    "avro": (AvroConverter, AvroConverterConfig),
    "json": (JsonSchemaConverter, JsonSchemaConverterConfig),
    "protobuf": (ProtobufConverter, ProtobufConverterConfig),
}


@pytest.fixture(scope="module")
def registry():
    with RegistryThread() as running:
        yield running.url


@pytest.fixture
def converter(registry):
    made = []

    def make(kind, **settings):
        loaded, keys = KINDS[kind]
        properties = {name.replace("__", "."): value for name, value in settings.items()}
        made.append(
            loaded(parse(keys, {"schema.registry.url": registry, **properties}), ConverterContext(is_key=False))
        )
        return made[-1]

    yield make
    for converter in made:
        converter.close()


def column(*rows, schema=ORDER):
    pairs = [None if row is None else {**row, "counts": list(row["counts"].items())} for row in rows]
    return pa.array(pairs, schema.arrow_type)


def read(made, data):
    (run,) = made.to_connect("orders", data)
    return run.schema, run.values.to_pylist(maps_as_pydicts="strict")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_survive(converter, kind):
    made = converter(kind)
    schema, values = read(
        made, made.from_connect(f"rows-{kind}", ORDER, column(ROW, None, {**ROW, "name": None, "place": None}))
    )
    # Protobuf has no null for text, and its packages no part in Connect's names.
    other = {**ROW, "name": "" if kind == "protobuf" else None, "place": None}
    assert values == [ROW, None, other]
    assert [field.name for field in schema.fields] == list(ORDER.field_names)
    assert schema == ORDER or kind == "protobuf"


@pytest.mark.parametrize("kind", KINDS)
def test_an_incompatible_schema_is_explained_once_with_what_would_help(converter, kind):
    made, topic = converter(kind), f"explained-{kind}"
    kinds = {"n": SchemaType.INT32}, {"n": SchemaType.STRING}
    first, second = (Schema.struct({name: Schema(t) for name, t in each.items()}, name="shop.N") for each in kinds)
    made.from_connect(topic, first, pa.array([{"n": 1}], first.arrow_type))
    with pytest.raises(DataError) as raised:
        made.from_connect(topic, second, pa.array([{"n": "x"}], second.arrow_type))
    text = str(raised.value)
    begin = (
        f"schema registry refused a value of {topic}: Schema being registered is incompatible with an earlier schema "
    )
    assert text.startswith(begin + f'for subject "{topic}-value", whose level is BACKWARD: ')
    assert "(version 1). To mend it: " in text and len(text) < 900
    assert "oldSchema" not in text, "the schema before is not repeated"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            b'{"a": 1}',
            "it looks like JSON: set value.converter=org.apache.kafka.connect.json.JsonConverter and "
            "value.converter.schemas.enable=false",
        ),
        (b'{"schema": null, "payload": 1}', "value.converter.schemas.enable=true"),
        ("grüezi".encode(), "it looks like text: set value.converter=org.apache.kafka.connect.storage.StringConverter"),
        (b"[INFO] started", "it looks like text"),
        (b'{"a": oops}', "line 1 column 7 (char 6)): if the others are JSON"),
        (b"\xff\xfe\x01", ""),
    ],
)
def test_a_message_without_framing_suggests_the_converter_that_wrote_it(converter, message, words):
    for kind in KINDS:
        with pytest.raises(DataError, match="Confluent'?s? framing") as raised:
            converter(kind).to_connect("orders", pa.array([None, message], pa.binary()))
        assert words in str(raised.value) and bool(words) == ("it looks like" in str(raised.value))
        assert tuple(raised.value.rows) == (1,)


def test_a_framed_message_for_the_json_converter_suggests_the_registrys(converter):
    from connect.converters.json import JsonConfig, JsonConverter

    framed = converter("avro").from_connect("framed", ORDER, column(ROW))
    made = JsonConverter(parse(JsonConfig, {}), ConverterContext(is_key=True))
    with pytest.raises(
        DataError, match="looks like Confluent's framing with schema id [0-9]+: set key.converter=io.conf"
    ):
        made.to_connect("framed", framed)


def test_protobuf_keeps_nulls_if_asked(converter):
    for settings in ({"optional__for__nullables": "true"}, {"wrapper__for__nullables": "true"}):
        made = converter("protobuf", **settings, value__subject__name__strategy="TopicRecordNameStrategy")
        name = next(iter(settings))
        schema, values = read(made, made.from_connect(name.replace("__", "-"), ORDER, column({**ROW, "name": None})))
        assert values == [{**ROW, "name": None}]
        assert schema.field("name").schema.optional and not schema.field("id").schema.optional


def test_confluents_avro_deserializer_reads_ours_and_the_reverse(registry, converter):
    made = converter("avro")
    with SchemaRegistryClient({"url": registry}) as client:
        data = made.from_connect("orders", ORDER, column(ROW))[0].as_py()
        assert AvroDeserializer(client)(data, CONTEXT) == ROW
        text = json.dumps({"type": "record", "name": "E", "fields": [{"name": "a", "type": ["null", "long"]}]})
        written = AvroSerializer(client, text)({"a": 5}, SerializationContext("avro-foreign", MessageField.VALUE))
        assert read(made, pa.array([written], pa.binary()))[1] == [{"a": 5}]


def test_confluents_json_deserializer_reads_ours_and_the_reverse(registry, converter):
    made = converter("json", decimal__format="NUMERIC", json__fail__invalid__schema="true")
    with SchemaRegistryClient({"url": registry}) as client:
        data = made.from_connect("json-orders", ORDER, column(ROW))[0].as_py()
        decoded = JSONDeserializer(None, schema_registry_client=client)(data, CONTEXT)
        assert decoded["name"] == "é" and decoded["price"] == -12.5 and decoded["place"] == {"city": "Bern"}
        form = {
            "title": "E",
            "type": "object",
            "properties": {
                "n": {"type": "integer"},
                "o": {"oneOf": [{"type": "null"}, {"type": "string"}]},
                "u": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                "deep": {"$ref": "#/definitions/deep"},
            },
            "definitions": {"deep": {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "number"}}}}},
            "required": ["n"],
        }  # fmt: skip
        serialize = JSONSerializer(json.dumps(form), client)
        context = SerializationContext("json-foreign", MessageField.VALUE)
        rows = [{"n": 1, "o": None, "u": 5, "deep": {"x": [1.5]}}, {"n": 2, "u": "t"}]
        schema, values = read(made, pa.array([serialize(row, context) for row in rows], pa.binary()))
        union = "io.confluent.connect.json.OneOf.field."
        assert values == [
            {"n": 1, "o": None, "u": {f"{union}0": None, f"{union}1": 5}, "deep": {"x": [1.5]}},
            {"n": 2, "o": None, "u": {f"{union}0": "t", f"{union}1": None}, "deep": None},
        ]
        assert not schema.field("n").schema.optional and schema.name == "E"


def test_a_value_that_violates_its_json_schema_is_refused(registry, converter):
    made = converter("json", json__fail__invalid__schema="true", auto__register__schemas="false", use__latest__version="true",
                     latest__compatibility__strict="false")  # fmt: skip
    form = {"type": "object", "properties": {"id": {"type": "integer", "minimum": 10}}}
    RegistryClient(registry).register("json-strict-value", json.dumps(form), schema_type="JSON")
    row = Schema.struct({"id": Schema(SchemaType.INT64)})
    with pytest.raises(DataError, match="id: 7 is less than the minimum of 10") as caught:
        made.from_connect("json-strict", row, pa.array([{"id": 12}, {"id": 7}], row.arrow_type))
    assert caught.value.rows == (1,)


def test_confluents_protobuf_deserializer_reads_ours_and_the_reverse(registry, converter):
    from google.protobuf.timestamp_pb2 import Timestamp

    made = converter("protobuf")
    plain = Schema.struct({"seconds": Schema(SchemaType.INT64), "nanos": Schema(SchemaType.INT32)}, name="shop.Moment")
    data = made.from_connect("proto-orders", plain, pa.array([{"seconds": 5, "nanos": 7}], plain.arrow_type))[0].as_py()
    decoded = ProtobufDeserializer(Timestamp, {"use.deprecated.format": False})(data, CONTEXT)
    assert (decoded.seconds, decoded.nanos) == (5, 7)
    with SchemaRegistryClient({"url": registry}) as client:
        from google.protobuf.api_pb2 import Method, Mixin

        for message, expected in (
            (Mixin(name="a", root="b"), {"name": "a", "root": "b"}),  # the third message of its file
            (Method(name="m", request_streaming=True), {"name": "m", "request_streaming": True}),
        ):
            serialize = ProtobufSerializer(type(message), client, {"use.deprecated.format": False})
            context = SerializationContext(f"proto-{type(message).__name__}", MessageField.VALUE)
            (value,) = read(made, pa.array([serialize(message, context)], pa.binary()))[1]
            assert expected.items() <= value.items()


def test_a_given_id_and_the_latest_version_are_written_with(registry, converter):
    older = Schema.struct({"a": Schema(SchemaType.INT32)}, name="V")
    newer = Schema.struct({"a": Schema(SchemaType.INT32), "b": Schema(SchemaType.STRING, optional=True)}, name="V")
    registering = converter("avro")
    first = registering.from_connect("versions", older, pa.array([{"a": 1}], older.arrow_type))[0].as_py()
    second = registering.from_connect("versions", newer, pa.array([{"a": 1, "b": "x"}], newer.arrow_type))[0].as_py()
    by_latest = converter("avro", auto__register__schemas="false", use__latest__version="true")
    assert (
        by_latest.from_connect("versions", older, pa.array([{"a": 1}], older.arrow_type))[0].as_py()[:5] == second[:5]
    )
    by_id = converter("avro", auto__register__schemas="false", use__schema__id=str(int.from_bytes(first[1:5], "big")))
    assert by_id.from_connect("versions", older, pa.array([{"a": 1}], older.arrow_type))[0].as_py() == first
    other = Schema.struct({"z": Schema(SchemaType.INT32)}, name="V")
    with pytest.raises(DataError, match="cannot read what the record's own would"):
        by_latest.from_connect("versions", other, pa.array([{"z": 1}], other.arrow_type))


def test_names_that_avro_forbids_are_scrubbed_if_asked(converter):
    odd = Schema.struct({"a-b": Schema(SchemaType.INT32), "1": Schema(SchemaType.STRING)}, name="my-ns.R%")
    made = converter("avro", scrub__invalid__names="true")
    schema, values = read(made, made.from_connect("odd", odd, pa.array([{"a-b": 1, "1": "x"}], odd.arrow_type)))
    assert values == [{"a_b": 1, "x1": "x"}]
    with pytest.raises(DataError, match="my-ns"):
        converter("avro").from_connect("odd", odd, pa.array([{"a-b": 1, "1": "x"}], odd.arrow_type))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", [b"", b"\x01\0\0\0\x01x", b"\0\0\0", b"\0\0\0\0\x01\xff\xff\xff\xff\xff\xff"])
def test_bytes_in_another_framing_are_the_rows_fault(converter, kind, data):
    made = converter(kind)
    good = made.from_connect(f"framing-{kind}", PLACE, pa.array([{"city": "Bern"}], PLACE.arrow_type))[0].as_py()
    wrong = data if len(data) < 8 else good[:5] + data[5:]
    with pytest.raises(DataError):
        made.to_connect("framing", pa.array([good, wrong], pa.binary()))
