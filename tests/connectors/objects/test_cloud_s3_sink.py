"""Confluent Cloud's S3_SINK: configurations from public repositories, and the objects they create in a real S3 server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from connect.plugins.registry import load_plugins
from connect.validation.unknown_keys import unknown_keys
from connect.validation.validation import validate_connector
from connectors.s3.cloud_config import CloudS3SinkConfig
from connectors.s3.config import S3SinkConfig
from connectors.s3.sink import CloudS3SinkConnector, S3SinkConnector
from tests.servers.s3 import S3Server
from tests.support.buckets import Bucket, bucket_on
from tests.support.connect import sink_task
from tests.support.objects import batch, row
from tidegate.kit.config import parse, validate

pytestmark = pytest.mark.servers

DAY_MS = 86_400_000
KEYS = {"kafka.auth.mode": "KAFKA_API_KEY", "kafka.api.key": "k", "kafka.api.secret": "s"}
AWS = {"aws.access.key.id": "a", "aws.secret.access.key": "b", "s3.bucket.name": "b"}
REAL = {
    "terraform-provider-confluent": {
        "topics": "orders", "input.data.format": "JSON", "connector.class": "S3_SINK", "name": "S3_SINKConnector_0",
        "kafka.auth.mode": "SERVICE_ACCOUNT", "kafka.service.account.id": "sa-1", "s3.bucket.name": "b",
        "output.data.format": "JSON", "time.interval": "DAILY", "flush.size": "1000", "tasks.max": "1", **AWS,
    },
    "cc-terraform": {
        "connector.class": "S3_SINK", "name": "S3_Sink", **KEYS, **AWS, "tasks.max": "1", "topics": "stock_trades",
        "input.data.format": "JSON", "output.data.format": "JSON", "topics.dir": "dedicated-cluster", "time.interval": "HOURLY",
        "flush.size": "100", "output.keys.format": "JSON", "output.headers.format": "JSON", "path.format": "YYYY/MM/dd/HH",
    },
    "kafka-docker-playground": {
        "connector.class": "S3_SINK", "name": "S3_SINK", **KEYS, "topics": "s3_topic", **AWS, "input.data.format": "AVRO",
        "output.data.format": "AVRO", "time.interval": "HOURLY", "flush.size": "1000", "schema.compatibility": "NONE",
        "tasks.max": "1",
    },
    "of 2020": {
        "name": "confluent-s3-sink", "connector.class": "S3_SINK", "kafka.api.key": "k", "kafka.api.secret": "s", **AWS,
        "data.format": "JSON", "time.interval": "HOURLY", "topics": "orders", "tasks.max": "1",
    },
}  # fmt: skip


@pytest.fixture
def bucket(s3_server: S3Server) -> Iterator[Bucket]:
    with bucket_on(s3_server) as made:
        yield made


@pytest.mark.parametrize("name", REAL)
def test_real_configurations_are_taken(name: str) -> None:
    judged = validate_connector(load_plugins(), REAL[name], check=False)
    assert judged.errors == []
    # Where the log is and whose credentials are used is the worker's matter.
    assert {key for key in dict(unknown_keys(judged, REAL[name])) if not key.startswith("kafka.")} == set()


def stored(bucket: Bucket, rows: list[Any], at_ms: int = 1_709_201_472_123, **more: str) -> dict[str, bytes]:
    settings = bucket.access | {"time.interval": "DAILY", "output.data.format": "JSON"}
    settings |= {key.replace("_", "."): value for key, value in more.items()}
    connector = CloudS3SinkConnector(parse(CloudS3SinkConfig, settings), settings, None)  # type: ignore[arg-type]
    (properties,) = connector.task_properties(1)
    assert CloudS3SinkConnector.task_config_class is S3SinkConfig
    task = sink_task(S3SinkConnector, properties)
    task.put([batch(rows, 0, times=[at_ms] * len(rows))])
    task.stop()
    return bucket.objects()


def test_folders_are_days_or_hours_of_the_record_s_time(bucket: Bucket) -> None:
    objects = stored(bucket, [row(n) for n in range(3)], flush_size="3")
    assert list(objects) == ["topics/events/year=2024/month=02/day=29/hour=00/events+0+0000000000.json"]
    assert [json.loads(line)["id"] for line in next(iter(objects.values())).splitlines()] == [0, 1, 2]


def test_hours_and_a_path_of_one_s_own(bucket: Bucket) -> None:
    more = {"time_interval": "hourly", "path_format": "YYYY/MM/dd/HH", "topics_dir": "x", "flush_size": "1"}
    assert list(stored(bucket, [row(1)], **more)) == ["x/events/2024/02/29/10/events+0+0000000000.json"]


def test_the_clouds_keys_become_the_platforms() -> None:
    def keys(**options: str) -> Any:
        return parse(CloudS3SinkConfig, AWS | {k.replace("_", "."): v for k, v in options.items()}).platform_keys

    made = keys(input_data_format="PROTOBUF")
    assert made["format.class"] == "io.confluent.connect.s3.format.avro.AvroFormat"
    assert (made["flush.size"], made["rotate.interval.ms"]) == ("1000", "3600000")
    assert (made["timestamp.extractor"], made["behavior.on.null.values"]) == ("Record", "ignore")
    made = keys(data_format="BYTES", time_interval="DAILY", timestamp_field="at", rotate_interval_ms="60000")
    assert made["format.class"] == "io.confluent.connect.s3.format.bytearray.ByteArrayFormat"
    assert (made["partition.duration.ms"], made["rotate.interval.ms"]) == (str(DAY_MS), "60000")
    assert (made["timestamp.extractor"], made["timestamp.field"]) == ("RecordField", "at")
    assert keys(output_data_format="parquet", input_data_format="AVRO")["format.class"].endswith(".ParquetFormat")


@pytest.mark.parametrize(
    ("overrides", "wrong"),
    [
        ({}, "output.data.format"),
        ({"output.data.format": "XML"}, "output.data.format"),
        ({"output.data.format": "JSON", "time.interval": "WEEKLY"}, "time.interval"),
        ({"output.data.format": "JSON", "authentication.method": "IAM Roles"}, "authentication.method"),
        ({"output.data.format": "JSON", "timezone": "Mars"}, "timezone"),
        ({"output.data.format": "JSON", "flush.size": "0"}, "flush.size"),
    ],
)
def test_wrong_keys_are_named(overrides: dict[str, str], wrong: str) -> None:
    assert [value.key.name for value in validate(CloudS3SinkConfig, AWS | overrides) if value.errors] == [wrong]
