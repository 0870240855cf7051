"""Streams over topics of registered formats, and schemas that change while a stream runs, in one session of real Spark."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import json
import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from connect.api import ConnectError
from connectors.spark.client import SparkDriver
from connectors.spark.job import Input, Job, Stream, TopicOutput
from registry.formats.protobuf.schema import ProtobufSchema
from tests.support.registry import RegistryThread
from tests.support.spark import QUICK_CONF, create_topic, make_job, produce

pytestmark = [pytest.mark.servers, pytest.mark.proof]

AT = dt.datetime(2026, 1, 1, 10, 5, tzinfo=dt.UTC)
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
            {"name": "item", "type": "string"}, {"name": "n", "type": ["null", "int"], "default": None}]}}},
    ],
}  # fmt: skip
NOTED = ORDER | {"fields": [*ORDER["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}


@pytest.fixture(scope="module")
def driver() -> Iterator[SparkDriver]:
    started = SparkDriver(stopping=threading.Event(), idle_s=60)
    yield started
    started.close()


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryThread]:
    with RegistryThread() as started:
        yield started


class Shop:
    """Topics of one cluster with one partition each, and their schemas."""

    def __init__(self, bootstrap: str, registry: str, folder: Path) -> None:
        self.bootstrap, self.registry, self.folder = bootstrap, registry, folder
        self.schemas = SchemaRegistryClient({"url": registry})

    def close(self) -> None:
        self.schemas.__exit__()

    def topic(self) -> str:
        name = f"f{uuid.uuid4().hex[:8]}"
        create_topic(self.bootstrap, name, 1)
        return name

    def order(self, topic: str, *orders: Mapping[str, Any], schema: Mapping[str, Any] = ORDER) -> None:
        """Write orders as Avro."""
        write = AvroSerializer(self.schemas, json.dumps(schema))
        context = SerializationContext(topic, MessageField.VALUE)
        self.write(topic, *(write(dict(order), context) for order in orders))

    def write(self, topic: str, *values: bytes) -> None:
        produce(self.bootstrap, topic, [(0, None, value) for value in values])

    def newest(self, topic: str) -> Schema:
        return self.schemas.get_latest_version(f"{topic}-value").schema

    def values(self, topic: str) -> list[bytes]:
        config = {"bootstrap.servers": self.bootstrap, "group.id": uuid.uuid4().hex, "enable.partition.eof": True}
        consumer, seen = Consumer(config), list[bytes]()
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            seen.append(message.value())
        consumer.close()
        assert message is not None
        return seen

    def job(self, topic: str, format_: str, sql: str, to: str, output: str, **more: Any) -> Job:
        stream = Stream(
            checkpoint=str(self.folder / f"checkpoint-{to}"),
            ends=True,
            interval_ms=0,
            max_offsets=0,
            starting="earliest",
            output_mode="append",
            watermark_column="",
            watermark_delay="0 seconds",
            loses_data=False,
        )
        given = {
            "sql": sql.replace("{view}", topic),
            "topic": TopicOutput(to, [], output, "binary"),
            "stream": stream,
            "registry": {"schema.registry.url": self.registry},
            "conf": QUICK_CONF | {"spark.sql.shuffle.partitions": "1"},
        }
        return make_job(self.bootstrap, [Input(topic, {}, {}, format_)], "", **given | more)


@pytest.fixture
def shop(tidegate_broker: Any, registry: RegistryThread, tmp_path: Path) -> Iterator[Shop]:
    with contextlib.closing(Shop(tidegate_broker.bootstrap_servers, registry.url, tmp_path)) as made:
        yield made


@pytest.mark.long
def test_streams_read_and_write_each_registered_format(driver: SparkDriver, shop: Shop) -> None:
    orders, messages, documents, records = (shop.topic() for _ in range(4))
    shop.order(orders, {"id": 2**40, "at": AT, "lines": [{"item": "tea", "n": 2}, {"item": "é", "n": None}]})
    for job in (
        shop.job(orders, "avro", "SELECT * FROM {view}", messages, "protobuf"),
        shop.job(messages, "protobuf", "SELECT id, at, lines FROM {view}", documents, "json-schema"),
        shop.job(documents, "json-schema", "SELECT *, size(lines) AS count FROM {view}", records, "avro"),
    ):
        done = driver.run(job, lambda said: None)
        assert (done["in"], done["out"]) == (1, 1)

    def context(topic: str) -> SerializationContext:
        return SerializationContext(topic, MessageField.VALUE)

    message = ProtobufSchema.parse(shop.newest(messages).schema_str).message_class()
    theirs = ProtobufDeserializer(message, {"use.deprecated.format": False}, shop.schemas)
    (value,) = (theirs(data, context(messages)) for data in shop.values(messages))
    assert (value.id, value.at.ToDatetime(dt.UTC), [line.item for line in value.lines]) == (2**40, AT, ["tea", "é"])
    (data,) = shop.values(documents)
    of_json = JSONDeserializer(shop.newest(documents).schema_str)(data, context(documents))
    assert of_json["lines"] == [{"item": "tea", "n": 2}, {"item": "é"}]
    (data,) = shop.values(records)
    of_avro = AvroDeserializer(shop.schemas)(data, context(records))
    assert of_avro["count"] == 2 and of_avro["lines"] == [{"item": "tea", "n": 2}, {"item": "é", "n": None}], of_avro


@pytest.mark.long
def test_a_field_that_is_registered_while_a_stream_runs_is_in_the_rows_from_its_first_record_on(shop: Shop) -> None:
    orders, copies = shop.topic(), shop.topic()
    stopping = threading.Event()
    shop.order(orders, {"id": 1, "at": AT, "lines": []})

    def on_progress(said: Mapping[str, Any]) -> None:
        if said.get("ends") == {orders: {"0": 1}}:
            shop.order(orders, {"id": 2, "at": AT, "lines": [], "note": "soon"}, schema=NOTED)
        elif said.get("ends") == {orders: {"0": 2}}:
            stopping.set()

    job = shop.job(orders, "avro", "SELECT * FROM {view}", copies, "avro")
    assert job.stream is not None
    job = dataclasses.replace(job, stream=dataclasses.replace(job.stream, ends=False))
    with contextlib.closing(SparkDriver(stopping=stopping, idle_s=60)) as driver:
        done = driver.run(job, on_progress)
    assert (done["in"], done["out"], done["batches"]) == (2, 2, 2)
    read = AvroDeserializer(shop.schemas)
    rows = [read(data, SerializationContext(copies, MessageField.VALUE)) for data in shop.values(copies)]
    assert [(row["id"], row.get("note", "no field")) for row in rows] == [(1, "no field"), (2, "soon")]


def with_junk(shop: Shop) -> str:
    """A topic with two orders and, between them, a record that is none."""
    orders = shop.topic()
    shop.order(orders, {"id": 1, "at": AT, "lines": []})
    shop.write(orders, b"no avro")
    shop.order(orders, {"id": 2, "at": AT, "lines": []})
    return orders


@pytest.mark.long
def test_records_that_a_stream_can_not_decode_are_handed_over_as_they_lie_in_the_log(
    driver: SparkDriver, shop: Shop
) -> None:
    orders, counts = with_junk(shop), shop.topic()
    job = shop.job(orders, "avro", "SELECT count(*) AS n FROM {view}", counts, "json", tolerates_errors=True)
    assert job.stream is not None
    job = dataclasses.replace(job, stream=dataclasses.replace(job.stream, output_mode="update"))
    letters: list[dict[str, Any]] = []
    done = driver.run(job, lambda said: None, lambda batch: letters.extend(batch.to_pylist()))
    assert [(row["topic"], row["partition"], row["offset"], row["bytes"]) for row in letters] == [
        (orders, 0, 1, b"no avro")
    ]
    assert done["left_out"] == 1 and "not in Confluent framing" in letters[0]["error"], letters
    assert [json.loads(value)["n"] for value in shop.values(counts)] == [2]


@pytest.mark.long
def test_a_micro_batch_counts_when_its_records_that_are_none_are_taken(driver: SparkDriver, shop: Shop) -> None:
    orders, copies = with_junk(shop), shop.topic()
    job = shop.job(orders, "avro", "SELECT id FROM {view}", copies, "json", tolerates_errors=True)
    assert job.topic is not None
    job = dataclasses.replace(job, topic=dataclasses.replace(job.topic, once=True, group=f"connect-{copies}-output"))

    def refuse(batch: pa.RecordBatch) -> None:
        raise ConnectionError("the queue is away")

    with pytest.raises(ConnectionError):
        driver.run(job, lambda said: None, refuse)
    letters: list[int] = []
    assert (
        driver.run(job, lambda said: None, lambda batch: letters.extend(batch["offset"].to_pylist()))["left_out"] == 1
    )
    assert letters == [1]
    assert [json.loads(value)["id"] for value in shop.values(copies)] == [1, 2]

    strict = shop.job(orders, "avro", "SELECT id FROM {view}", shop.topic(), "json")
    with pytest.raises(ConnectError, match=f"topic {orders}, partition 0, offset 1: not in Confluent framing"):
        driver.run(strict, lambda said: None)


@pytest.mark.long
def test_a_stream_that_begins_at_the_end_and_fails_goes_on_from_where_it_began(
    driver: SparkDriver, shop: Shop, tmp_path: Path
) -> None:
    orders, copies = shop.topic(), shop.topic()
    shop.order(orders, {"id": 1, "at": AT, "lines": []})
    job = shop.job(orders, "avro", "SELECT id FROM {view}", copies, "json")
    assert job.stream is not None
    job = dataclasses.replace(job, stream=dataclasses.replace(job.stream, starting="latest"))
    (tmp_path / "file").touch()
    with pytest.raises(ConnectError, match=str(tmp_path / "file")):
        driver.run(dataclasses.replace(job, topic=None, path=str(tmp_path / "file")), lambda said: None)
    shop.order(orders, {"id": 2, "at": AT, "lines": []})
    driver.run(job, lambda said: None)
    assert [json.loads(value)["id"] for value in shop.values(copies)] == [2]
