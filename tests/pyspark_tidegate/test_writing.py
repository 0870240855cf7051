"""``df.write.format("tidegate")`` and ``writeStream`` in a real Spark; records are read back by librdkafka and Confluent's client."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer

from tests.pyspark_tidegate.test_reading import FLIGHT, Topic, reader
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Spark's gateway leaves connections to its JVM to the garbage collector.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]


@pytest.fixture
def topic(broker: BrokerThread, registry: RegistryThread) -> Topic:
    return Topic(broker, registry)


def write(frame: DataFrame, topic: Topic, /, **more: str) -> None:
    """Append the rows; options are joined to those of the topic."""
    options = {
        "kafka.bootstrap.servers": topic.broker.bootstrap_servers,
        "schema.registry.url": topic.registry.url,
        "topic": topic.name,
        **more,
    }
    frame.write.format("tidegate").options(**{n: v for n, v in options.items() if v}).mode("append").save()


RAW = {"schema.registry.url": ""}


def messages(topic: Topic, *, committed: bool = False, partitions: int = 2) -> list[Message]:
    """All records of a topic, as librdkafka reads them, by partition."""
    config = {
        "bootstrap.servers": topic.broker.bootstrap_servers,
        "group.id": str(uuid.uuid4()),
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
    }
    consumer = Consumer(config)
    consumer.assign([TopicPartition(topic.name, n, OFFSET_BEGINNING) for n in range(partitions)])
    read: list[Message] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(60)
        assert message is not None
        if message.error() is not None:
            ended.add(message.partition())
        else:
            read.append(message)
    consumer.close()
    return sorted(read, key=lambda message: (message.partition(), message.offset()))


def decoder(topic: Topic) -> Callable[[bytes | None], Any]:
    deserializer = AvroDeserializer(SchemaRegistryClient({"url": topic.registry.url}))
    return lambda data: deserializer(data, None)


def subject(topic: Topic, side: str = "value") -> dict[str, Any]:
    client = SchemaRegistryClient({"url": topic.registry.url})
    return json.loads(client.get_latest_version(f"{topic.name}-{side}").schema.schema_str)


def test_the_columns_of_sparks_kafka_sink_are_written(spark: SparkSession, topic: Topic) -> None:
    rows = [
        (b"k", "one", 1, [("h", b"1"), ("h", None)], dt.datetime(2024, 2, 29, tzinfo=dt.UTC)),
        (None, None, 0, None, None),
    ]
    frame = spark.createDataFrame(
        [(*row, topic.name) for row in rows],
        "key BINARY, value STRING, partition INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, timestamp TIMESTAMP, "
        "topic STRING",
    )
    write(frame, topic, topic="", **RAW)
    first, second = messages(topic)
    assert (first.key(), first.value(), first.headers(), first.partition()) == (None, None, None, 0)
    assert (second.key(), second.value(), second.partition()) == (b"k", b"one", 1)
    assert second.headers() == [("h", b"1"), ("h", None)]
    assert second.timestamp()[1] == 1_709_164_800_000


def test_a_topic_is_copied_with_its_keys_partitions_and_headers(spark: SparkSession, topic: Topic) -> None:
    other = Topic(topic.broker, topic.registry)
    for n in range(6):
        topic.write_raw(
            str(n).encode(), partition=n % 2, key=b"k", headers=[("n", str(n).encode())], timestamp=1000 + n
        )
    frame = reader(spark, topic, includeHeaders="true", **{"value.format": "binary"}).load()
    write(frame.drop("topic"), other, **RAW)

    def form(message: Message) -> Any:
        return (
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            message.headers(),
            message.timestamp(),
        )

    assert [form(message) for message in messages(other)] == [form(message) for message in messages(topic)]


def test_rows_are_avro_records_with_keys_of_fields_in_javas_partitions(spark: SparkSession, topic: Topic) -> None:
    frame = spark.range(200).selectExpr("id", "cast(id % 7 as int) as month", "concat('c', id % 3) as carrier")
    write(frame, topic, **{"key.fields": "id"})
    decode = decoder(topic)
    written = messages(topic)
    values = sorted((decode(message.value()) for message in written), key=lambda value: value["id"])
    assert values == [{"id": n, "month": n % 7, "carrier": f"c{n % 3}"} for n in range(200)]
    assert all(decode(message.key()) == {"id": decode(message.value())["id"]} for message in written)
    assert [field["name"] for field in subject(topic)["fields"]] == ["id", "month", "carrier"]
    assert subject(topic, "key")["fields"][0]["name"] == "id"
    # The same keys by librdkafka's partitioner that is Java's.
    java = Topic(topic.broker, topic.registry)
    producer = Producer({"bootstrap.servers": topic.broker.bootstrap_servers, "partitioner": "murmur2_random"})
    for message in written:
        producer.produce(java.name, b"", message.key())
    producer.flush(60)
    where = {message.key(): message.partition() for message in written}
    assert {message.key(): message.partition() for message in messages(java)} == where
    assert set(where.values()) == {0, 1}


def test_rows_without_keys_are_spread_over_the_partitions(spark: SparkSession, topic: Topic) -> None:
    write(spark.range(1000, numPartitions=1), topic)
    sizes = [sum(message.partition() == n for message in messages(topic)) for n in range(2)]
    assert sizes == [500, 500]


def test_every_type_comes_back_as_it_was(spark: SparkSession, topic: Topic) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 30, 1, 250_001)
    frame = spark.createDataFrame(
        [
            (True, 1, 2, 3, 4, 1.5, 2.5, "t", b"b", decimal.Decimal("12.30"), dt.date(2024, 2, 29), moment, moment, ["x", None],
             {"a": 1.5}, ([(7,)],)),
            (None,) * 15 + (None,),
        ],
        "flag BOOLEAN, tiny TINYINT, small SMALLINT, number INT, id BIGINT, f FLOAT, d DOUBLE, text STRING, data BINARY, "
        "price DECIMAL(12,2), day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, tags ARRAY<STRING>, sizes MAP<STRING,DOUBLE>, "
        "inner STRUCT<list: ARRAY<STRUCT<x: INT>>>",
    )  # fmt: skip
    write(frame, topic)
    back = reader(spark, topic).load().select("value.*")
    widened = {"tiny": "int", "small": "int"}
    assert back.dtypes == [(name, widened.get(name, type_)) for name, type_ in frame.dtypes]
    assert sorted(back.collect(), key=str) == sorted(frame.collect(), key=str)


def test_a_struct_value_has_other_columns_beside_it_and_null_is_a_tombstone(spark: SparkSession, topic: Topic) -> None:
    other = Topic(topic.broker, topic.registry)
    frame = spark.createDataFrame(
        [("a", (1, 2), topic.name), ("b", None, topic.name), ("c", (3, 4), other.name)],
        "key STRING, value STRUCT<id: BIGINT, month: INT>, topic STRING",
    )
    write(frame, topic, topic="")
    decode = decoder(topic)
    assert sorted((m.key(), decode(m.value())) for m in messages(topic)) == [
        (b"a", {"id": 1, "month": 2}),
        (b"b", None),
    ]
    assert [(m.key(), decode(m.value())) for m in messages(other)] == [(b"c", {"id": 3, "month": 4})]
    assert subject(topic) == subject(other)


def test_the_newest_schema_of_the_subject_is_written_and_rows_must_fit_it(spark: SparkSession, topic: Topic) -> None:
    kind = {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}
    schema = FLIGHT | {
        "fields": [
            *FLIGHT["fields"],
            {"name": "kind", "type": kind},
            {"name": "note", "type": "string", "default": "-"},
        ]
    }
    client = SchemaRegistryClient({"url": topic.registry.url})
    schema_id = client.register_schema(f"{topic.name}-value", Schema(json.dumps(schema), "AVRO"))
    latest = {"use.latest.version": "true"}
    frame = spark.createDataFrame([(1, 2, "B")], "id BIGINT, month INT, kind STRING")
    write(frame, topic, **latest)
    (message,) = messages(topic)
    assert int.from_bytes(message.value()[1:5], "big") == schema_id
    assert decoder(topic)(message.value()) == {"id": 1, "month": 2, "kind": "B", "note": "-"}

    with pytest.raises(
        Exception, match=rf"the schema {schema_id} of the subject {topic.name}-value has no field extra"
    ):
        write(frame.selectExpr("*", "1 as extra"), topic, **latest)
    with pytest.raises(
        Exception, match=rf"does not fit the schema {schema_id} of the subject {topic.name}-value.*month"
    ):
        write(frame.drop("month"), topic, **latest)
    with pytest.raises(Exception, match=rf"not compatible with the subject {topic.name}-value.*use.latest.version"):
        write(frame, topic)
    with pytest.raises(Exception, match=rf"subject {topic.name}-value does not have the schema of the value"):
        write(frame, topic, **{"auto.register.schemas": "false"})
    with pytest.raises(Exception, match=r"field kind.*C"):
        write(spark.createDataFrame([(1, 2, "C")], frame.schema), topic, **latest)
    assert len(messages(topic)) == 1


@pytest.mark.parametrize(
    ("query", "options", "words"),
    [
        ("select 1 as value", RAW, "value is int32: value.format binary takes binary and string"),
        ("select 'x' as text", RAW, "value.format binary needs a column value; the columns are text"),
        ("select 'x' as value, 1 as extra", RAW, "the column extra beside it has no use"),
        ("select 'x' as value", RAW | {"topic": ""}, "no topic is given: set the option topic"),
        ("select 'x' as value", RAW | {"topic": "nowhere-to-be-seen"}, "nowhere-to-be-seen"),
        ("select 'x' as value", {"schema.registry.url": "", "value.format": "avro"}, "avro needs the option schema.registry.url"),
        ("select 1 as id", {"key.fields": "ids"}, "the option key.fields names ids, and the value is struct<id: int32 not null>"),
        ("select 1 as id, 2 as n", {"key.fields": "id,n", "key.format": "string"}, "a key of several fields needs key.format=avro"),
        ("select 'x' as value", RAW | {"transactions": "all"}, "transactions is 'all': it must be one of true, false"),
        ("select interval 1 day as d", {}, "field d"),
        ("select 'x' as value, 'y' as headers", RAW, "headers is string: it must be array<struct<key: string, value: binary>>"),
    ],
)  # fmt: skip
def test_rows_and_options_that_make_no_records_are_refused_by_name(
    spark: SparkSession, topic: Topic, query: str, options: dict[str, str], words: str
) -> None:
    with pytest.raises(Exception, match=words):
        write(spark.sql(query), topic, **options)


def test_a_topic_is_not_overwritten(spark: SparkSession, topic: Topic) -> None:
    options = {"kafka.bootstrap.servers": topic.broker.bootstrap_servers, "topic": topic.name}
    with pytest.raises(Exception, match=r"a topic can only be appended to: write with mode\(\"append\"\)"):
        spark.sql("select 'x' as value").write.format("tidegate").options(**options).mode("overwrite").save()


def test_readers_of_committed_records_see_the_rows_of_a_job_that_succeeded_and_no_others(
    spark: SparkSession, topic: Topic
) -> None:
    late = "if(id = 299999, raise_error('the last row'), id) as id"  # in the second of two tasks, long after its first rows were sent
    wide = "repeat('x', 100) as pad"
    frame = spark.range(300_000, numPartitions=2).selectExpr(late, wide)
    with pytest.raises(Exception, match="the last row"):
        write(frame, topic, transactions="true")
    assert messages(topic)
    assert messages(topic, committed=True) == []  # and the reader came to the end: no transaction is left open
    rows = spark.range(30_000, numPartitions=3).where("id > 20000")  # a task without rows
    write(rows.selectExpr("id", wide), topic, transactions="true")
    decode = decoder(topic)
    seen = [decode(message.value())["id"] for message in messages(topic, committed=True)]
    assert sorted(seen) == list(range(20_001, 30_000))


@pytest.mark.proof
@pytest.mark.long
def test_a_stream_writes_each_row_once_over_restarts(spark: SparkSession, topic: Topic, folder: Path) -> None:
    source = Topic(topic.broker, topic.registry)
    begin = source.options(
        startingOffsets="earliest", maxOffsetsPerTrigger="6", groupId=topic.name, **{"value.schema": json.dumps(FLIGHT)}
    )
    stream = spark.readStream.format("tidegate").options(**begin).load()
    options = {"kafka.bootstrap.servers": topic.broker.bootstrap_servers, "schema.registry.url": topic.registry.url}

    def run() -> None:
        query = (
            stream.selectExpr("value.id", "value.month * 2 as month")
            .writeStream.format("tidegate")
            .queryName(topic.name)
        )
        query = query.options(**options, topic=topic.name, transactions="true", **{"key.fields": "id"})
        running = query.option("checkpointLocation", str(folder / "checkpoint")).start()
        try:
            running.processAllAvailable()
        finally:
            running.stop()

    def batches() -> int:
        return len([path for path in (folder / "checkpoint" / "commits").iterdir() if path.name.isdigit()])

    for start in (0, 10):
        source.write(FLIGHT, [{"id": n, "month": n} for n in range(start, start + 10)], start // 10)
        run()
    assert batches() > 2
    decode = decoder(topic)
    values = sorted((decode(m.value()) for m in messages(topic, committed=True)), key=lambda value: value["id"])
    assert values == [{"id": n, "month": 2 * n} for n in range(20)]
