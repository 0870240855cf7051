"""Protobuf and JSON Schema in a real Spark; records are written by Confluent's serializers."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from registry.formats.protobuf.schema import ProtobufSchema
from tests.pyspark_tidegate.test_reading import Topic, reader
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's gateway leaves connections to its JVM to the garbage collector.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

ORDER = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  int64 id = 1;
  uint64 big = 2;
  uint32 count = 3;
  google.protobuf.Timestamp at = 4;
  repeated Line lines = 5;
  map<int32, string> names = 6;
  oneof payment { string card = 7; double cash = 8; }
  message Line { string text = 1; }
}
"""
WIDER = ORDER.replace("  message Line", "  string more = 9;\n  message Line")


@pytest.fixture
def topic(broker: BrokerThread, registry: RegistryThread) -> Topic:
    return Topic(broker, registry, partitions=1)


def client(topic: Topic) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": topic.registry.url})


def value_of(topic: Topic) -> SerializationContext:
    return SerializationContext(topic.name, MessageField.VALUE)


def write_protobuf(topic: Topic, text: str, **fields: Any) -> None:
    message = ProtobufSchema.parse(text).message_class()
    serializer = ProtobufSerializer(message, client(topic), {"use.deprecated.format": False})
    topic.write_raw(serializer(message(**fields), value_of(topic)))


@pytest.mark.proof
def test_protobuf_of_several_schemas_is_read_as_the_newest(spark: SparkSession, topic: Topic) -> None:
    write_protobuf(
        topic, ORDER, id=1, big=2**64 - 1, count=2**32 - 1, at={"seconds": 1_700_000_000}, lines=[{"text": "x"}],
        names={5: "five"}, card="visa",
    )  # fmt: skip
    write_protobuf(topic, WIDER, id=2, cash=1.5, more="m")
    topic.write_raw(None)
    frame = reader(spark, topic, **{"value.format": "protobuf"}).load().orderBy("offset")
    assert sorted(frame.select("value.*").dtypes) == sorted([
        ("id", "bigint"), ("big", "decimal(20,0)"), ("count", "bigint"), ("at", "timestamp"),
        ("lines", "array<struct<text:string>>"), ("names", "map<int,string>"), ("card", "string"), ("cash", "double"),
        ("more", "string"),
    ])  # fmt: skip
    first, second, third = (row["value"] for row in frame.collect())
    assert first.at.timestamp() == 1_700_000_000
    shown = first.asDict(recursive=True)
    assert (shown["id"], shown["big"], shown["count"]) == (1, decimal.Decimal(2**64 - 1), 2**32 - 1)
    assert (shown["lines"], shown["names"], shown["card"], shown["cash"], shown["more"]) == (
        [{"text": "x"}], {5: "five"}, "visa", None, "",
    )  # fmt: skip
    assert (second.id, second.at, second.card, second.cash, second.more) == (2, None, None, 1.5, "m")
    assert third is None


def test_a_protobuf_message_is_chosen_and_another_one_is_told(spark: SparkSession, topic: Topic) -> None:
    write_protobuf(topic, ORDER, id=1)
    line = {"value.format": "protobuf", "value.message": "shop.Order.Line"}
    with pytest.raises(Exception, match=r"offset 0: the record is a message shop.Order, and shop.Order.Line is read"):
        reader(spark, topic, **line).load().collect()
    kept = reader(spark, topic, **line, **{"value.errors": "null"}).load().collect()
    assert kept[0]["value"] is None and "shop.Order.Line is read" in kept[0]["error"]


def test_protobuf_follows_references(spark: SparkSession, topic: Topic) -> None:
    registry = client(topic)
    registry.register_schema(
        f"{topic.name}-line", Schema('syntax = "proto3"; message Line { int32 n = 1; }', "PROTOBUF")
    )
    text = 'syntax = "proto3"; import "line.proto"; message A { Line line = 1; }'
    reference = SchemaReference("line.proto", f"{topic.name}-line", 1)
    schema_id = registry.register_schema(f"{topic.name}-value", Schema(text, "PROTOBUF", [reference]))
    topic.write_raw(b"\x00" + schema_id.to_bytes(4, "big") + b"\x00" + b"\x0a\x02\x08\x05")
    assert reader(spark, topic, **{"value.format": "protobuf"}).load().collect()[0]["value"].line.n == 5


def test_json_schema_is_read_by_properties(spark: SparkSession, topic: Topic) -> None:
    properties = {
        "id": {"type": "integer"},
        "note": {"oneOf": [{"type": "null"}, {"type": "string"}]},
        "inner": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}},
        "sizes": {"type": "object", "additionalProperties": {"type": "number"}},
    }
    schema = {"title": "Order", "type": "object", "properties": properties, "additionalProperties": False}
    for more in ({}, {"more": {"type": "boolean"}}):
        serializer = JSONSerializer(json.dumps(schema | {"properties": properties | more}), client(topic))
        value = {"id": 1, "note": None, "inner": {"tags": ["x"]}, "sizes": {"a": 1}}
        topic.write_raw(serializer(value | ({"more": True} if more else {}), value_of(topic)))
    topic.write_raw(b'{"id": 1}')
    frame = reader(spark, topic, **{"value.format": "json-schema", "value.errors": "null"}).load().orderBy("offset")
    assert frame.select("value.*").dtypes == [
        ("id", "bigint"), ("note", "string"), ("inner", "struct<tags:array<string>>"), ("sizes", "map<string,double>"),
        ("more", "boolean"),
    ]  # fmt: skip
    first, second, third = frame.collect()
    assert first["value"].asDict(recursive=True) == {
        "id": 1, "note": None, "inner": {"tags": ["x"]}, "sizes": {"a": 1.0}, "more": None,
    }  # fmt: skip
    assert second["value"].more is True
    assert third["value"] is None and "not in Confluent framing" in third["error"]


def test_plain_json_is_read_with_a_schema_of_the_job(spark: SparkSession, topic: Topic) -> None:
    topic.write_raw(b'{"id": 1, "at": "2024-02-29T00:00:00Z", "other": 1}', b'{"id": "x"}')
    schema = {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}
    options = {"value.format": "json", "value.schema": json.dumps(schema), "schema.registry.url": ""}
    given = {name: value for name, value in topic.options(**options).items() if value}
    frame = spark.read.format("tidegate").options(**given, endingOffsets=json.dumps({topic.name: {"0": 1}})).load()
    rows = frame.selectExpr("value.id", "cast(value.at as timestamp) as at").collect()
    assert [(row["id"], row["at"].timestamp()) for row in rows] == [
        (1, dt.datetime(2024, 2, 29, tzinfo=dt.UTC).timestamp())
    ]
    with pytest.raises(Exception, match=r'offset 1, field id: expected int64, the value is "x"'):
        spark.read.format("tidegate").options(**given).load().collect()


def test_a_message_that_contains_itself_is_refused_by_name(spark: SparkSession, topic: Topic) -> None:
    tree = Schema('syntax = "proto3"; message Tree { repeated Tree children = 1; }', "PROTOBUF")
    client(topic).register_schema(f"{topic.name}-value", tree)
    with pytest.raises(Exception, match="the message Tree contains itself, which columns cannot"):
        reader(spark, topic, **{"value.format": "protobuf"}).load()
