"""The sinks to Azure and Google, and the sources from there: Azure on Azurite, Google on a server with its XML API."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from connect.api import ConnectError, RetriableConnectError, Schema, SchemaType, TopicPartition
from connect.bench import Bench
from connectors.azure.config import AzureBlobSinkConfig
from connectors.azure.sink import AzureBlobStorageSinkConnector
from connectors.azure.source import AzureBlobStorageSourceConnector
from connectors.azure.source_config import AzureBlobSourceConfig
from connectors.folders.source import FileSourceConnector
from connectors.gcs.config import GcsSinkConfig
from connectors.gcs.sink import GcsSinkConnector
from connectors.gcs.source import GcsSourceConnector
from connectors.gcs.source_config import GcsSourceConfig
from tests.connectors.folders.test_file_source import committed, polled, values
from tests.servers.azure import AzureServer
from tests.servers.s3 import S3Server
from tests.support.buckets import bucket_on
from tests.support.gcs import gcs_server
from tests.support.objects import batch, row
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError

pytestmark = pytest.mark.servers

P0 = TopicPartition("events", 0)
_numbers = itertools.count()


@dataclass
class Cloud:
    """A bucket, how it is reached, and what is in it by somebody else's client. ``missing`` names one that is not there."""

    connector: type[Any]
    source_connector: type[Any]
    url: str
    access: Mapping[str, str]
    bucket: Mapping[str, str]
    missing: Mapping[str, str]
    objects: Callable[[], dict[str, bytes]]

    def sink(self, **more: str) -> Bench:
        properties = {"topics": "events", "format.class": "JsonFormat", "flush.size": "3", **self.access, **self.bucket}
        return Bench(self.connector, properties | {name.replace("_", "."): value for name, value in more.items()})

    def source(self, **more: str) -> Bench:
        polls = {"azblob.poll.interval.ms": "1", "gcs.poll.interval.ms": "1"}
        properties = {"format.class": "JsonFormat", **polls, **self.access, **self.bucket}
        return Bench(
            self.source_connector, properties | {name.replace("_", "."): value for name, value in more.items()}
        )


def azure_access(server: AzureServer, url: str) -> dict[str, str]:
    return {"azblob.account.name": server.account, "azblob.account.key": server.key, "store.url": url}


@pytest.fixture(params=["google", pytest.param("azure", marks=[pytest.mark.proof, pytest.mark.long])])
def cloud(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    if request.param == "azure":
        server: AzureServer = request.getfixturevalue("azure_server")
        name = f"box-{next(_numbers)}"
        server.create_container(name)
        yield Cloud(
            AzureBlobStorageSinkConnector,
            AzureBlobStorageSourceConnector,
            f"az://{name}",
            azure_access(server, server.endpoint_url),
            {"azblob.container.name": name, "azblob.retry.retries": "0"},
            {"azblob.container.name": "nothing"},
            lambda: server.blobs(name),
        )
        return
    s3: S3Server = request.getfixturevalue("s3_server")
    with bucket_on(s3) as bucket, gcs_server(s3) as google:
        yield Cloud(
            GcsSinkConnector,
            GcsSourceConnector,
            f"gs://{bucket.name}",
            {"gcs.credentials.json": google.credentials, "store.url": google.endpoint_url},
            {"gcs.bucket.name": bucket.name, "gcs.part.retries": "0"},
            {"gcs.bucket.name": "nothing"},
            bucket.objects,
        )


def test_files_are_made_again_alike_and_read_back(cloud: Cloud) -> None:
    rows = [row(n) for n in range(7)]
    made = cloud.sink(topics_dir="a place/é+1")
    with made.sink(P0) as running:
        running.task.put([batch(rows)])
        assert running.task.pre_commit({P0: 7}) == {P0: 6}
    before = cloud.objects()
    folder = "a place/é+1/events/partition=0"
    assert sorted(before) == [f"{folder}/events+0+0000000000.json", f"{folder}/events+0+0000000003.json"]
    assert [json.loads(line)["id"] for line in before[f"{folder}/events+0+0000000003.json"].splitlines()] == [3, 4, 5]
    with made.sink(P0) as running:  # from the offset committed before a crash, in other batches
        for first in range(0, 6, 2):
            running.task.put([batch(rows[first : first + 2], first)])
    assert cloud.objects() == before
    with closing(made.unstarted().contents({})) as contents:
        contents.positions([P0])
        expected = [*contents.expected(batch(rows[:6])), *contents.rest()]
        assert [each.columns for each in contents.stored()] == [each.columns for each in expected]


def test_a_large_file_goes_in_parts_and_arrives_whole(cloud: Cloud) -> None:
    parts = [os.urandom(1 << 20) for _ in range(20)]
    values = pa.array(parts, pa.binary())
    rows = batch([row(n) for n in range(20)]).replace(values=values, value_schema=Schema(SchemaType.BYTES))
    made = cloud.sink(format_class="ByteArrayFormat", flush_size="20", format_bytearray_separator="")
    with made.sink(P0) as running:
        running.task.put([rows])
    assert list(cloud.objects().values()) == [b"".join(parts)]


def test_values_that_cannot_name_a_folder_are_refused(cloud: Cloud) -> None:
    wrong = ["a\nb", "a/../b", "x" * 701, *(["a\\b", "a."] if cloud.url.startswith("az:") else [])]
    fine = ["%41", "a b", "ö#?&*[]{}^~|<>'\"", "x" * 200]
    rows = [{"id": n, "city": city, "at": 0} for n, city in enumerate([*wrong, *fine])]
    made = cloud.sink(partitioner_class="FieldPartitioner", partition_field_name="city", flush_size="50")
    made.properties["errors.tolerance"] = "all"
    with made.sink(P0) as running:
        running.task.put([batch(rows)])
        running.task.finish()
        assert len(running.context.errant) == len(wrong)
    folders = {name.removeprefix("topics/events/city=").rpartition("/")[0] for name in cloud.objects()}
    assert folders == set(fine)


def test_what_is_wrong_is_told_for_good_and_what_passes_is_tried_again(cloud: Cloud) -> None:
    made = cloud.sink()
    made.properties.update(cloud.missing)
    with (
        made.sink(P0) as running,
        pytest.raises(ConnectError, match="there is no (bucket|container) (gs|az)://nothing"),
    ):
        running.task.put([batch([row(n) for n in range(3)])])
    made = cloud.sink()
    if cloud.url.startswith("gs:"):
        account = json.loads(made.properties["gcs.credentials.json"])
        made.properties["gcs.credentials.json"] = json.dumps({**account, "gcs_base_url": "http://127.0.0.1:1"})
        made.properties["store.url"] = "http://127.0.0.1:1"
    else:
        made.properties["store.url"] = "http://127.0.0.1:1/devstoreaccount1"
    with made.sink(P0) as running, pytest.raises(RetriableConnectError, match="cannot write (gs|az)://.*events"):
        running.task.put([batch([row(n) for n in range(3)])])


def test_files_are_read_and_moved_once_their_rows_are_safe(cloud: Cloud) -> None:
    with cloud.sink(topics_dir="in").sink(P0) as running:
        running.task.put([batch([row(n) for n in range(9)])])
    made = Bench(
        FileSourceConnector,
        {
            "topic": "rows",
            "input.path": f"{cloud.url}/in/events",
            "input.path.walk.recursively": "true",
            "input.file.pattern": r".*\.json",
            "input.format": "json",
            "file.minimum.age.ms": "0",
            "empty.poll.wait.ms": "1",
            "cleanup.policy": "MOVE",
            "finished.path": f"{cloud.url}/done",
            **cloud.access,
        },
    )
    with made.task() as running:
        batches = polled(running)
        assert [each["id"] for each in values(batches)] == list(range(9))
        committed(made, running, batches)
    assert sorted(cloud.objects()) == [f"done/partition=0/events+0+000000000{n}.json" for n in (0, 3, 6)]


@pytest.mark.parametrize("format_class", ["ParquetFormat", "JsonFormat"])
def test_what_the_sink_wrote_goes_back_and_goes_on_where_it_was(cloud: Cloud, format_class: str) -> None:
    written = {"format_class": format_class, "store_kafka_keys": "true", "keys_format_class": format_class}
    packed = {"gcs_compression_type": "gzip", "az_compression_type": "gzip"} if format_class == "JsonFormat" else {}
    for number in (0, 2):
        part = batch([row(n) for n in range(9)], partition=number)
        part = part.replace(keys=pa.array([f"k{n}" for n in range(9)]), key_schema=Schema(SchemaType.STRING))
        with cloud.sink(**written, **packed).sink(TopicPartition("events", number)) as running:
            running.task.put([part])
    made = cloud.source(mode="RESTORE_BACKUP", record_batch_max_size="2", **written)
    with made.task() as running:
        made.commit(running.poll_rows(18)[:1])  # killed in the middle of a file
    with made.task() as running:
        batches = running.poll_rows(16)
        assert running.task.poll() == []
        made.commit(batches)
    got = [(record.partition, record.key, ids(record.value)) for each in batches for record in each.records()]
    assert sorted(got) == [(part, f"k{n}", n) for part in (0, 2) for n in range(9)][2:]
    with made.task() as running:
        assert running.task.poll() == []


def ids(value: Any) -> int:
    return int((json.loads(value) if isinstance(value, str) else value)["id"])


def test_any_objects_go_where_a_pattern_sends_them(cloud: Cloud) -> None:
    with cloud.sink(topics_dir="in").sink(P0) as running:
        running.task.put([batch([row(n) for n in range(3)])])
    made = cloud.source(
        mode="GENERIC",
        topics_dir="in",
        topic_regex_list="other:.*\\.csv,rows:.*\\.json",
        format_class="io.confluent.connect.cloud.storage.source.format.CloudStorageJsonFormat",
    )
    with made.task() as running:
        batches = running.poll_rows(3)
    assert {each.topic for each in batches} == {"rows"}
    assert [ids(record.value) for each in batches for record in each.records()] == [0, 1, 2]
    made.properties.update(cloud.missing)
    with made.task() as running, pytest.raises(ConnectError, match="nothing"):
        running.task.poll()


@pytest.mark.proof
@pytest.mark.long
def test_a_wrong_key_is_told(azure_server: AzureServer) -> None:
    access = azure_access(azure_server, azure_server.endpoint_url) | {"azblob.account.key": "QUJD"}
    azure_server.create_container("locked")
    properties = {
        "topics": "events",
        "format.class": "JsonFormat",
        "flush.size": "1",
        "azblob.container.name": "locked",
    }
    with Bench(AzureBlobStorageSinkConnector, properties | access).sink(P0) as running:
        with pytest.raises(
            ConnectError, match="cannot write az://locked/.*: 403 Forbidden, AuthorizationFailure: Server failed"
        ) as told:
            running.task.put([batch([row(1)])])
    assert not isinstance(told.value, RetriableConnectError)
    assert "QUJD" not in str(told.value)


@pytest.mark.parametrize(
    ("config", "given", "problem"),
    [
        (AzureBlobSinkConfig, {"store.url": "127.0.0.1:10000"}, "should look like http://127.0.0.1:10000/me"),
        (AzureBlobSinkConfig, {"azblob.sas.token": "sv=1"}, "give one of azblob.account.key and azblob.sas.token"),
        (AzureBlobSinkConfig, {"azblob.account.name": ""}, "azblob.account.name"),
        (AzureBlobSinkConfig, {"azblob.proxy.url": "proxy"}, "should look like http://proxy:3128"),
        (GcsSinkConfig, {"gcs.credentials.json": "{"}, "gcs.credentials.json is not JSON"),
        (GcsSinkConfig, {"gcs.credentials.path": "key.json"}, "should be an absolute path"),
        (
            GcsSinkConfig,
            {"gcs.credentials.path": "/k", "gcs.credentials.json": "{}"},
            "give one of gcs.credentials.path",
        ),
        (GcsSinkConfig, {"gcs.credentials.provider.class": "org.Mine"}, "a class of one's own cannot be loaded"),
        (GcsSourceConfig, {"mode": "GENERIC"}, "mode GENERIC needs topic.regex.list"),
        (GcsSourceConfig, {"gcs.credentials.provider.class": "org.Mine"}, "a class of one's own cannot be loaded"),
        (AzureBlobSourceConfig, {"format.class": "x.CloudStorageCsvFormat"}, "Class must be one of"),
        (AzureBlobSourceConfig, {"azblob.sas.token": "sv=1"}, "give one of azblob.account.key and azblob.sas.token"),
    ],
)
def test_configurations_that_cannot_work_are_refused(config: type[Any], given: dict[str, str], problem: str) -> None:
    right = {"format.class": "JsonFormat", "flush.size": "1", "azblob.account.name": "me", "azblob.account.key": "QUJD"}
    right |= {"gcs.bucket.name": "box"}
    with pytest.raises(ConfigError, match=problem):
        parse(config, right | given)


def test_configurations_of_the_originals_run_unchanged() -> None:
    common = {"flush.size": "3", "confluent.license": "", "confluent.topic.bootstrap.servers": "broker:9092"}
    azure = {
        "azblob.account.name": "me",
        "azblob.account.key": "QUJD",
        "azblob.container.name": "box",
        "azblob.retry.type": "EXPONENTIAL",
        "azblob.retry.retries": "5",
        "azblob.retry.max.backoff.ms": "120000",
        "azblob.block.size": "26214400",
        "storage.class": "io.confluent.connect.azure.blob.storage.AzureBlobStorage",
        "format.class": "io.confluent.connect.azure.blob.format.avro.AvroFormat",
        "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
        "path.format": "'year'=YYYY/'month'=MM",
        "partition.duration.ms": "3600000",
        "locale": "en-US",
        "timezone": "UTC",
    }
    google = {
        "gcs.bucket.name": "box",
        "gcs.part.size": "5242880",
        "gcs.credentials.path": "/root/keyfiles/keyfile.json",
        "storage.class": "io.confluent.connect.gcs.storage.GcsStorage",
        "format.class": "io.confluent.connect.gcs.format.parquet.ParquetFormat",
        "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
        "schema.compatibility": "NONE",
    }
    assert parse(AzureBlobSinkConfig, common | azure).settings == {"account_name": "me", "account_key": "QUJD"}
    assert parse(GcsSinkConfig, common | google).settings == {"service_account": "/root/keyfiles/keyfile.json"}
