"""Reading a range of offsets as a Spark task does, without Spark: brokers that go, transactions, hostile records."""

from __future__ import annotations

import decimal
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import NewTopic as LibraryTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from broker.client import ClientConfig, TopicPartition
from broker.client.blocking import Admin
from broker.errors import OffsetOutOfRange
from pyspark_tidegate import offsets, records
from pyspark_tidegate.offsets import OffsetRange
from pyspark_tidegate.options import Options
from pyspark_tidegate.records import StalledRead
from pyspark_tidegate.schemas import sides
from registry.serde import CorruptRecord, UnsupportedSchema
from tests.pyspark_tidegate.test_reading import FLIGHT, RICH, WIDER, Topic
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread
from tidegate.kit.errors import UsageError


@pytest.fixture
def topic(broker: BrokerThread, registry: RegistryThread) -> Topic:
    return Topic(broker, registry, partitions=1)


def batches(topic: str, stop: int, given: dict[str, str], *, start: int = 0) -> Iterator[pa.RecordBatch]:
    options = Options.parse(given, stream=False)
    key, value = sides(options)
    target = records.arrow_schema(options, key, value)
    return records.read(options, key, value, OffsetRange(topic, 0, start, stop), target)


def rows(topic: Topic, stop: int, *, start: int = 0, **more: str) -> list[dict[str, Any]]:
    read = batches(topic.name, stop, topic.options(**more), start=start)
    return [row for batch in read for row in batch.to_pylist()]


def text(bootstrap: str, topic: str, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "value.format": "string", **more}


def test_a_read_without_progress_ends_and_says_where(topic: Topic) -> None:
    topic.write_raw(b"0", b"1", b"2")
    read = batches(
        topic.name, 5, text(topic.broker.bootstrap_servers, topic.name, **{"kafkaConsumer.pollTimeoutMs": "3000"})
    )
    taken: list[str] = []
    with pytest.raises(StalledRead, match=rf"{topic.name}-0: nothing came from 127.*after offset 3.*ends at 5"):
        taken.extend(value for batch in read for value in batch["value"].to_pylist())
    assert taken == ["0", "1", "2"]


def test_a_read_goes_on_when_its_broker_comes_back_and_fails_by_name_when_it_does_not(tmp_path: Path) -> None:
    broker = TidegateBroker(tmp_path)
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([LibraryTopic("numbers", 1, 1)])["numbers"].result(60)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for n in range(40):
            producer.produce("numbers", str(n).encode() * 20_000, partition=0)
            producer.flush(60)  # a batch each
        small = {"kafka.max.partition.fetch.bytes": "50000", "kafka.fetch.max.bytes": "50000"}
        read = batches("numbers", 40, text(broker.bootstrap_servers, "numbers", **small))
        seen = next(read)["offset"].to_pylist()
        broker.kill()
        broker.start()
        seen += [offset for batch in read for offset in batch["offset"].to_pylist()]
        assert seen == list(range(40))

        impatient = small | {"kafkaConsumer.pollTimeoutMs": "1500"}
        read = batches("numbers", 40, text(broker.bootstrap_servers, "numbers", **impatient))
        next(read)
        broker.kill()
        with pytest.raises(StalledRead, match=rf"numbers-0: nothing came from {broker.bootstrap_servers} for 1500 ms"):
            list(read)
    finally:
        broker.kill()


def test_committed_records_end_where_transactions_left_gaps(topic: Topic) -> None:
    producer = Producer({"bootstrap.servers": topic.broker.bootstrap_servers, "transactional.id": topic.name})
    producer.init_transactions(60)
    for letter, commits in (("a", True), ("b", False), ("c", True), ("d", False)):
        producer.begin_transaction()
        for n in range(3):
            producer.produce(topic.name, f"{letter}{n}".encode(), partition=0)
        producer.flush(60)
        (producer.commit_transaction if commits else producer.abort_transaction)(60)
    options = text(topic.broker.bootstrap_servers, topic.name, **{"kafka.isolation.level": "read_committed"})
    with Admin(ClientConfig(topic.broker.bootstrap_servers)) as admin:
        stops = offsets.end_positions(admin, Options.parse(options, stream=False), [TopicPartition(topic.name, 0)])
    assert stops == {TopicPartition(topic.name, 0): 16}  # a marker after each transaction

    def read(start: int, stop: int) -> list[str]:
        return [value for b in batches(topic.name, stop, options, start=start) for value in b["value"].to_pylist()]

    assert read(0, 16) == ["a0", "a1", "a2", "c0", "c1", "c2"]
    assert read(0, 2) == ["a0", "a1"]
    assert read(4, 7) == []  # aborted ones alone
    assert read(3, 4) == []  # the marker alone
    assert read(5, 10) == ["c0", "c1"]
    assert read(12, 16) == []


def test_a_schema_registered_while_the_job_runs_is_looked_up(topic: Topic) -> None:
    topic.write(FLIGHT, [{"id": 0, "month": 1}])
    read = batches(topic.name, 2, topic.options())
    assert next(read)["value"].to_pylist() == [{"id": 0, "month": 1}]
    topic.write(WIDER, [{"id": 1, "month": 2, "carrier": "UA"}])
    assert next(read)["value"].to_pylist() == [{"id": 1, "month": 2}]
    assert next(read, None) is None


def test_records_deleted_while_the_job_runs_end_it_unless_loss_is_allowed(topic: Topic) -> None:
    topic.write_raw(b"0", b"1", b"2", b"3")
    with Admin(ClientConfig(topic.broker.bootstrap_servers)) as admin:
        admin.delete_records({TopicPartition(topic.name, 0): 2})
    options = text(topic.broker.bootstrap_servers, topic.name)
    with pytest.raises(OffsetOutOfRange, match=rf"{topic.name}-0 at offset 0"):
        list(batches(topic.name, 4, options))
    allowed = batches(topic.name, 4, options | {"failOnDataLoss": "false"})
    assert [value for batch in allowed for value in batch["value"].to_pylist()] == ["2", "3"]


def test_any_bytes_are_a_null_with_a_reason_or_the_end_of_the_job(topic: Topic) -> None:
    """Records cut off at every length, with a byte changed, and of random bytes: a good record is never spoilt by them."""
    rich = {
        "price": decimal.Decimal("1.50"), "day": 1, "at": 1, "clock": 1, "kind": "A", "mark": b"\x01\x02", "tags": ["x", None, "y"],
        "sizes": {"a": 1.5}, "inner": {"at": 1}, "either": 7,
    }  # fmt: skip
    topic.write(RICH, [rich])
    (good,) = (row["value"] for row in rows(topic, 1, **{"value.format": "binary"}))
    randomness = random.Random(7)
    hostile = [good[:length] for length in range(len(good))] + [good + b"\x00"]
    for at in range(5, len(good)):
        hostile.append(good[:at] + bytes([good[at] ^ 0x80]) + good[at + 1 :])
        hostile.append(good[:5] + randomness.randbytes(randomness.randrange(40)))
    topic.write_raw(*hostile)
    topic.write(RICH, [rich])
    total = len(hostile) + 2
    kept = rows(topic, total, **{"value.errors": "null"})
    assert [row["offset"] for row in kept] == list(range(total))
    assert kept[0]["value"] == kept[-1]["value"] is not None
    for value, row in zip(hostile, kept[1:-1], strict=True):
        if row["error"] is None:
            assert row["value"] is not None and row["bytes"] is None
        else:
            assert (row["value"], row["bytes"]) == (None, value)
    assert all(row["error"] for row in kept[1 : len(good) + 2])
    with pytest.raises(CorruptRecord, match=rf"topic {topic.name}, partition 0, offset 1: not in Confluent framing"):
        rows(topic, total)


def test_ids_of_other_types_and_unknown_ids_name_their_record(topic: Topic) -> None:
    topic.write(FLIGHT, [{"id": 0, "month": 1}])
    with SchemaRegistryClient({"url": topic.registry.url}) as client:
        proto = client.register_schema(f"{topic.name}-other", Schema('syntax = "proto3"; message A {}', "PROTOBUF"))
    topic.write_raw(b"\x00" + proto.to_bytes(4, "big") + b"\x00")
    with pytest.raises(CorruptRecord, match=rf"offset 1: the schema with the id {proto} is of type PROTOBUF, not AVRO"):
        rows(topic, 2)
    assert [row["error"] is None for row in rows(topic, 2, **{"value.errors": "null"})] == [True, False]


def test_schemas_without_columns_are_refused_by_name(topic: Topic) -> None:
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "leaf", "type": "int"}]}
    tree["fields"].append({"name": "children", "type": {"type": "array", "items": "Tree"}, "default": []})
    topic.write(tree, [{"leaf": 1, "children": [{"leaf": 2, "children": []}]}])
    with pytest.raises(UnsupportedSchema, match="field children.*the record Tree holds itself"):
        rows(topic, 1)
    flat = json.dumps({"type": "record", "name": "Tree", "fields": [{"name": "leaf", "type": "int"}]})
    with pytest.raises(UnsupportedSchema, match=rf"topic {topic.name}, partition 0, offset 0, field children"):
        rows(topic, 1, **{"value.schema": flat})


def test_a_union_of_thousands_of_records_is_refused_by_its_size(topic: Topic) -> None:
    branch = {"type": "record", "fields": [{"name": f"f{n}", "type": "int"} for n in range(10)]}
    union = [branch | {"name": f"R{n}"} for n in range(1500)]
    schema = json.dumps({"type": "record", "name": "Huge", "fields": [{"name": "any", "type": union}]})
    with SchemaRegistryClient({"url": topic.registry.url}) as client:
        client.register_schema(f"{topic.name}-value", Schema(schema, "AVRO"))
    topic.write_raw(b"\x00")
    with pytest.raises(UnsupportedSchema, match="has 1650[0-9] columns.*more than 10000"):
        rows(topic, 1)


def test_records_that_cannot_be_decoded_go_to_a_topic_of_their_own(topic: Topic) -> None:
    letters = Topic(topic.broker, topic.registry, partitions=1)
    topic.write(FLIGHT, [{"id": 1, "month": 1}])
    topic.write_raw(b"rubbish", key=b"k", headers=[("h", b"1")], timestamp=1000)
    topic.write(FLIGHT, [{"id": 2, "month": 2}])
    to_letters = {"value.errors": "dead-letter", "errors.deadletterqueue.topic.name": letters.name}
    assert [row["value"]["id"] for row in rows(topic, 3, **to_letters)] == [1, 2]
    (letter,) = rows(letters, 1, includeHeaders="true", **{"value.format": "binary"})
    headers = {header["key"]: header["value"].decode() for header in letter["headers"]}
    reason = headers.pop("__connect.errors.exception.message")
    assert "not in Confluent framing" in reason
    assert headers == {
        "h": "1", "__connect.errors.topic": topic.name, "__connect.errors.partition": "0", "__connect.errors.offset": "1",
        "__connect.errors.stage": "VALUE_CONVERTER",
    }  # fmt: skip
    assert (letter["key"], letter["value"], letter["timestamp"].timestamp()) == (b"k", b"rubbish", 1)
    for wrong in ({"value.errors": "dead-letter"}, {"errors.deadletterqueue.topic.name": "x"}):
        with pytest.raises(UsageError, match="dead-letter needs a topic, and nothing else takes one"):
            rows(topic, 3, **wrong)


def test_a_column_that_is_not_asked_for_is_not_decoded(topic: Topic) -> None:
    topic.write(FLIGHT, [{"id": 1, "month": 1}])
    topic.write_raw(b"rubbish")
    options = Options.parse(topic.options(), stream=False)
    key, value = sides(options)
    target = pa.schema([pa.field("offset", pa.int64()), pa.field("topic", pa.string())])
    read = records.read(options, key, value, OffsetRange(topic.name, 0, 0, 2), target)
    assert [row for batch in read for row in batch.to_pylist()] == [
        {"offset": n, "topic": topic.name} for n in range(2)
    ]


def test_columns_are_chosen_and_fields_stand_in_their_place(topic: Topic) -> None:
    topic.write(FLIGHT, [{"id": 1, "month": 2}])
    topic.write_raw(None)
    assert rows(topic, 2, columns="value.*, offset") == [
        {"id": 1, "month": 2, "offset": 0},
        {"id": None, "month": None, "offset": 1},
    ]
    assert rows(topic, 2, columns="partition") == [{"partition": 0}] * 2
    kept = rows(topic, 1, columns="value.*,error", **{"value.errors": "null"})
    assert kept == [{"id": 1, "month": 2, "error": None}]
    both = {"key.format": "avro", "key.schema": json.dumps(FLIGHT)}
    for wrong, more in (
        ("names id: the columns are key, value, topic", {"columns": "value.*, id"}),
        (r"names offset\.\*", {"columns": "offset.*"}),
        (r"has key\.\*, and the key is binary, which has no fields", {"columns": "key.*"}),
        ("both give a column id: name one of them", {"columns": "value.*,key.*", **both}),
    ):
        with pytest.raises(UsageError, match=wrong):
            rows(topic, 1, **more)
