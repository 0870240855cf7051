"""The file source over S3 and HDFS, on real servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from connect.api import ConnectError
from connect.bench import Bench
from connectors.folders.source import FileSourceConnector
from tests.connectors.folders.test_file_source import committed, everything, polled, values
from tests.servers.hdfs import HdfsServer
from tests.servers.s3 import S3Server
from tests.support.buckets import Bucket, bucket_on

pytestmark = pytest.mark.servers


@pytest.fixture
def bucket(s3_server: S3Server) -> Iterator[Bucket]:
    with bucket_on(s3_server) as made:
        yield made


def s3_bench(bucket: Bucket, folder: str, **more: str) -> Bench:
    access = {name: value for name, value in bucket.access.items() if name not in ("s3.bucket.name", "s3.part.retries")}
    properties = {
        "topic": "rows",
        "input.path": f"s3://{bucket.name}/{folder}",
        "input.file.pattern": r".*\.csv(\.gz)?",
        "file.minimum.age.ms": "0",
        "empty.poll.wait.ms": "1",
        **access,
    }
    return Bench(FileSourceConnector, properties | more)


def test_objects_are_read_and_moved_once_their_rows_are_safe(bucket: Bucket) -> None:
    for n in range(3):
        bucket.put(f"in/{n}.csv", b"id,name\n%d,x\n" % n)
    bucket.put("in/deeper/4.csv", b"id,name\n4,x\n")
    made = s3_bench(bucket, "in", **{"cleanup.policy": "MOVE", "finished.path": f"s3://{bucket.name}/done"})
    with made.task() as running:
        batches = polled(running)
        assert [row["id"] for row in values(batches)] == [0, 1, 2]
        assert set(bucket.objects()) == {"in/0.csv", "in/1.csv", "in/2.csv", "in/deeper/4.csv"}
        committed(made, running, batches)
    assert set(bucket.objects()) == {"done/0.csv", "done/1.csv", "done/2.csv", "in/deeper/4.csv"}


def test_names_behind_the_last_one_are_listed_alone(bucket: Bucket) -> None:
    for n in range(3):
        bucket.put(f"in/{n}.csv", b"id\n%d\n" % n)
    made = s3_bench(bucket, "in", **{"files.names.ascend": "true"})
    assert [row["id"] for row in values(everything(made))] == [0, 1, 2]
    bucket.put("in/00.csv", b"id\n7\n")
    bucket.put("in/3.csv", b"id\n3\n")
    with made.task() as running:
        assert [file.name for file in running.task._folder.list("2.csv")] == ["3.csv"]
        assert [row["id"] for row in values(polled(running))] == [3]


def test_a_bucket_that_is_not_there_is_told(bucket: Bucket) -> None:
    made = s3_bench(bucket, "in")
    made.properties["input.path"] = "s3://no-such-bucket/in"
    with made.task() as running, pytest.raises(ConnectError, match="cannot list s3://no-such-bucket/in"):
        running.task.poll()


@pytest.mark.proof
def test_files_of_hdfs_are_read_and_moved(hdfs_server: HdfsServer) -> None:
    from hdfs_native import Client, WriteOptions

    client = Client(hdfs_server.url)
    for n in range(2):
        with client.create(f"/spool/in/{n}.csv", WriteOptions(overwrite=True, create_parent=True)) as file:
            file.write(b"id\n%d\n" % n)
    properties = {
        "topic": "rows",
        "input.path": f"{hdfs_server.url}/spool/in",
        "input.file.pattern": r".*\.csv",
        "file.minimum.age.ms": "0",
        "empty.poll.wait.ms": "1",
        "cleanup.policy": "MOVE",
        "finished.path": f"{hdfs_server.url}/spool/done",
    }
    assert [row["id"] for row in values(everything(Bench(FileSourceConnector, properties)))] == [0, 1]
    assert sorted(status.path for status in client.list_status("/spool/done")) == [
        "/spool/done/0.csv",
        "/spool/done/1.csv",
    ]
    assert not list(client.list_status("/spool/in"))
