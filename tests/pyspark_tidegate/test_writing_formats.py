"""Protobuf, JSON Schema and plain JSON that Spark writes; Confluent's deserializers read them, and we do."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from registry.formats.protobuf.schema import ProtobufSchema
from tests.pyspark_tidegate.test_formats import ORDER
from tests.pyspark_tidegate.test_reading import Topic, reader
from tests.pyspark_tidegate.test_writing import RAW, messages, write
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's gateway leaves connections to its JVM to the garbage collector.
pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

PROTOBUF, JSON = {"value.format": "protobuf"}, {"value.format": "json-schema"}
COMMON = "id BIGINT, n INT, price DOUBLE, name STRING, data BINARY, paid BOOLEAN, lines ARRAY<STRUCT<text: STRING>>, sizes MAP<STRING, INT>"
ROW = (2**40, 1, 0.5, "é", b"\0", True, [("x",)], {"a": 1})


@pytest.fixture
def topic(broker: BrokerThread, registry: RegistryThread) -> Topic:
    return Topic(broker, registry)


def client(topic: Topic) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": topic.registry.url})


def newest(topic: Topic, side: str = "value") -> Schema:
    return client(topic).get_latest_version(f"{topic.name}-{side}").schema


def test_rows_are_protobuf_messages_of_a_schema_that_is_derived(spark: SparkSession, topic: Topic) -> None:
    at = dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC)
    frame = spark.createDataFrame([(*ROW, at, at.date()), (None,) * 10], f"{COMMON}, at TIMESTAMP, day DATE")
    write(frame, topic, **PROTOBUF, **{"key.fields": "id", "key.format": "protobuf"})
    assert newest(topic).schema_type == newest(topic, "key").schema_type == "PROTOBUF"
    message = ProtobufSchema.parse(newest(topic).schema_str).message_class()
    read = ProtobufDeserializer(message, {"use.deprecated.format": False}, client(topic))
    context = SerializationContext(topic.name, MessageField.VALUE)
    (theirs,) = [m for m in (read(m.value(), context) for m in messages(topic)) if m.HasField("id")]
    assert (theirs.id, theirs.name, theirs.lines[0].text, theirs.sizes["a"]) == (2**40, "é", "x", 1)
    assert theirs.at.ToMicroseconds() == round(at.timestamp() * 1_000_000)

    back = reader(spark, topic, **PROTOBUF, **{"key.format": "protobuf"}).load()
    assert back.select("value.*").dtypes == frame.dtypes
    rows = {row["key"].id: row["value"] for row in back.collect()}
    assert rows[2**40] == frame.collect()[0]
    # A list and a map that are null are empty to Protobuf; a scalar stays null.
    assert rows[None].asDict() == dict.fromkeys(frame.columns) | {"lines": [], "sizes": {}}


def test_rows_are_json_of_a_schema_that_is_derived(spark: SparkSession, topic: Topic) -> None:
    frame = spark.createDataFrame([ROW, (None,) * 8], COMMON)
    write(frame, topic, **JSON, **{"key.fields": "n", "key.format": "json"})
    assert newest(topic).schema_type == "JSON"
    read = JSONDeserializer(newest(topic).schema_str)  # validates
    values = [read(m.value(), SerializationContext(topic.name, MessageField.VALUE)) for m in messages(topic)]
    expected = {
        "id": 2**40, "n": 1, "price": 0.5, "name": "é", "data": "AA==", "paid": True, "lines": [{"text": "x"}], "sizes": {"a": 1},
    }  # fmt: skip
    assert sorted(values, key=len) == [{}, expected]
    assert sorted(m.key() for m in messages(topic)) == [b'{"n":1}', b"{}"]
    back = reader(spark, topic, **JSON).load().select("value.*")
    assert back.dtypes == frame.dtypes
    assert sorted(back.collect(), key=str) == sorted(frame.collect(), key=str)


@pytest.mark.long
def test_a_schema_that_grows_is_registered_and_one_that_breaks_readers_is_not(
    spark: SparkSession, topic: Topic
) -> None:
    for options in (PROTOBUF, JSON):
        other = Topic(topic.broker, topic.registry)
        frame = spark.sql("select 1L as id, 'a' as name")
        write(frame, other, **options)
        write(frame.selectExpr("*", "true as paid"), other, **options)
        assert [
            row["value"].paid for row in reader(spark, other, **options).load().orderBy("value.paid").collect()
        ] == [
            None,
            True,
        ]
        with pytest.raises(
            Exception, match=rf"(?s)not compatible with the subject {other.name}-value.*use.latest.version"
        ):
            write(spark.sql("select 'x' as id, 'a' as name, true as paid"), other, **options)
        write(frame.select("name"), other, **options, **{"use.latest.version": "true"})
        with pytest.raises(Exception, match=rf"of the subject {other.name}-value has no field extra"):
            write(frame.selectExpr("1 as extra"), other, **options, **{"use.latest.version": "true"})
        with pytest.raises(Exception, match=r"is of type (PROTOBUF|JSON): value.format must be"):
            write(frame, other, **{"use.latest.version": "true"})


def test_a_message_of_a_registered_schema_with_references_is_written(spark: SparkSession, topic: Topic) -> None:
    registry = client(topic)
    registry.register_schema(
        f"{topic.name}-line", Schema('syntax = "proto3"; message Line { int32 n = 1; }', "PROTOBUF")
    )
    text = 'syntax = "proto3"; import "line.proto"; message Other {} message A { Line line = 1; repeated Kind kinds = 2; } enum Kind { X = 0; Y = 1; }'
    registry.register_schema(
        f"{topic.name}-value", Schema(text, "PROTOBUF", [SchemaReference("line.proto", f"{topic.name}-line", 1)])
    )
    frame = spark.sql("select struct(5 as n) as line, array('Y', 'X') as kinds")
    chosen = {"value.message": "A", **PROTOBUF}
    write(frame, topic, **chosen, **{"use.latest.version": "true"})
    back = reader(spark, topic, **chosen).load().select("value.*")
    assert back.collect() == frame.collect()
    with pytest.raises(Exception, match=r"field kinds: 'Z' is no value of Kind \(X, Y\)"):
        write(spark.sql("select array('Z') as kinds"), topic, **chosen, **{"use.latest.version": "true"})


def test_a_schema_of_the_job_is_written_with_and_its_rules_hold(spark: SparkSession, topic: Topic) -> None:
    write(spark.sql("select 7L as id, '8' as card"), topic, **PROTOBUF, **{"value.schema": ORDER})
    assert newest(topic).schema_str.startswith('syntax = "proto3";\npackage shop;')
    schema = {"type": "object", "properties": {"id": {"type": "integer", "maximum": 5}}, "required": ["id"]}
    other = Topic(topic.broker, topic.registry)
    options = JSON | {"value.schema": json.dumps(schema)}
    write(spark.sql("select 5 as id"), other, **options)
    with pytest.raises(Exception, match="field id: 6 is greater than the maximum of 5"):
        write(spark.sql("select 6 as id"), other, **options)
    plain = {**RAW, "value.format": "json", "value.schema": json.dumps(schema)}
    with pytest.raises(Exception, match="field id: 6 is greater than the maximum of 5"):
        write(spark.sql("select 6 as id"), other, **plain)


def test_plain_json_and_text_need_no_registry(spark: SparkSession, topic: Topic) -> None:
    frame = spark.sql("select 1 as id, timestamp'2024-02-29 00:00:00Z' as at, null as gone, array(1, null) as list")
    write(frame, topic, **RAW, **{"value.format": "json", "key.format": "string", "key.fields": "id"})
    (message,) = messages(topic)
    assert (message.key(), json.loads(message.value())) == (
        b"1",
        {"id": 1, "at": "2024-02-29T00:00:00Z", "list": [1, None]},
    )
    given: dict[str, Any] = {
        "value.format": "json", "value.schema": '{"properties": {"id": {"type": "integer"}}}', "schema.registry.url": "",
    }  # fmt: skip
    options = {name: value for name, value in topic.options(**given).items() if value}
    assert spark.read.format("tidegate").options(**options).load().selectExpr("value.id").collect()[0].id == 1


@pytest.mark.parametrize(
    ("query", "options", "words"),
    [
        ("select 1.5BD as price", PROTOBUF, r"field price: Arrow type decimal128\(2, 1\) has no Protobuf type here: cast it"),
        ("select 1 as value", PROTOBUF, "Protobuf has messages only, and the value is int32: make it a struct"),
        ("select interval 1 day as d", JSON, "field d: .* has no JSON type"),
        ("select cast(1 as decimal(30, 2)) as price", RAW | {"value.format": "json"}, "field price: .* more digits than a JSON number"),
        ("select 1 as id", RAW | {"value.format": "protobuf"}, "the format protobuf needs the option schema.registry.url"),
        (
            "select 1 as id", PROTOBUF | {"value.message": "A", "value.subject.name.strategy": "RecordNameStrategy"},
            "value.message is given, and value.subject.name.strategy is RecordNameStrategy",
        ),
    ],
)  # fmt: skip
def test_columns_and_options_that_make_no_messages_are_refused_by_name(
    spark: SparkSession, topic: Topic, query: str, options: dict[str, str], words: str
) -> None:
    with pytest.raises(Exception, match=words):
        write(spark.sql(query), topic, **options)


def test_subjects_are_named_after_messages_and_titles(spark: SparkSession, topic: Topic) -> None:
    frame = spark.sql("select 1 as id")
    name = f"M{topic.name.replace('-', '_')}"
    named = {"value.subject.name.strategy": "RecordNameStrategy"}
    write(
        frame, topic, **PROTOBUF, **named, **{"value.schema": f'syntax = "proto3"; message {name} {{ int32 id = 1; }}'}
    )
    title = {"title": f"{name}-json", "type": "object", "properties": {"id": {"type": "integer"}}}
    write(frame, topic, **JSON, **named, **{"value.schema": json.dumps(title)})
    assert {name, f"{name}-json"} <= set(client(topic).get_subjects())
