"""The S3 source against a real S3 server: objects of our sink and of others."""

from __future__ import annotations

import dataclasses
import gzip
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from connect.api import ConnectError, Header, RecordBatch, RetriableConnectError, Schema, SchemaType, SourceConnector
from connect.bench import Bench
from connect.testing import SourceSuite
from connectors.s3.client import _Stream
from connectors.s3.sink import S3SinkConnector
from connectors.s3.source import AivenS3SourceConnector, S3SourceConnector
from tests.servers.s3 import S3Server
from tests.support.buckets import Bucket, bucket_on
from tests.support.connect import sink_task
from tests.support.objects import batch, row
from tidegate.kit.config import validate

pytestmark = pytest.mark.servers
KEY = Schema(SchemaType.STRING)


@pytest.fixture
def bucket(s3_server: S3Server) -> Iterator[Bucket]:
    with bucket_on(s3_server) as made:
        yield made


def properties_of(bucket: Bucket, **more: str) -> dict[str, str]:
    made = {**bucket.access, "format.class": "JsonFormat", "s3.poll.interval.ms": "1"}
    return made | {key.replace("_", "."): value for key, value in more.items()}


def aiven(bucket: Bucket, **more: str) -> dict[str, str]:
    access = bucket.access
    made = {
        "aws.s3.bucket.name": bucket.name,
        "aws.s3.region": access["s3.region"],
        "aws.s3.endpoint": access["store.url"],
        "aws.access.key.id": access["aws.access.key.id"],
        "aws.secret.access.key": access["aws.secret.access.key"],
        "input.format": "jsonl",
        "file.name.template": "{{topic}}-{{partition}}-{{start_offset}}",
    }
    return made | {key.replace("_", "."): value for key, value in more.items()}


def bench(properties: Mapping[str, str], connector: type[SourceConnector[Any]] = S3SourceConnector) -> Bench:
    return Bench(connector, properties)


def write(bucket: Bucket, *batches: RecordBatch, **more: str) -> None:
    """Through our sink; every file is full."""
    properties = properties_of(bucket, flush_size="5", **more)
    task = sink_task(S3SinkConnector, properties)
    task.put(list(batches))
    task.stop()


def read(made: Bench, rows: int, number: int = 0, tasks: int = 1) -> list[RecordBatch]:
    with made.task(made.plan(tasks)[number], number) as running:
        batches = running.poll_rows(rows)
        batches += running.task.poll()
        made.commit(batches)
        return batches


def values(batches: list[RecordBatch]) -> list[Any]:
    return [record.value for each in batches for record in each.records()]


@pytest.mark.parametrize("name", ["AvroFormat", "ParquetFormat", "JsonFormat"])
def test_a_backup_goes_back_into_its_partitions(bucket: Bucket, name: str) -> None:
    """In the order of offsets, although in alphabetical order 9 comes after 10 where offsets are not padded."""
    parts = [batch([row(n) for n in range(start, start + 15)], start, partition=p) for p, start in ((0, 0), (3, 95))]
    write(bucket, *parts, format_class=name, filename_offset_zero_pad_width="1")
    batches = read(bench(properties_of(bucket, format_class=name)), 30)
    for part in parts:
        assert part.origin is not None
        mine = [
            each
            for each in batches
            if each.partitions is not None and each.partitions[0].as_py() == part.origin.partition
        ]
        assert [json.loads(v)["id"] if isinstance(v, str) else v["id"] for v in values(mine)] == part.column(
            "id"
        ).to_pylist()
    assert {each.topic for each in batches} == {"events"}
    if name == "AvroFormat":
        assert {each.value_schema for each in batches} == {parts[0].value_schema}


@pytest.mark.parametrize(
    "name, compression",
    [("AvroFormat", "none"), ("ParquetFormat", "none"), ("JsonFormat", "none"), ("JsonFormat", "gzip")],
)
def test_stored_keys_and_headers_are_read_back(bucket: Bucket, name: str, compression: str) -> None:
    """Files of tombstones have no values, and are left alone."""
    text = Schema(SchemaType.STRING)
    records = [
        dataclasses.replace(record, key=f"k{n}", key_schema=text, headers=(Header("n", str(n), text),) * (n % 3))
        for n, record in enumerate(batch([*(row(n) for n in range(10)), *[None] * 5]).records())
    ]
    beside = {
        "store_kafka_keys": "true",
        "keys_format_class": name,
        "store_kafka_headers": "true",
        "headers_format_class": name,
    }
    packed = {"s3_compression_type": compression, "behavior_on_null_values": "write"}
    write(bucket, RecordBatch.from_records(records), **packed, **beside)
    assert sum("/tombstone/" in each for each in bucket.objects()) == 2
    batches = read(bench(properties_of(bucket, record_batch_max_size="2", **beside)), 10)
    made = [record for each in batches for record in each.records()]
    assert [(each.key, each.headers) for each in made] == [(each.key, each.headers) for each in records[:10]]


def test_committed_objects_are_not_read_again_and_new_ones_are_found(bucket: Bucket) -> None:
    made = bench(properties_of(bucket, partitioner_class="HourlyPartitioner"))
    hours = [batch([row(n, at_ms=hour * 3_600_000) for n in range(5)], hour * 5) for hour in range(4)]
    by_hour = {"partitioner_class": "HourlyPartitioner", "timezone": "UTC", "timestamp_extractor": "Record"}
    write(bucket, hours[0], hours[2], **by_hour)
    assert len(values(read(made, 10))) == 10
    assert values(read(made, 0)) == []
    write(bucket, hours[1], hours[3], **by_hour)  # a folder in between is new as well
    batches = read(made, 10)
    assert [each.source_offset and each.source_offset["startOffset"] for each in batches] == [5, 15]


def test_any_objects_go_where_the_first_pattern_sends_them(bucket: Bucket) -> None:
    bucket.put("in/shop/a.json", b'{"n":1}\n{"n":2}\n')
    bucket.put("in/shop/b.json.gz", gzip.compress(b'{"n":3}'))
    bucket.put("in/other/c.json", b'{"n":4}\n')
    bucket.put("in/other/readme.txt", b"not json")
    bucket.put("elsewhere/d.json", b'{"n":5}\n')
    made = bench(properties_of(bucket, topics_dir="in", topic_regex_list=r"shop:.*/shop/.*,rest:.*\.json"))
    batches = read(made, 4)
    read_values = {(each.topic, record.value["n"]) for each in batches for record in each.records()}
    assert read_values == {("shop", 1), ("shop", 2), ("shop", 3), ("rest", 4)}


def test_tasks_share_the_objects(bucket: Bucket) -> None:
    for n in range(12):
        bucket.put(f"topics/{n}.json", b'{"n":%d}' % n)
    made = bench(properties_of(bucket, topic_regex_list="all:.*"))
    shares = []
    for number in range(3):
        with made.task(made.plan(3)[number], number) as running:
            shares.append({value["n"] for value in values(running.task.poll())})
    assert sorted(n for share in shares for n in share) == list(range(12))
    assert all(share < set(range(12)) for share in shares)


@pytest.mark.parametrize("behavior", ["fail", "ignore"])
def test_an_object_in_another_format_is_named(bucket: Bucket, behavior: str) -> None:
    bucket.put("topics/a.json", b'{"n":1}\n<xml/>\n')
    bucket.put("topics/b.json", b'{"n":2}\n')
    made = bench(properties_of(bucket, topic_regex_list="all:.*", behavior_on_error=behavior))
    with made.task() as running:
        if behavior == "fail":
            with pytest.raises(ConnectError, match=r"topics/a\.json cannot be read: record 2 is not JSON"):
                running.poll_rows(2)
        else:
            assert {"n": 2} in values(running.poll_rows(1))


def test_a_broken_gzip_is_the_objects_fault(bucket: Bucket) -> None:
    bucket.put("topics/a.json.gz", gzip.compress(b'{"n":1}' * 1000)[:20] + b"broken")
    with bench(properties_of(bucket, topic_regex_list="all:.*")).task() as running:
        with pytest.raises(ConnectError, match=r"topics/a\.json\.gz cannot be read: not gzip"):
            running.task.poll()


def test_a_failure_in_the_middle_loses_nothing(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket.put("topics/a.json", b"".join(b'{"n":%d}\n' % n for n in range(40)))
    monkeypatch.setattr("connectors.objects.formats.jsonl._BLOCK_BYTES", 64)
    read_on, calls = _Stream.read, iter(range(100))

    def read_or_fail(stream: _Stream, size: int | None = -1) -> bytes:
        if next(calls) in (2, 3):
            raise RetriableConnectError("for the moment")
        return read_on(stream, size)

    monkeypatch.setattr(_Stream, "read", read_or_fail)
    with bench(properties_of(bucket, topic_regex_list="all:.*")).task() as running:
        batches: list[RecordBatch] = []
        failures = 0
        while sum(map(len, batches)) < 40:
            try:
                batches += running.task.poll()
            except RetriableConnectError:
                failures += 1
    assert [value["n"] for value in values(batches)] == list(range(40))
    assert failures


def test_a_missing_bucket_is_said(bucket: Bucket) -> None:
    with bench(properties_of(bucket, s3_bucket_name="not-there")).task() as running:
        with pytest.raises(ConnectError, match="no bucket 'not-there'"):
            running.task.poll()


def test_aivens_template_says_topic_and_partition(bucket: Bucket) -> None:
    bucket.put("logs/orders-2-00010.jsonl", b'{"n":1}\n{"n":2}\n')
    bucket.put("logs/readme", b"")
    made = bench(aiven(bucket, aws_s3_prefix="logs/or"), AivenS3SourceConnector)
    (record,) = read(made, 2)
    assert record.topic == "orders"
    assert record.partitions is not None and record.partitions.to_pylist() == [2, 2]
    assert record.keys is not None and record.keys.to_pylist() == [b"logs/orders-2-00010.jsonl"] * 2
    assert record.source_partition == {"bucket": bucket.name, "objectKey": "logs/orders-2-00010.jsonl"}
    assert record.source_offset == {"recordCount": 2, "done": True}


def test_aivens_positions_are_gone_on_from(bucket: Bucket) -> None:
    bucket.put("x", b"abcdefgh")
    properties = aiven(
        bucket, input_format="bytes", transformer_max_buffer_size="3", topic="t", file_name_template=".*"
    )
    made = bench(properties, AivenS3SourceConnector)
    made._offsets[json.dumps({"bucket": bucket.name, "objectKey": "x"}, separators=(",", ":"))] = {"recordCount": 1}
    assert values(read(made, 2)) == [b"def", b"gh"]


@pytest.mark.parametrize(
    "change, key",
    [
        ({"format_class": "CsvFormat"}, "format.class"),
        ({"mode": "GENERIC"}, "topic.regex.list"),
        ({"topic_regex_list": "orders"}, "topic.regex.list"),
        ({"topic_regex_list": "orders:(("}, "topic.regex.list"),
        ({"store_url": "127.0.0.1:9000"}, "store.url"),
        ({"aws_secret_access_key": ""}, "aws.access.key.id"),
    ],
)
def test_validation_names_the_key(change: dict[str, str], key: str) -> None:
    properties = {
        "s3.bucket.name": "b",
        "format.class": "JsonFormat",
        "aws.access.key.id": "x",
        "aws.secret.access.key": "y",
    }
    properties |= {name.replace("_", "."): value for name, value in change.items()}
    judged = validate(S3SourceConnector.config_class, properties)
    assert [entry.key.name for entry in judged if entry.errors] == [key]


class TestBackup(SourceSuite):
    connector_class = S3SourceConnector

    @pytest.fixture
    def expected_rows(self) -> int:
        return 20

    @pytest.fixture
    def properties(self, bucket: Bucket) -> Mapping[str, str]:
        write(bucket, *(batch([row(n) for n in range(10)], partition=p) for p in range(2)), format_class="AvroFormat")
        return properties_of(bucket, format_class="AvroFormat", record_batch_max_size="3")


class TestAiven(SourceSuite):
    connector_class = AivenS3SourceConnector

    @pytest.fixture
    def expected_rows(self) -> int:
        return 12

    @pytest.fixture
    def properties(self, bucket: Bucket) -> Mapping[str, str]:
        for n in range(3):
            bucket.put(f"orders-0-{n}", b"".join(b'{"n":%d}\n' % m for m in range(4)))
        return aiven(bucket, max_poll_records="3")
