"""FromJson turns JSON text into a struct according to a JSON Schema; any problem is an error of its record or of the
configuration.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json

import pyarrow as pa
import pytest
import responses
from hypothesis import given
from hypothesis import strategies as st

from connect.api import ConnectError, DataError, PluginType, RecordBatch, Schema, SchemaType
from connect.plugins.registry import load_plugins
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError

PLUGINS = load_plugins(entry_points=False)
PERSON = {
    "$id": "https://example.com/person.schema.json",
    "title": "Person",
    "description": "Who.",
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "description": "The name."},
        "age": {"type": "integer"},
        "height": {"type": "number"},
        "well": {"type": ["boolean", "null"]},
        "born": {"type": "string", "format": "date"},
        "seen": {"type": "string", "format": "date-time"},
        "wakes": {"type": "string", "format": "time"},
        "left": {"type": "string", "format": "custom-timestamp", "dateTimeFormat": "yyyy-MM-dd HH:mm:ss"},
        "owes": {"type": "string", "format": "decimal", "scale": 2},
        "face": {"type": "string", "contentEncoding": "base64"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "home": {"$ref": "#/definitions/place"},
        "work": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/place"}]},
        "mixed": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "$schema": {"type": "string"},
    },
    "definitions": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
ANN = {
    "name": "Ann",
    "age": 30,
    "height": 2,
    "well": True,
    "born": "1994-05-06",
    "seen": "2024-01-02T03:04:05.678901Z",
    "wakes": "06:30:00",
    "left": "2024-01-02 03:04:05",
    "owes": "12.5",
    "face": "AAE=",
    "tags": ["a", "b"],
    "home": {"city": "Bern", "more": 1},
    "other": "left out",
}


def make(document=None, **options):
    loaded = PLUGINS.find(
        "com.github.jcustenborder.kafka.connect.json.FromJson$Value", PluginType.TRANSFORMATION
    ).load()
    properties = {name.replace("__", "."): value for name, value in options.items()}
    if document is not None:
        properties |= {"json.schema.location": "Inline", "json.schema.inline": json.dumps(document)}
    return loaded(parse(loaded.config_class, properties))


def batch(*texts, schema=None):
    schema = schema or Schema(SchemaType.STRING, optional=True)
    return RecordBatch("people", pa.array(texts, schema.arrow_type), schema)


EXCLUDED = {"json__exclude__locations": "#/properties/mixed"}


def test_text_becomes_a_struct():
    (made,) = make(PERSON, **EXCLUDED).apply(batch(json.dumps(ANN), None, '{"name":"Bo","home":null}'))
    ann, null, bo = made.values.to_pylist()
    assert null is None and bo == dict.fromkeys(ann) | {"name": "Bo"}
    assert ann == {
        "name": "Ann",
        "age": 30,
        "height": 2.0,
        "well": True,
        "born": dt.date(1994, 5, 6),
        "seen": dt.datetime(2024, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC),
        "wakes": dt.time(6, 30),
        "left": dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "owes": decimal.Decimal("12.50"),
        "face": b"\x00\x01",
        "tags": ["a", "b"],
        "home": {"city": "Bern"},
        "work": None,
    }


def test_the_schema_is_that_of_the_document():
    (made,) = make(PERSON, **EXCLUDED).apply(batch('{"name":"Ann"}'))
    schema = made.value_schema
    assert (schema.name, schema.doc, schema.optional) == ("Person", "Who.", False)
    assert list(schema.field_names) == sorted(set(PERSON["properties"]) - {"mixed", "$schema"})
    assert schema.field("name").schema == Schema(SchemaType.STRING, doc="The name.")
    place_name = "https:.example.com.person.schema.json.definitions.place"  # where it is, as the original names it
    struct = Schema.struct({"city": Schema(SchemaType.STRING, optional=True)}, name=place_name, optional=True)
    assert schema.field("home").schema == struct == schema.field("work").schema
    assert schema.field("owes").schema == Schema.decimal(2, optional=True)
    assert schema.field("age").schema == Schema(SchemaType.INT64, optional=True)


def test_bytes_and_json_without_schema_are_read_too():
    raw = batch(b'{"name":"Ann"}', schema=Schema(SchemaType.BYTES, optional=True))
    plain = RecordBatch("people", pa.array(['"{\\"name\\":\\"Ann\\"}"', '{"name":"Ann"}'], pa.string()), None)
    for each in (raw, plain):
        (made,) = make(PERSON, **EXCLUDED).apply(each)
        assert {row["name"] for row in made.values.to_pylist()} == {"Ann"}
    with pytest.raises(DataError, match="reads text or bytes, and the value of people is int32"):
        make(PERSON, **EXCLUDED).apply(batch(5, schema=Schema(SchemaType.INT32)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "Expecting property name"),
        ("[" * 100_000, "recursion"),
        ("5", "5 should be an object"),
        ("{}", "name is required and null or missing"),
        ('{"name":null}', "name is required and null or missing"),
        ('{"name":5}', "name: 5 should be text"),
        ('{"name":"a","age":1.5}', "age: 1.5 should be an integer"),
        ('{"name":"a","age":1e400}', "age"),
        ('{"name":"a","age":9223372036854775808}', "beyond 64 bits"),
        ('{"name":"a","height":"2"}', 'height: "2" should be a number'),
        ('{"name":"a","well":1}', "well: 1 should be true or false"),
        ('{"name":"a","born":"yesterday"}', "born: "),
        ('{"name":"a","seen":"2024-01-02T03:04:05"}', "should say its zone"),
        ('{"name":"a","wakes":"06:30Z"}', "without a zone"),
        ('{"name":"a","left":"2024"}', "is not of the form yyyy-MM-dd HH:mm:ss"),
        ('{"name":"a","owes":"1.234"}', "more than 2 digits after the point"),
        ('{"name":"a","owes":"NaN"}', "is no decimal number"),
        ('{"name":"a","face":"*"}', "is no base64"),
        ('{"name":"a","tags":[null]}', "an array holds null"),
        ('{"name":"a","home":{"city":5}}', "home: city: 5 should be text"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_of_its_record(text, problem):
    with pytest.raises(DataError, match=problem) as caught:
        make(PERSON, **EXCLUDED).apply(batch('{"name":"Ann"}', text))
    assert caught.value.rows == (1,)


def test_values_are_validated_where_that_is_asked():
    document = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 5}}, "additionalProperties": False}
    assert make(document).apply(batch('{"n":1,"m":2}'))[0].values.to_pylist() == [{"n": 1}]
    with pytest.raises(DataError, match=r"Found 2 violations") as caught:
        make(document, json__schema__validation__enabled="true").apply(batch('{"n":5}', '{"n":1,"m":2}'))
    assert caught.value.rows == (1,)


def test_a_schema_that_has_no_type_in_connect_is_refused_with_the_configuration():
    with pytest.raises(ConfigError, match="#/properties/mixed has 2 alternatives that are not null"):
        make(PERSON)
    for document, problem in (
        ({"type": "null"}, "type 'null', which no field can have"),
        ({}, "# has no type"),
        ({"type": ["string", "integer"]}, "# has 2 types"),
        ({"$ref": "#"}, "nested too deep, or refers to itself"),
        ({"$ref": "https://example.com/x"}, "only references within the document"),
        ({"$ref": "#/nothing"}, "which is not there"),
        ({"type": "array"}, "#/items is None and should be an object"),
        ({"type": "string", "format": "decimal"}, "scale None, which should be a number"),
        ({"type": "string", "format": "custom-timestamp", "dateTimeFormat": "b"}, "dateTimeFormat"),
        ([], "is list and should be an object"),
    ):
        with pytest.raises(ConfigError, match=problem):
            make(document)
    with pytest.raises(ConfigError, match="the JSON Schema is no JSON"):
        make(json__schema__location="Inline", json__schema__inline="{")
    with pytest.raises(ConfigError, match="no URL that begins with"):
        make(json__schema__url="ftp://127.0.0.1/x")


def test_the_schema_may_be_behind_a_url(tmp_path):
    file = tmp_path / "a person.json"
    file.write_text(json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}}))
    with responses.RequestsMock() as web:
        web.get("https://127.0.0.1/person.json", body=file.read_text())
        for url in (file.as_uri(), "https://127.0.0.1/person.json"):
            assert make(json__schema__url=url).apply(batch('{"n":1}'))[0].values.to_pylist() == [{"n": 1}]
    with pytest.raises(ConnectError, match=r"doesNotExist cannot be read: No such file"):
        make().apply(batch('{"n":1}'))
    file.write_text(" " * (1 << 20) + "{}")
    with pytest.raises(ConnectError, match="is larger than 1048576 bytes"):
        make(json__schema__url=file.as_uri()).apply(batch("{}"))
    with responses.RequestsMock() as web:
        web.get("https://127.0.0.1/person.json", status=500)
        with pytest.raises(ConnectError, match="cannot be read: 500"):
            make(json__schema__url="https://127.0.0.1/person.json").apply(batch("{}"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*ANN, "city"]), inner, max_size=4),
    max_leaves=15,
)
KEYWORDS = [
    "type",
    "properties",
    "items",
    "required",
    "anyOf",
    "$ref",
    "format",
    "title",
    "description",
    "scale",
    "contentEncoding",
]
KINDS = st.sampled_from(
    ["object", "array", "integer", "number", "boolean", "string", "null", "date", "time", "decimal", "#", "#/items"]
)
DOCUMENTS = st.recursive(
    KINDS | st.integers(-1, 3) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4),
    max_leaves=15,
)


@given(
    JSON | st.dictionaries(st.sampled_from(list(ANN)), JSON | st.sampled_from([*map(str, ANN.values())]), max_size=5)
)
def test_any_value_is_read_or_an_error_of_its_record(value):
    try:
        (made,) = make(PERSON, **EXCLUDED).apply(batch(json.dumps(value), "null"))
    except DataError as error:
        assert error.rows in ((0,), (0, 1))
    else:
        assert len(made) == 2


@given(st.dictionaries(st.sampled_from(KEYWORDS), DOCUMENTS, max_size=5), JSON)
def test_any_document_is_a_schema_or_refused(document, value):
    try:
        transformation = make(document)
    except ConfigError:
        return
    try:
        transformation.apply(batch(json.dumps(value)))
    except DataError as error:
        assert error.rows == (0,)
