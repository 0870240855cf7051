"""The SFTP sink and the file source over SFTP, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connect.api import ConnectError, RetriableConnectError, TopicPartition
from connect.bench import Bench
from connectors import CONNECTORS
from connectors.folders.source import FileSourceConnector
from connectors.sftp.config import SftpSinkConfig
from connectors.sftp.sink import SftpSinkConnector
from tests.connectors.folders.test_file_source import committed, everything, polled, values
from tests.support.objects import batch, files_below, read_file, row
from tests.support.sftp import SftpServer, sftp_server
from tidegate.kit.config import parse, validate
from tidegate.kit.errors import ConfigError

P0 = TopicPartition("events", 0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SftpServer]:
    with sftp_server(tmp_path) as started:
        yield started


def sink_bench(server: SftpServer, **more: str) -> Bench:
    properties = {
        "topics": "events",
        "store.url": f"{server.url}/lake",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "3",
        **server.access,
    }
    return Bench(SftpSinkConnector, properties | {name.replace("_", "."): value for name, value in more.items()})


def ids(server: SftpServer) -> dict[str, list[int]]:
    root = server.root / "lake"
    names = [name for name in files_below(root) if name.endswith(".json") and not name.startswith("_logs")]
    return {name.rpartition("/")[2]: [each["id"] for each in read_file(root / name)] for name in names}


def test_files_are_written_once_and_the_sink_goes_on_where_it_was(server: SftpServer) -> None:
    made = sink_bench(server)
    with made.sink(P0) as running:
        running.task.put([batch([row(n) for n in range(7)])])
    assert ids(server) == {"events+0+0000000000.json": [0, 1, 2], "events+0+0000000003.json": [3, 4, 5]}
    with made.sink(P0) as running:
        assert running.context.rewinds == {P0: 5}, "the last stored record is read again, to see that it is the same"
        running.task.put([batch([row(n) for n in range(5, 9)], 5)])
        assert len(ids(server)) == 3
        server.drop()
        with pytest.raises(RetriableConnectError, match="cannot"):
            running.task.put([batch([row(n) for n in range(9, 12)], 9)])
        server.listen()
        running.task.put([batch([row(n) for n in range(9, 12)], 9)])
    assert sorted(number for each in ids(server).values() for number in each) == list(range(12))
    assert not list(server.root.rglob("*_tmp/**/*.json*")), "no temporary file stays"


def test_a_file_is_on_the_servers_disk_before_and_after_it_gets_its_name(server: SftpServer) -> None:
    with sink_bench(server).sink(P0) as running:
        running.task.put([batch([row(n) for n in range(3)])])
    file, log = "/lake/topics/events/partition=0/events+0+0000000000.json", "/lake/_logs/events/0/log.json"
    made = [note for note in server.notes if note[1] in (file, log)]
    assert made == [("to", log), ("fsync", log), ("to", file), ("fsync", file)]
    for at, (what, path) in enumerate(server.notes):
        if what == "from":
            assert ("fsync", path) in server.notes[:at], "its bytes are there before it has its name"


def test_a_file_of_which_one_write_has_failed_is_no_file(server: SftpServer) -> None:
    """The writes after it succeed, so the file has its size, and a gap."""
    long = "x" * 40_000
    rows = [{**row(n), "city": long} for n in range(3)]
    with sink_bench(server).sink(P0) as running:
        server.failing.add(32 * 1024)
        with pytest.raises(RetriableConnectError, match="cannot write.*this write fails"):
            running.task.put([batch(rows)])
        assert not server.failing and ids(server) == {}
        running.task.put([batch(rows)])
    assert ids(server) == {"events+0+0000000000.json": [0, 1, 2]}


@pytest.mark.parametrize("interrupted", ["log.json.new", "+0+0000000003.json_tmp"])
def test_a_server_that_cannot_replace_files_in_one_step_loses_no_commit(tmp_path: Path, interrupted: str) -> None:
    refused = [True]
    rows = [row(n) for n in range(9)]
    with sftp_server(tmp_path, lambda old, new: bool(refused) and old.endswith(interrupted)) as server:
        made = sink_bench(server)
        refused.clear()
        with made.sink(P0) as running:
            running.task.put([batch(rows[:3])])
        refused.append(True)
        with made.sink(P0) as running, pytest.raises(RetriableConnectError, match="not now"):
            running.task.put([batch(rows[3:6], 3)])
        refused.clear()
        with made.sink(P0) as running:
            start = running.context.rewinds[P0]
            running.task.put([batch(rows[start:], start)])
        assert sorted(number for each in ids(server).values() for number in each) == list(range(9))
        assert not list(server.root.rglob("*.replaced"))


def test_what_was_written_is_read_back_for_a_comparison(server: SftpServer) -> None:
    made = sink_bench(server)
    rows = batch([row(n) for n in range(6)])
    with made.sink(P0) as running:
        running.task.put([rows])
    with closing(made.unstarted().contents({})) as contents:
        contents.positions([P0])
        expected = [each for part in (contents.expected(rows), contents.rest()) for each in part]
        stored = list(contents.stored())
        assert [each.columns for each in stored] == [each.columns for each in expected]
        assert sum(map(len, stored)) == 6


def source_bench(server: SftpServer, pattern: str = ".*", **more: str) -> Bench:
    properties = {
        "topic": "rows",
        "input.path": f"{server.url}/in",
        "input.file.pattern": pattern,
        "file.minimum.age.ms": "0",
        "empty.poll.wait.ms": "1",
        **server.access,
    }
    return Bench(FileSourceConnector, properties | {name.replace("_", "."): value for name, value in more.items()})


def test_files_are_read_and_moved_once_their_rows_are_safe(server: SftpServer) -> None:
    (server.root / "in/deeper").mkdir(parents=True)
    (server.root / "done").mkdir()
    for n in range(3):
        (server.root / f"in/{n}.csv").write_text(f"id,name\n{n},x\n")
    (server.root / "in/deeper/4.csv").write_text("id,name\n4,x\n")
    key = {"sftp_password": "", "tls_pemfile": str(server.key), "tls_passphrase": "phrase"}
    made = source_bench(server, r".*\.csv", cleanup_policy="MOVE", finished_path=f"{server.url}/done", **key)
    with made.task() as running:
        batches = polled(running)
        assert [each["id"] for each in values(batches)] == [0, 1, 2]
        assert files_below(server.root / "in") == ["0.csv", "1.csv", "2.csv", "deeper/4.csv"]
        committed(made, running, batches)
    assert files_below(server.root / "in") == ["deeper/4.csv"]
    assert files_below(server.root / "done") == ["0.csv", "1.csv", "2.csv"]
    walking = source_bench(server, r".*\.csv", input_path_walk_recursively="true", cleanup_policy="DELETE")
    with walking.task() as running:
        committed(walking, running, polled(running))
    assert files_below(server.root / "in") == []


def test_large_files_are_read_in_blocks_and_at_any_place(server: SftpServer) -> None:
    (server.root / "in").mkdir()
    numbers = pa.table({"n": range(400_000), "text": [f"text {n}" for n in range(400_000)]})
    pq.write_table(numbers, server.root / "in/rows.parquet", compression="none")
    assert (server.root / "in/rows.parquet").stat().st_size > 3 * 1024 * 1024
    read = everything(source_bench(server, input_format="parquet"))
    assert pa.concat_arrays([each.values.field("n") for each in read if len(each)]).equals(
        numbers.column("n").combine_chunks()
    )


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"sftp.password": "other"}, "Authentication failed"),
        ({"sftp.known.hosts": "{empty}"}, "not found in known_hosts.*write its key to"),
        ({"sftp.known.hosts": "{other}"}, "does not match"),
        ({"tls.pemfile": "/no/such/key"}, "there is no file /no/such/key"),
        ({"store.url": "sftp://user@127.0.0.1:1/x"}, "cannot make folder"),
    ],
)
def test_logins_that_fail_are_told_by_validation(
    server: SftpServer, tmp_path: Path, wrong: dict[str, str], problem: str
) -> None:
    import re

    import asyncssh

    (tmp_path / "empty").write_text("")
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    (tmp_path / "other").write_text(f"[127.0.0.1]:{server.port} {other}")
    given = {name: value.format(empty=tmp_path / "empty", other=tmp_path / "other") for name, value in wrong.items()}
    config = parse(SftpSinkConfig, {**sink_bench(server).properties, **given})
    (told,) = SftpSinkConnector.check(config)
    assert told.key == "store.url" and re.search(problem, told.message), told.message
    assert list(SftpSinkConnector.check(parse(SftpSinkConfig, sink_bench(server).properties))) == []


def test_a_url_with_a_password_is_refused_and_a_missing_folder_is_told(server: SftpServer) -> None:
    secret = server.url.replace("user@", "user:pass@")
    problems = validate(SftpSinkConfig, {**sink_bench(server).properties, "store.url": f"{secret}/x"})
    assert any("set sftp.password" in str(problem) for problem in problems)
    for name in ("input.path", "finished.path", "error.path"):
        with pytest.raises(ConfigError, match=f"{name} has a password"):
            parse(FileSourceConnector.config_class, {**source_bench(server).properties, name: f"{secret}/x"})
    with source_bench(server).task() as running, pytest.raises(ConnectError, match="there is no folder sftp://"):
        running.task.poll()


LONG = [pytest.mark.proof, pytest.mark.long]
CONFLUENT = {"confluent.license": "", "confluent.topic.bootstrap.servers": "broker:9092", "tasks.max": "1"}


def confluent_server(server: SftpServer) -> dict[str, str]:
    login = {"sftp.username": "user", "sftp.password": server.access["sftp.password"]}
    known = {"sftp.known.hosts": server.access["sftp.known.hosts"]}
    return {"sftp.host": "127.0.0.1", "sftp.port": str(server.port), **login, **known, **CONFLUENT}


@pytest.mark.parametrize("key", ["", "plain", pytest.param("phrase", marks=LONG)])
def test_confluents_sink_runs_unchanged(server: SftpServer, key: str) -> None:
    import asyncssh

    login = {}
    if key:
        text = server.key.read_text()
        if key == "plain":
            text = asyncssh.import_private_key(text, "phrase").export_private_key().decode()
        login = {"sftp.password": "", "tls.private.key": text.replace("\n", "\\r\\n"), "tls.public.key": "ssh-rsa x"}
        login |= {"tls.passphrase": "phrase"} if key == "phrase" else {}
    properties = {
        "topics": "events",
        "partitioner.class": "io.confluent.connect.storage.partitioner.DefaultPartitioner",
        "schema.generator.class": "io.confluent.connect.storage.hive.schema.DefaultSchemaGenerator",
        "flush.size": "3",
        "schema.compatibility": "NONE",
        "format.class": "io.confluent.connect.sftp.sink.format.csv.CsvFormat",
        "storage.class": "io.confluent.connect.sftp.sink.storage.SftpSinkStorage",
        "sftp.working.dir": "/upload",
        **confluent_server(server),
        **login,
    }
    made = Bench(SftpSinkConnector, properties)
    assert list(SftpSinkConnector.check(parse(SftpSinkConfig, properties))) == []
    with made.sink(P0) as running:
        running.task.put([batch([row(n) for n in range(7)])])
    names = [name for name in files_below(server.root / "upload") if not name.startswith("_logs")]
    assert names == [f"topics/events/partition=0/events+0+000000000{n}.csv" for n in (0, 3)]


def test_a_path_may_begin_in_the_users_folder(server: SftpServer) -> None:
    properties = {"topics": "events", "format.class": "JsonFormat", "flush.size": "3", **confluent_server(server)}
    with Bench(SftpSinkConnector, properties | {"sftp.working.dir": "~/upload"}).sink(P0) as running:
        running.task.put([batch([row(n) for n in range(3)])])
    assert (server.root / "upload/topics/events/partition=0/events+0+0000000000.json").is_file()
    for wrong, problem in (
        ({"sftp.working.dir": "upload"}, "should be a whole path, or begin with ~"),
        ({"sftp.working.dir": "~", "store.url": f"{server.url}/x"}, "give store.url, or sftp.host"),
        ({"sftp.working.dir": "~", "kerberos.keytab.path": "/k"}, "log in with sftp.password or tls.pemfile"),
    ):
        with pytest.raises(ConfigError, match=problem):
            parse(SftpSinkConfig, properties | wrong)


SCHEMA = '{"name":"User","type":"STRUCT","isOptional":false,"fieldSchemas":{"id":{"type":"INT64","isOptional":false},"name":{"type":"STRING","isOptional":true}}}'


@pytest.mark.parametrize(
    ("kind", "more", "content", "expected"),
    [
        ("Csv", {"csv.first.row.as.header": "true", "schema.generation.enabled": "true"}, "id,name\n1,x\n",
         {"id": "1", "name": "x"}),
        ("Csv", {"csv.first.row.as.header": "false", "value.schema": SCHEMA, "csv.separator.char": "9"}, "1\tx\n",
         {"id": 1, "name": "x"}),
        pytest.param("Json", {"value.schema": SCHEMA}, '{"id":1,"name":"x"}\n', {"id": 1, "name": "x"}, marks=LONG),
        pytest.param("SchemaLessJson", {}, '{"id":1,"name":"x"}\n', '{"id":1,"name":"x"}', marks=LONG),
        pytest.param("BinaryFile", {}, "any", b"any", marks=LONG),
        ("Generic", {"input.file.parser.format": "SCHEMALESS_JSON"}, '{"id":1}\n', '{"id":1}'),
    ],
)  # fmt: skip
def test_confluents_sources_run_unchanged(
    server: SftpServer, kind: str, more: dict[str, str], content: str, expected: object
) -> None:
    for folder in ("input", "error", "finished"):
        (server.root / "upload" / folder).mkdir(parents=True)
    (server.root / "upload/input/source.data").write_text(content)
    properties = {
        "topics": "test_sftp_sink",
        "cleanup.policy": "MOVE",
        "empty.poll.wait.ms": "1",
        "behavior.on.error": "IGNORE",
        "input.path": "/upload/input",
        "error.path": "/upload/error",
        "finished.path": "/upload/finished",
        "input.file.pattern": "source.data",
        "kafka.topic": "sftp-testing-topic",
        **confluent_server(server),
        **more,
    }
    (plugin,) = (each for each in CONNECTORS if f"io.confluent.connect.sftp.Sftp{kind}SourceConnector" in each.names)
    connector_class = plugin.load()
    config = parse(connector_class.config_class, properties)
    assert list(connector_class.check(config)) == []
    made = Bench(connector_class, properties)
    with made.task() as running:
        batches = polled(running)
        assert [(each.topic, *each.values.to_pylist()) for each in batches if len(each)] == [
            ("sftp-testing-topic", expected)
        ]
        committed(made, running, batches)
    assert files_below(server.root / "upload") == ["finished/source.data"]
