"""The HDFS sink against a real HDFS; its files are read over WebHDFS."""

from __future__ import annotations

import io
import itertools
import json
import urllib.request
from typing import Any

import fastavro
import pytest

from connect.api import ConnectError, RetriableConnectError, TopicPartition
from connectors.hdfs.client import HdfsStore
from connectors.hdfs.config import HdfsSinkConfig
from connectors.hdfs.sink import HdfsSinkConnector
from tests.servers.hdfs import HdfsServer
from tests.support.connect import FakeContext, sink_task
from tests.support.objects import batch, row
from tidegate.kit.config import parse, validate

pytestmark = [pytest.mark.servers, pytest.mark.proof]
P0 = TopicPartition("events", 0)
_numbers = itertools.count()


class Folder:
    def __init__(self, server: HdfsServer) -> None:
        self.server, self.name = server, f"sink{next(_numbers)}"

    def properties(self, **more: str) -> dict[str, str]:
        properties = {
            "hdfs.url": self.server.url,
            "topics.dir": f"/{self.name}/topics",
            "logs.dir": f"/{self.name}/logs",
            "flush.size": "3",
        }
        return properties | {key.replace("_", "."): value for key, value in more.items()}

    def task(self, context: FakeContext | None = None, **more: str) -> Any:
        task = sink_task(HdfsSinkConnector, self.properties(**more), context)
        task.open([P0])
        return task

    def files(self, path: str = "") -> dict[str, bytes]:
        """Content by name of all files below the topic's folder."""
        base = f"{self.server.http_url}/webhdfs/v1/{self.name}/topics/events"
        contents = {}
        with urllib.request.urlopen(f"{base}{path}?op=LISTSTATUS", timeout=60) as response:
            for each in json.load(response)["FileStatuses"]["FileStatus"]:
                name = f"{path}/{each['pathSuffix']}"
                if each["type"] == "DIRECTORY":
                    contents |= self.files(name)
                else:
                    with urllib.request.urlopen(f"{base}{name.replace('+', '%2B')}?op=OPEN", timeout=60) as content:
                        contents[name] = content.read()
        return contents


@pytest.fixture
def folder(hdfs_server: HdfsServer) -> Folder:
    pytest.importorskip("hdfs_native")
    return Folder(hdfs_server)


def test_files_are_named_by_first_and_last_offset(folder: Folder) -> None:
    task = folder.task()
    task.put([batch([row(n) for n in range(7)], 10)])
    files = folder.files()
    assert list(files) == [
        "/partition=0/events+0+0000000010+0000000012.avro",
        "/partition=0/events+0+0000000013+0000000015.avro",
    ]
    records = list(fastavro.reader(io.BytesIO(files["/partition=0/events+0+0000000013+0000000015.avro"])))
    assert [record["id"] for record in records] == [3, 4, 5]
    assert task.pre_commit({P0: 17}) == {P0: 16}
    task.stop()


def test_a_restart_goes_on_where_the_store_is_and_not_the_group(folder: Folder) -> None:
    task = folder.task()
    task.put([batch([row(n) for n in range(6)])])
    task.stop()
    context = FakeContext()
    folder.task(context).stop()
    assert context.rewound == {P0: 5}  # the last one stored, to be recognized


def test_an_interrupted_commit_is_finished(folder: Folder) -> None:
    task = folder.task(partitioner_class="FieldPartitioner", partition_field_name="city")
    renamed = iter([True, True, False])
    rename = task._store._rename

    class Crash(BaseException):
        pass

    def crashing(old: str, new: str) -> None:
        if not next(renamed):
            raise Crash
        rename(old, new)

    task._store._rename = crashing
    with pytest.raises(Crash):
        task.put([batch([row(n) for n in range(3)])])
    task.stop()
    assert len(folder.files()) == 1
    context = FakeContext()
    folder.task(context).stop()
    assert context.rewound == {P0: 2}
    assert sorted(folder.files()) == [
        "/city=de/events+0+0000000000+0000000000.avro",
        "/city=fr/events+0+0000000001+0000000001.avro",
        "/city=null/events+0+0000000002+0000000002.avro",
    ]


def test_files_of_the_original_say_where_to_go_on(folder: Folder) -> None:
    task = folder.task()
    task.put([batch([row(n) for n in range(3)], 40)])
    task._store._client.delete(f"/{folder.name}/logs", recursive=True)
    task.stop()
    context = FakeContext()
    folder.task(context).stop()
    assert context.rewound == {P0: 43}


def test_a_file_system_that_is_away_is_retriable_and_told(folder: Folder) -> None:
    config = parse(HdfsSinkConfig, folder.properties(hdfs_url="hdfs://127.0.0.1:1"))
    (problem,) = HdfsSinkConnector.check(config)
    assert problem.key == "hdfs.url" and "hdfs://127.0.0.1:1" in problem.message
    assert list(HdfsSinkConnector.check(parse(HdfsSinkConfig, folder.properties()))) == []


def test_the_name_of_a_file_says_nothing_about_an_error(folder: Folder) -> None:
    task = folder.task()
    store = HdfsStore("hdfs://127.0.0.1:1", "/invalid_topics", "/logs")
    with pytest.raises(RetriableConnectError, match="cannot write .*Connection refused"):
        store._write("invalid_topics/standby/quota", b"x")
    task.stop()


def test_a_name_that_is_too_long_is_an_error_for_good(folder: Folder) -> None:
    store = HdfsStore(folder.server.url, "/topics", "/logs")
    with pytest.raises(ConnectError, match=": PathComponentTooLongException: The maximum") as raised:
        store._write(f"{folder.name}/{'n' * 300}", b"x")
    assert not isinstance(raised.value, RetriableConnectError) and "FSDirectory" not in str(raised.value)


def test_a_file_in_the_way_is_an_error(folder: Folder) -> None:
    task = folder.task()
    task._store._write(f"{folder.name}/topics", b"in the way")
    with pytest.raises((ConnectError, RetriableConnectError), match="cannot write"):
        task.put([batch([row(n) for n in range(3)])])
    task.stop()


def test_a_url_of_another_kind_is_refused() -> None:
    config = {"hdfs.url": "s3://x", "flush.size": "1", "hive.integration": "true"}
    wrong = {judged.key.name for judged in validate(HdfsSinkConfig, config) if judged.errors}
    assert wrong == {"hdfs.url", "hive.integration"}


@pytest.mark.parametrize(
    ("key", "value", "instead"),
    [
        ("connect.hdfs.principal", "connect@EXAMPLE.COM", "kinit -kt KEYTAB PRINCIPAL"),
        ("connect.hdfs.keytab", "/etc/connect.keytab", "kinit -kt KEYTAB PRINCIPAL"),
        ("hive.integration", "true", "MSCK REPAIR TABLE"),
    ],
)
def test_unsupported_settings_are_refused_with_an_alternative(key: str, value: str, instead: str) -> None:
    config = {"hdfs.url": "hdfs://127.0.0.1:1", "flush.size": "1", "format.class": "JsonFormat", key: value}
    (error,) = [
        error for judged in validate(HdfsSinkConfig, config) for error in judged.errors if judged.key.name == key
    ]
    assert instead in error
