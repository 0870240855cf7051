"""jcustenborder's and cjmatta's transformations give the results that their sources define; CaseFormat's are those in
Guava's documentation.
"""

from __future__ import annotations

import time
import uuid

import pyarrow as pa
import pytest

from connect.api import DataError, PluginType, Record, RecordBatch, Schema, SchemaType
from connect.plugins.registry import load_plugins
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError

PLUGINS = load_plugins(entry_points=False)
COMMON = "com.github.jcustenborder.kafka.connect.transform.common"
UUIDS = "com.github.cjmatta.kafka.connect.smt"
ADDRESS = Schema.struct(
    {"city": Schema(SchemaType.STRING), "zip": Schema(SchemaType.INT32, optional=True)}, optional=True
)
PERSON = Schema.struct({"id": Schema(SchemaType.INT64), "address": ADDRESS}, name="Person", optional=True)
ANN = {"id": 1, "address": {"city": "Bern", "zip": 3000}}


def make(name, **options):
    loaded = PLUGINS.find(name, PluginType.TRANSFORMATION).load()
    return loaded(parse(loaded.config_class, {key.replace("__", "."): value for key, value in options.items()}))


def batch(*values, schema=PERSON, topic="people"):
    return RecordBatch.from_records([Record(topic, value, schema) for value in values])


def plain(*texts):
    return RecordBatch("people", pa.array(texts, pa.string()), None)


@pytest.mark.parametrize(
    ("before", "after", "topic", "expected"),
    [
        ("UPPER_UNDERSCORE", "LOWER_CAMEL", "TOPIC_NAME", "topicName"),
        ("UPPER_UNDERSCORE", "LOWER_UNDERSCORE", "TOPIC_NAME", "topic_name"),
        ("UPPER_UNDERSCORE", "UPPER_CAMEL", "TOPIC_NAME", "TopicName"),
        ("LOWER_CAMEL", "UPPER_UNDERSCORE", "topicName", "TOPIC_NAME"),
        ("LOWER_CAMEL", "LOWER_HYPHEN", "topicNAme", "topic-n-ame"),
        ("UPPER_CAMEL", "LOWER_UNDERSCORE", "TopicName", "topic_name"),
        ("UPPER_CAMEL", "LOWER_CAMEL", "TopicName", "topicName"),
        ("LOWER_HYPHEN", "UPPER_CAMEL", "topic-name", "TopicName"),
        ("LOWER_UNDERSCORE", "LOWER_HYPHEN", "topic__name", "topic--name"),
        ("LOWER_UNDERSCORE", "LOWER_UNDERSCORE", "AsItIs", "AsItIs"),
        ("LOWER_UNDERSCORE", "LOWER_HYPHEN", "As_Itis", "As-Itis"),
        ("LOWER_UNDERSCORE", "UPPER_UNDERSCORE", "straße", "STRAßE"),
    ],
)
def test_the_topic_is_written_otherwise(before, after, topic, expected):
    (made,) = make(f"{COMMON}.ChangeTopicCase", **{"from": before, "to": after}).apply(batch(ANN, topic=topic))
    assert made.topic == expected


NESTED = {"input__outer__field__name": "address", "input__inner__field__name": "city", "output__field__name": "town"}


def test_a_nested_field_is_copied_beside_its_struct():
    (made,) = make(f"{COMMON}.ExtractNestedField$Value", **NESTED).apply(batch(ANN, None, ANN))
    assert made.values.to_pylist() == [{**ANN, "town": "Bern"}, None, {**ANN, "town": "Bern"}]
    schema = made.value_schema
    assert (schema.name, schema.optional, schema.field_names) == ("Person", True, ("id", "address", "town"))
    assert schema.field("town").schema == Schema(SchemaType.STRING)


def test_a_nested_field_that_is_not_there_is_an_error_of_its_record():
    extract = make(f"{COMMON}.ExtractNestedField$Value", **NESTED)
    with pytest.raises(DataError, match="address of people is null and has no city") as caught:
        extract.apply(batch(ANN, {"id": 2, "address": None}))
    assert caught.value.rows == (1,)
    with pytest.raises(DataError, match="has no field 'house'; there are: city, zip"):
        make(f"{COMMON}.ExtractNestedField$Value", **{**NESTED, "input__inner__field__name": "house"}).apply(batch(ANN))
    with pytest.raises(DataError, match="has a field 'id' already"):
        make(f"{COMMON}.ExtractNestedField$Value", **{**NESTED, "output__field__name": "id"}).apply(batch(ANN))
    with pytest.raises(DataError, match="with a schema only"):
        extract.apply(plain('{"address":{"city":"Bern"}}'))


@pytest.mark.parametrize("schema", [Schema(SchemaType.INT64, optional=True), Schema.timestamp(optional=True)])
def test_a_field_becomes_the_timestamp(schema):
    struct = Schema.struct({"at": schema})
    column = pa.array([{"at": 1_700_000_000_123}, {"at": None}], pa.struct([("at", pa.int64())])).cast(
        struct.arrow_type
    )
    rows = RecordBatch("people", column, struct)
    extract = make(f"{COMMON}.ExtractTimestamp$Value", field__name="at")
    (made,) = extract.apply(rows.slice(0, 1))
    assert made.timestamps_ms.to_pylist() == [1_700_000_000_123]
    with pytest.raises(DataError, match="Field 'at' cannot be null") as caught:
        extract.apply(rows)
    assert caught.value.rows == (1,)


def test_the_timestamp_of_data_without_schema_is_a_number():
    extract = make(f"{COMMON}.ExtractTimestamp$Value", field__name="at")
    assert extract.apply(plain('{"at":5}'))[0].timestamps_ms.to_pylist() == [5]
    for text in ('{"at":"5"}', '{"at":5.5}', '{"at":true}', "{}", "[]", '{"at":99999999999999999999}'):
        with pytest.raises(DataError) as caught:
            extract.apply(plain('{"at":5}', text))
        assert caught.value.rows == (1,)
    with pytest.raises(DataError, match=r"is string, and should be a Timestamp or an int64"):
        extract.apply(batch({"at": "5"}, schema=Schema.struct({"at": Schema(SchemaType.STRING)})))


def test_the_time_of_the_transformation_is_the_timestamp_or_fields():
    before = time.time_ns() // 1_000_000
    (made,) = make(f"{COMMON}.TimestampNow").apply(batch(ANN, ANN))
    first, second = made.timestamps_ms.to_pylist()
    assert before <= first == second <= time.time_ns() // 1_000_000
    row = Schema.struct(
        {"seen": Schema.timestamp(optional=True), "id": Schema(SchemaType.STRING), "n": Schema(SchemaType.INT64)},
        optional=True,
    )
    stamp = make(f"{COMMON}.TimestampNowField$Value", fields="id, seen, more")
    (made,) = stamp.apply(batch({"seen": None, "id": "a", "n": 1}, None, schema=row))
    assert made.value_schema == Schema.struct(
        {
            "seen": Schema.timestamp(optional=True),
            "n": Schema(SchemaType.INT64),
            "id": Schema.timestamp(),
            "more": Schema.timestamp(),
        },
        optional=True,
    )
    filled, null = made.values.to_pylist()
    assert null is None and filled["n"] == 1
    assert before <= filled["seen"].timestamp() * 1000 and filled["seen"] == filled["id"] == filled["more"]
    (made,) = stamp.apply(plain('{"n":1}'))
    assert made.values.to_pylist()[0].startswith('{"n":1,"id":1')


def test_each_record_gets_an_id():
    (made,) = make(f"{UUIDS}.InsertUuid$Value").apply(batch(ANN, ANN))
    ids = [uuid.UUID(row["uuid"]).version for row in made.values.to_pylist()]
    assert ids == [4, 4] and len({row["uuid"] for row in made.values.to_pylist()}) == 2
    assert made.value_schema.field("uuid").schema == Schema(SchemaType.STRING)
    (made,) = make(f"{UUIDS}.InsertUuid$Value", uuid__field__name="key").apply(plain("{}", None))
    assert made.values.to_pylist()[1] is None and made.values.to_pylist()[0].startswith('{"key":"')
    with pytest.raises(DataError, match="duplication id"):
        make(f"{UUIDS}.InsertUuid$Value", uuid__field__name="id").apply(batch(ANN))


def test_the_time_may_be_unix_and_lie_ahead():
    schema = Schema.struct({"id": Schema(SchemaType.INT64), "at": Schema(SchemaType.STRING)}, name="P")
    options = {"fields": "at,more", "target__type": "Unix", "add__amount": "2", "add__chronounit": "HOURS"}
    before = time.time_ns() // 1_000_000_000
    (made,) = make(f"{COMMON}.TimestampNowField$Value", **options).apply(batch({"id": 1, "at": "x"}, schema=schema))
    assert made.value_schema is not None and made.value_schema.field_names == ("id", "at", "more")
    assert {str(made.value_schema.field(name).schema.type.value) for name in ("at", "more")} == {"int64"}
    (record,) = made.records()
    assert before <= record.value["at"] - 7200 <= time.time_ns() // 1_000_000_000
    assert record.value["more"] == record.value["at"]


@pytest.mark.parametrize(
    "options", [{"add__chronounit": "FOREVER"}, {"target__type": "unix"}, {"add__amount": "500000"}]
)
def test_a_time_that_cannot_be_made_is_refused(options):
    with pytest.raises(ConfigError):
        make(f"{COMMON}.TimestampNowField$Value", fields="at", **options)
