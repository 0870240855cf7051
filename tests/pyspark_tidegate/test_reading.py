"""``spark.read.format("tidegate")`` in a real Spark, over a real broker and registry; records are written by librdkafka."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

# Spark's gateway leaves connections to its JVM to the garbage collector.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

FLIGHT = {
    "type": "record",
    "name": "Flight",
    "fields": [{"name": "id", "type": "long"}, {"name": "month", "type": "int"}],
}
WIDER = FLIGHT | {"fields": [*FLIGHT["fields"], {"name": "carrier", "type": ["null", "string"], "default": None}]}
RICH = {
    "type": "record",
    "name": "Rich",
    "fields": [
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "mark", "type": {"type": "fixed", "name": "Mark", "size": 2}},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "sizes", "type": {"type": "map", "values": "double"}},
        {
            "name": "inner",
            "type": ["null", {"type": "record", "name": "Inner", "fields": [{"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}],
        },
        {"name": "either", "type": ["string", "long"]},
    ],
}  # fmt: skip


class Topic:
    """A topic of a test with what it writes."""

    def __init__(self, broker: BrokerThread, registry: RegistryThread, *, partitions: int = 2, name: str = "") -> None:
        self.name = name or f"t-{uuid.uuid4().hex[:8]}"
        self.broker, self.registry = broker, registry
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic(self.name, partitions, 1)])[self.name].result(60)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    def write(
        self,
        schema: dict[str, Any],
        rows: list[Any],
        partition: int = 0,
        *,
        keys: list[str] | None = None,
        timestamp: int = 0,
    ) -> None:
        context = SerializationContext(self.name, MessageField.VALUE)
        with SchemaRegistryClient({"url": self.registry.url}) as client:
            serializer = AvroSerializer(client, json.dumps(schema))
            for n, row in enumerate(rows):
                value, key = None if row is None else serializer(row, context), keys[n] if keys else None
                self._producer.produce(self.name, value, key, partition, timestamp=timestamp)
        assert self._producer.flush(60) == 0

    def write_raw(self, *values: bytes | None, partition: int = 0, **more: Any) -> None:
        for value in values:
            self._producer.produce(self.name, value, partition=partition, **more)
        assert self._producer.flush(60) == 0

    def options(self, **more: str) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.broker.bootstrap_servers,
            "schema.registry.url": self.registry.url,
            "subscribe": self.name,
            **more,
        }


@pytest.fixture
def topic(broker: BrokerThread, registry: RegistryThread) -> Topic:
    return Topic(broker, registry)


def reader(spark: SparkSession, topic: Topic, **more: str) -> DataFrameReader:
    return spark.read.format("tidegate").options(**topic.options(**more))


def values(frame: DataFrame) -> list[Any]:
    return [row.asDict(recursive=True) for row in frame.select("value.*").orderBy("id").collect()]


def test_avro_is_read_by_two_writer_schemas_and_spark_finds_the_format_itself(
    spark: SparkSession, topic: Topic
) -> None:
    topic.write(FLIGHT, [{"id": n, "month": 1} for n in range(5)])
    topic.write(WIDER, [{"id": n, "month": 2, "carrier": "UA"} for n in range(5, 9)], 1)
    frame = reader(spark, topic).load()
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp"]
    assert values(frame) == [
        *({"id": n, "month": 1, "carrier": None} for n in range(5)),
        *({"id": n, "month": 2, "carrier": "UA"} for n in range(5, 9)),
    ]
    where = frame.select("topic", "partition", "offset").orderBy("partition", "offset").collect()
    assert [tuple(row) for row in where] == [(topic.name, 0, n) for n in range(5)] + [
        (topic.name, 1, n) for n in range(4)
    ]


def test_types_are_sparks(spark: SparkSession, topic: Topic) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 30, 1, 250_000, tzinfo=dt.UTC)
    rich = {
        "price": decimal.Decimal("12.30"), "day": dt.date(2024, 2, 29), "at": moment, "clock": dt.time(1, 0, 1),
        "kind": "B", "mark": b"\x01\x02", "tags": ["x", None], "sizes": {"a": 1.5}, "inner": {"at": moment}, "either": 7,
    }  # fmt: skip
    empty = rich | {"tags": [], "sizes": {}, "inner": None, "either": "x"}
    topic.write(RICH, [rich, empty, None, rich])
    frame = reader(spark, topic).load().orderBy("offset")
    assert frame.select("value.*").dtypes == [
        ("price", "decimal(12,2)"), ("day", "date"), ("at", "timestamp"), ("clock", "int"), ("kind", "string"),
        ("mark", "binary"), ("tags", "array<string>"), ("sizes", "map<string,double>"), ("inner", "struct<at:timestamp>"),
        ("either", "struct<string:string,long:bigint>"),
    ]  # fmt: skip
    got = [row["value"] for row in frame.select("value").collect()]
    assert got[2] is None  # a tombstone
    first = got[0].asDict(recursive=True)
    utc = {name: first.pop(name) for name in ("at", "inner")}
    assert first == {
        "price": decimal.Decimal("12.30"), "day": dt.date(2024, 2, 29), "clock": 3_601_000, "kind": "B", "mark": bytearray(b"\x01\x02"),
        "tags": ["x", None], "sizes": {"a": 1.5}, "either": {"string": None, "long": 7},
    }  # fmt: skip
    assert [utc["at"].timestamp(), utc["inner"]["at"].timestamp()] == [moment.timestamp()] * 2
    assert (got[1]["tags"], got[1]["sizes"], got[1]["inner"], got[1]["either"]["string"]) == ([], {}, None, "x")
    assert got[3] == got[0]


def test_offsets_and_times_choose_the_rows(spark: SparkSession, topic: Topic) -> None:
    for n in range(6):
        topic.write_raw(str(n).encode(), partition=n % 2, timestamp=1_700_000_000_000 + n * 1000)

    def read(**more: str) -> list[str]:
        frame = reader(spark, topic, **{"value.format": "string"}, **more).load()
        return sorted(row["value"] for row in frame.collect())

    name = topic.name
    assert read() == ["0", "1", "2", "3", "4", "5"]
    assert read(startingOffsets=json.dumps({name: {"0": 1, "1": -1}})) == ["2", "4"]
    assert read(endingOffsets=json.dumps({name: {"0": 2, "1": 1}})) == ["0", "1", "2"]
    assert read(startingTimestamp="1700000003000") == ["3", "4", "5"]
    assert read(startingOffsetsByTimestamp=json.dumps({name: {"0": 1_700_000_002_000}})) == ["2", "4"]
    late = {"startingTimestamp": "1700000005000"}  # after the last record of partition 0
    with pytest.raises(Exception, match=rf"{name}-0 has no record at or after its starting timestamp 1700000005000"):
        read(**late)
    assert read(**late, startingOffsetsByTimestampStrategy="latest") == ["5"]
    assert read(minPartitions="6") == ["0", "1", "2", "3", "4", "5"]
    assigned = {"assign": json.dumps({name: [1]}), "subscribe": ""}
    assert read(**assigned) == ["1", "3", "5"]
    assert reader(spark, topic, minPartitions="6", **{"value.format": "string"}).load().rdd.getNumPartitions() == 6


def test_filters_choose_the_offsets_that_are_read(spark: SparkSession, topic: Topic) -> None:
    for n in range(6):
        topic.write_raw(str(n).encode(), partition=n % 2, timestamp=1_700_000_000_000 + n * 1000)
    frame = reader(spark, topic, pushFilters="true", **{"value.format": "string"}).load()
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        chosen = frame.where("partition = 1 and offset >= 1")
        assert (chosen.rdd.getNumPartitions(), sorted(row["value"] for row in chosen.collect())) == (1, ["3", "5"])
        late = frame.where("timestamp >= timestamp'2023-11-14 22:13:24'")  # 1,700,000,004 s
        assert sorted(row["value"] for row in late.collect()) == ["4", "5"]
        assert frame.where("timestamp > timestamp'2023-11-14 22:13:24' and partition = 0").collect() == []
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_keys_headers_text_and_bytes(spark: SparkSession, topic: Topic) -> None:
    topic.write_raw(b"a", key=b"k", headers=[("h", b"1"), ("h", None)])
    topic.write_raw(None, key=None)
    options = {"value.format": "binary", "key.format": "string", "includeHeaders": "true"}
    rows = reader(spark, topic, **options).load().orderBy("offset").collect()
    assert [(row["key"], row["value"], row["headers"]) for row in rows] == [
        ("k", bytearray(b"a"), [("h", bytearray(b"1")), ("h", None)]),
        (None, None, None),
    ]


def test_topics_by_pattern_and_some_columns(
    spark: SparkSession, broker: BrokerThread, registry: RegistryThread
) -> None:
    stem = f"p-{uuid.uuid4().hex[:8]}"
    for n in range(3):
        Topic(broker, registry, name=f"{stem}-{n}", partitions=1).write(FLIGHT, [{"id": n, "month": n}])
    one = Topic(broker, registry)
    options = one.options(subscribePattern=f"{stem}-[01]") | {"subscribe": ""}
    frame = spark.read.format("tidegate").options(**options).schema("topic STRING, value STRUCT<id: BIGINT>").load()
    assert sorted((row["topic"], row["value"]["id"]) for row in frame.collect()) == [(f"{stem}-0", 0), (f"{stem}-1", 1)]


def test_what_cannot_be_decoded_names_the_record_or_is_kept_with_the_reason(spark: SparkSession, topic: Topic) -> None:
    topic.write(FLIGHT, [{"id": 1, "month": 1}])
    topic.write_raw(b"\x00\x00\x00\x00\x63rubbish")
    topic.write(FLIGHT, [{"id": 2, "month": 2}])
    with pytest.raises(Exception, match=rf"{topic.name}.*offset 1|offset 1.*{topic.name}"):
        reader(spark, topic).load().collect()
    kept = reader(spark, topic, **{"value.errors": "null"}).load().orderBy("offset").collect()
    assert [row["value"] and row["value"]["id"] for row in kept] == [1, None, 2]
    assert [row["bytes"] for row in kept] == [None, bytearray(b"\x00\x00\x00\x00\x63rubbish"), None]
    assert kept[0]["error"] is None and "99" in kept[1]["error"]


def test_text_that_is_not_utf8_is_kept_with_the_reason(spark: SparkSession, topic: Topic) -> None:
    topic.write_raw(b"good", b"\xff", None)
    text = {"value.format": "string"}
    with pytest.raises(Exception, match=rf"topic {topic.name}, partition 0, offset 1: the value is not UTF-8"):
        reader(spark, topic, **text).load().collect()
    kept = reader(spark, topic, **text, **{"value.errors": "null"}).load().orderBy("offset").collect()
    assert [(row["value"], row["bytes"]) for row in kept] == [("good", None), (None, bytearray(b"\xff")), (None, None)]
    assert "not UTF-8" in kept[1]["error"] and kept[0]["error"] is None and kept[2]["error"] is None


def test_a_timestamp_beyond_sparks_names_its_record(spark: SparkSession, topic: Topic) -> None:
    stamp = {"type": "long", "logicalType": "timestamp-millis"}
    schema = FLIGHT | {"fields": [*FLIGHT["fields"], {"name": "at", "type": stamp}]}
    topic.write(schema, [{"id": 1, "month": 1, "at": 0}, {"id": 1, "month": 1, "at": 1 << 60}])
    with pytest.raises(Exception, match=rf"topic {topic.name}, partition 0, offset 1: Spark has no such value"):
        reader(spark, topic).load().collect()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribe": ""}, "one of subscribe, subscribePattern and assign"),
        ({"startingOffsets": "soon"}, "startingoffsets is 'soon', which is not JSON"),
        (
            {"value.format": "xml"},
            "value.format is 'xml': it must be one of avro, protobuf, json-schema, json, string, binary",
        ),
        ({"value.format": "json"}, "value.format json needs the option value.schema: a JSON Schema of the values"),
        ({"value.format": "protobuf"}, "has a schema of type AVRO: value.format must be avro"),
        (
            {"value.format": "protobuf", "schema.registry.url": ""},
            "the format protobuf needs the option schema.registry.url",
        ),
        ({"minPartitions": "-1"}, "minpartitions is '-1'"),
        ({"subscribes": "x"}, "the option subscribes is not known"),
        ({"failOnDataLoss": "perhaps"}, "failondataloss is 'perhaps'"),
        ({"startingTimestamp": "yesterday"}, "startingtimestamp is 'yesterday'"),
        ({"startingOffsetsByTimestampStrategy": "first"}, "strategy is 'first': it must be one of error, latest"),
        ({"endingOffsets": "earliest"}, "endingoffsets is 'earliest': a read can't end at the earliest offset"),
    ],
)
def test_a_wrong_option_is_named_with_its_value(
    spark: SparkSession, topic: Topic, options: dict[str, str], words: str
) -> None:
    topic.write(FLIGHT, [{"id": 1, "month": 1}])
    with pytest.raises(Exception, match=words):
        spark.read.format("tidegate").options(**topic.options() | options).load().collect()


def test_offsets_that_are_gone_are_told(spark: SparkSession, topic: Topic) -> None:
    topic.write_raw(b"x")
    beyond = {"startingOffsets": json.dumps({topic.name: {"0": 7, "1": 0}}), "value.format": "string"}
    with pytest.raises(Exception, match=rf"startingOffsets is 7 for {topic.name}-0, whose offsets are 0 to 1"):
        reader(spark, topic, **beyond).load().collect()
    assert reader(spark, topic, failOnDataLoss="false", **beyond).load().collect() == []


def test_a_column_that_cannot_be_read_as_asked_is_named(spark: SparkSession, topic: Topic) -> None:
    topic.write(FLIGHT, [{"id": 1, "month": 1}])
    with pytest.raises(Exception, match="the column value is struct<id: int64, month: int32>, which can't be read as"):
        reader(spark, topic).schema("value INT").load().collect()
    with pytest.raises(Exception, match="there is no column values: the columns are key, value, topic"):
        reader(spark, topic).schema("values STRING").load().collect()


def test_a_topic_without_a_schema_is_told_what_to_give(spark: SparkSession, topic: Topic) -> None:
    with pytest.raises(
        Exception,
        match=rf"has no subject {topic.name}-value: give the schema of {topic.name} as the option value.schema",
    ):
        reader(spark, topic).load()


def test_topics_of_different_schemas_are_told_what_to_give(
    spark: SparkSession, broker: BrokerThread, registry: RegistryThread
) -> None:
    one, two = Topic(broker, registry), Topic(broker, registry)
    one.write(FLIGHT, [{"id": 1, "month": 1}])
    two.write(WIDER, [{"id": 2, "month": 2, "carrier": "UA"}])
    both = {"subscribe": f"{one.name},{two.name}"}
    with pytest.raises(Exception, match=r"have different schemas: the option value.schema says"):
        spark.read.format("tidegate").options(**one.options() | both).load()
    frame = spark.read.format("tidegate").options(**one.options() | both | {"value.schema": json.dumps(WIDER)}).load()
    assert [row["carrier"] for row in values(frame)] == [None, "UA"]
