"""A backup of a cluster, restored to another: records, positions and schemas are the same, whatever the log has gone through."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from broker.client import ClientConfig, NewTopic, TopicPartition
from broker.client.blocking import Admin, BatchConsumer, BatchProducer
from registry.client import RegistryClient
from tests.support.broker import BrokerThread, settings
from tests.support.registry import RegistryThread
from tidegate.backup.manifest import points, read_point
from tidegate.backup.records import file_tables
from tidegate.backup.restoring import check_target, make_topics, restore_records
from tidegate.backup.store import BackupStore
from tidegate.backup.taking import READING, begin_point, take_records
from tidegate.cli import tidegate

ORDERS, STATES, QUIET = "backed.orders", "backed.states", "backed.quiet"
LARGE: Final = b"x" * 2_000_000


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a home without a platform."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEGATE_CONTEXTS", str(tmp_path / "contexts.json"))


@pytest.fixture
def target(tmp_path: Path) -> Iterator[BrokerThread]:
    with BrokerThread(settings(tmp_path / "target", auto_create_topics_enable="false")) as broker:
        yield broker


def run(*arguments: str, fails: bool = False) -> Any:
    result = CliRunner().invoke(tidegate, [*arguments, "--json"])
    assert (result.exit_code != 0) == fails, (result.output, result.exception)
    lines = result.stdout.splitlines(keepends=True)
    begin = next(n for n, line in enumerate(lines) if line[0] in "[{")  # servers of the test may log before it
    return json.loads("".join(lines[begin:]))


def fill(servers: str) -> None:
    """Records with and without keys, values and headers; an empty partition; records deleted at the front; transactions of
    which one is aborted; a record of 2 MB; positions of groups at several places.
    """
    config = ClientConfig(servers)
    with Admin(config) as admin:
        admin.create_topics(
            [
                NewTopic(ORDERS, 3, configs={"max.message.bytes": "4000000", "retention.ms": "300000000"}),
                NewTopic(STATES, 1, configs={"cleanup.policy": "compact"}),
                NewTopic(QUIET, 2),
            ]
        )
        large = config.with_properties({"max.request.size": "4000000"})
        with BatchProducer(large) as producer:
            for n in range(50):
                producer.enqueue(ORDERS, b"k%d" % n, b"v%d" % n, [("h", b"%d" % n)], partition=0, timestamp_ms=1000 + n)
            producer.send(ORDERS, None, LARGE, [("none", None), ("h", b"")], partition=0, timestamp_ms=7)
            for n in range(6):
                producer.send(STATES, b"s%d" % (n % 2), None if n == 4 else b"state %d" % n, partition=0)
        admin.delete_records({TopicPartition(ORDERS, 0): 10})
        _transactions(config)
        positions = {"billing": {TopicPartition(ORDERS, 0): 30, TopicPartition(ORDERS, 1): 9}}
        positions["slow"] = {TopicPartition(ORDERS, 0): 3}  # behind what was deleted
        positions["done"] = {TopicPartition(ORDERS, 1): 16, TopicPartition(STATES, 0): 6}
        for group, offsets in positions.items():
            admin.alter_group_offsets(group, offsets, dict.fromkeys(offsets, f"note of {group}"))
        admin.alter_share_group_offsets("workers", {TopicPartition(ORDERS, 0): 31, TopicPartition(QUIET, 1): 0})


def _transactions(config: ClientConfig) -> None:
    """Offsets 0-3 committed, 4 a marker, 5-8 aborted, 9 a marker, 10-13 committed, 14 a marker."""
    with BatchProducer(config.with_properties({"transactional.id": "backed-up"})) as producer:
        for number, kept in enumerate((True, False, True)):
            producer.begin_transaction()
            for n in range(4):
                producer.enqueue(ORDERS, None, b"t%d.%d" % (number, n), partition=1, timestamp_ms=5)
            producer.flush()
            if kept:
                producer.commit_transaction()
            else:
                producer.abort_transaction()


def contents(servers: str, topic: str, partition: int = 0) -> list[tuple[Any, ...]]:
    """Committed records: offset, time, key, value, headers."""
    config = ClientConfig(servers, {"isolation.level": "read_committed"})
    tp = TopicPartition(topic, partition)
    with Admin(config) as admin, BatchConsumer(config) as consumer:
        position, end = admin.beginning_offsets([tp])[tp], admin.end_offsets([tp])[tp]
        consumer.assign([tp])
        consumer.seek(tp, position)
        records: list[tuple[Any, ...]] = []
        while position < end:
            for fetched in consumer.fetch(500):
                position = fetched.next_offset
                records += [(r.offset, r.timestamp_ms, r.key, r.value, r.headers) for r in fetched.records()]
    return records


def same(source: str, target: str) -> None:
    for topic, partition in ((ORDERS, 0), (ORDERS, 1), (ORDERS, 2), (STATES, 0), (QUIET, 1)):
        before, after = contents(source, topic, partition), contents(target, topic, partition)
        assert [record[1:] for record in after] == [record[1:] for record in before]
        assert [record[0] for record in after] == list(range(len(before)))


def test_a_backup_is_restored_to_another_cluster(
    tidegate_broker: Any, target: BrokerThread, tmp_path: Path, elsewhere: None
) -> None:
    source, place = tidegate_broker.bootstrap_servers, str(tmp_path / "place")
    fill(source)
    chosen = ("--topic", "backed.*")
    first = run("backup", place, "--bootstrap-servers", source, *chosen)
    assert (first["topics"], first["written"]) == (3, 41 + 8 + 6)
    assert run("backup", place, "--bootstrap-servers", source, *chosen)["written"] == 0
    with BatchProducer(ClientConfig(source)) as producer:
        producer.send(ORDERS, b"later", b"one more", partition=2)
    assert run("backup", place, "--bootstrap-servers", source, *chosen)["written"] == 1
    duckdb = pytest.importorskip("duckdb")
    rows = f"read_parquet('{place}/records/*/*/*.parquet', hive_partitioning = true)"
    counted = dict(duckdb.sql(f"SELECT topic, count(*) FROM {rows} GROUP BY topic").fetchall())
    assert counted == {ORDERS: 50, STATES: 6}
    assert all(path.stat().st_mode & 0o077 == 0 for path in Path(place).rglob("*.*") if path.is_file())

    with Admin(ClientConfig(source)) as admin:  # the first file has more than what is left
        admin.delete_records({TopicPartition(ORDERS, 0): 25})
    store = BackupStore(place)
    assert run("backup", place, "--bootstrap-servers", source, *chosen, "--full")["written"] == 41
    assert run("backup", place, "--bootstrap-servers", source, *chosen)["written"] == 0
    with Admin(ClientConfig(source)) as admin:
        admin.delete_records({TopicPartition(ORDERS, 0): 27})
    assert run("backup", place, "--bootstrap-servers", source, *chosen)["written"] == 0
    for known in points(store):  # also what came before --full can be read
        assert sum(len(b) for *_, file in read_point(store, known).files() for b in file_tables(store, file)) >= 41

    there = ("--bootstrap-servers", target.bootstrap_servers)
    dry = run("restore", place, *there)
    assert not dry["executed"] and ["topics", "fill 3 topics with 39 records"] in dry["changes"]
    with Admin(ClientConfig(target.bootstrap_servers)) as admin:
        assert admin.list_topics() == []
    done = run("restore", place, *there, *chosen, "--execute")
    assert (done["written"], done["compared"], done["differing"], done["problems"]) == (39, True, 0, [])
    same(source, target.bootstrap_servers)
    with Admin(ClientConfig(target.bootstrap_servers)) as admin:
        billing = admin.group_offsets_with_notes("billing")
        assert billing == {
            TopicPartition(ORDERS, 0): (3, "note of billing"),
            TopicPartition(ORDERS, 1): (4, "note of billing"),
        }
        assert admin.share_group_offsets("workers") == {TopicPartition(ORDERS, 0): 4, TopicPartition(QUIET, 1): 0}
        assert admin.group_offsets("slow") == {TopicPartition(ORDERS, 0): 0}
        assert admin.group_offsets("done") == {TopicPartition(ORDERS, 1): 8, TopicPartition(STATES, 0): 6}
        set_ = {n: e.value for n, e in admin.describe_configs(ORDERS).items() if e.source == "DYNAMIC_TOPIC_CONFIG"}
        assert set_ == {"max.message.bytes": "4000000", "retention.ms": "300000000"}
        assert admin.describe_configs(STATES)["cleanup.policy"].value == "compact"
    refused = CliRunner().invoke(tidegate, ["restore", place, *there, *chosen, "--execute"])
    assert "has 33 records" in str(refused.exception) and "--resume" in str(refused.exception)

    # what is there already is not written again, and a record that nobody backed up is found
    assert run("restore", place, *there, *chosen, "--execute", "--resume")["written"] == 0
    assert len(run("restore", place, "--list")) == 6
    with (
        Admin(ClientConfig(target.bootstrap_servers)) as admin,
        BatchProducer(ClientConfig(target.bootstrap_servers)) as producer,
    ):
        admin.delete_topics([STATES])
        admin.create_topics([NewTopic(STATES, 1)])
        producer.send(STATES, b"s0", b"of somebody else", partition=0)
    wrong = run("restore", place, *there, *chosen, "--execute", "--resume", fails=True)
    assert any(problem.startswith(f"{STATES}-0: offsets 0 to 5 differ") for problem in wrong["problems"])
    assert wrong["differing"] == 1


def test_a_backup_of_ours_is_restored_to_apache_kafka(
    tidegate_broker: Any, apache_kafka: Any, tmp_path: Path, elsewhere: None
) -> None:
    source, place, topic = tidegate_broker.bootstrap_servers, str(tmp_path / "place"), "backed-apache"
    there = ("--bootstrap-servers", apache_kafka.bootstrap_servers)
    with Admin(ClientConfig(source)) as admin, BatchProducer(ClientConfig(source)) as producer:
        admin.create_topics([NewTopic(topic, 1, configs={"retention.ms": "1000000000"})])
        began_ms = int(time.time() * 1000)  # what is older than its retention goes at any time
        for n in range(20):
            key, value = None if n % 3 else b"k", None if n % 7 == 1 else b"v%d" % n
            producer.send(topic, key, value, [("h", None)], timestamp_ms=began_ms + n)
        admin.delete_records({TopicPartition(topic, 0): 4})
        admin.alter_group_offsets("backed-apache", {TopicPartition(topic, 0): 9})
        admin.alter_share_group_offsets("backed-apache-share", {TopicPartition(topic, 0): 11})
    run("backup", place, "--bootstrap-servers", source, "--topic", topic)
    assert run("restore", place, *there, "--execute")["problems"] == []
    before, after = contents(source, topic), contents(apache_kafka.bootstrap_servers, topic)
    assert [record[1:] for record in after] == [record[1:] for record in before]
    with Admin(ClientConfig(apache_kafka.bootstrap_servers)) as admin:
        assert admin.group_offsets("backed-apache") == {TopicPartition(topic, 0): 5}
        assert admin.share_group_offsets("backed-apache-share") == {TopicPartition(topic, 0): 7}
        assert admin.describe_configs(topic)["retention.ms"].value == "1000000000"
    again = str(tmp_path / "again")
    taken = run("backup", again, *there, "--topic", topic)
    assert (taken["written"], taken["groups"]) == (16, 2)


def test_an_interrupted_backup_and_restore_go_on(
    tidegate_broker: Any, target: BrokerThread, tmp_path: Path, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, place, topic = tidegate_broker.bootstrap_servers, str(tmp_path / "place"), "backed-twice"
    with Admin(ClientConfig(source)) as admin, BatchProducer(ClientConfig(source)) as producer:
        admin.create_topics([NewTopic(topic, 2, configs={"cleanup.policy": "compact"})])
        for n in range(100):
            producer.enqueue(topic, b"k%d" % (n % 5), b"v%d" % n, partition=n % 2, timestamp_ms=n)
        producer.flush()
    store = BackupStore(place)
    config = ClientConfig(target.bootstrap_servers)

    def die(done: int, total: int, note: str) -> None:
        raise KeyboardInterrupt

    def die_in_second(done: int, total: int, note: str) -> None:
        if note == f"{topic}-1":
            raise KeyboardInterrupt

    monkeypatch.setattr("tidegate.backup.taking._NOTE_S", 0.0)
    reading = ClientConfig(source, READING)
    with Admin(reading) as admin, pytest.raises(KeyboardInterrupt):
        take_records(reading, admin, store, begin_point(admin), [topic], full=False, progress=die_in_second)
    assert points(store) == []
    assert run("backup", place, "--bootstrap-servers", source, "--topic", topic)["written"] == 50
    point = read_point(store)
    with Admin(config) as admin:
        make_topics(admin, point, 1)
        with pytest.raises(KeyboardInterrupt):
            restore_records(config, store, point, check_target(admin, point, resume=False), die)
    there = ("--bootstrap-servers", target.bootstrap_servers)
    assert run("restore", place, *there, "--execute", "--resume")["written"] == 50
    for partition in (0, 1):
        before, after = contents(source, topic, partition), contents(target.bootstrap_servers, topic, partition)
        assert before == after
    (file,) = Path(place).glob("records/*/partition=0/*.parquet")
    with file.open("r+b") as stream:
        stream.seek(120)
        stream.write(b"damage")
    with Admin(config) as admin:
        admin.delete_topics([topic])
    broken = CliRunner().invoke(tidegate, ["restore", place, *there, "--execute"])
    assert str(file.relative_to(place)) in str(broken.exception)


def test_schemas_keep_their_ids(tidegate_broker: Any, target: BrokerThread, tmp_path: Path, elsewhere: None) -> None:
    place, topic = str(tmp_path / "place"), "backed-schema"
    source = tidegate_broker.bootstrap_servers
    with Admin(ClientConfig(source)) as admin:
        admin.create_topics([NewTopic(topic, 1)])
    with RegistryThread() as first, RegistryClient(first.url) as client:
        client.register("gone", '"int"')
        client.delete_subject("gone")
        number = client.register(f"{topic}-value", '"string"')
        run("backup", place, "--bootstrap-servers", source, "--registry", first.url, "--topic", topic)
    with RegistryThread() as second, RegistryClient(second.url) as client:
        where = ("--bootstrap-servers", target.bootstrap_servers, "--registry", second.url)
        assert run("restore", place, *where, "--execute")["problems"] == []
        assert client.version(f"{topic}-value", 1).id == number


def test_a_backup_in_s3(
    tidegate_broker: Any, target: BrokerThread, s3_server: Any, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.buckets import bucket_on

    source, topic = tidegate_broker.bootstrap_servers, "backed-s3"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    with Admin(ClientConfig(source)) as admin, BatchProducer(ClientConfig(source)) as producer:
        admin.create_topics([NewTopic(topic, 1)])
        producer.send(topic, b"k", b"v", [("h", None)])
    with bucket_on(s3_server) as bucket:
        place = f"s3://{bucket.name}/shop?region={s3_server.region}&scheme=http&endpoint_override=127.0.0.1:{s3_server.port}"
        assert run("backup", place, "--bootstrap-servers", source, "--topic", topic)["written"] == 1
        assert run("backup", place, "--bootstrap-servers", source, "--topic", topic)["written"] == 0
        there = ("--bootstrap-servers", target.bootstrap_servers)
        assert run("restore", place, *there, "--topic", topic, "--execute")["problems"] == []
    assert contents(source, topic) == contents(target.bootstrap_servers, topic)


@pytest.mark.proof
@pytest.mark.long
@pytest.mark.servers
def test_a_backup_in_azure(
    tidegate_broker: Any, target: BrokerThread, azure_server: Any, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, topic = tidegate_broker.bootstrap_servers, "backed-azure"
    azure_server.create_container("backups")
    with Admin(ClientConfig(source)) as admin, BatchProducer(ClientConfig(source)) as producer:
        admin.create_topics([NewTopic(topic, 1)])
        producer.send(topic, b"k", b"v", [("h", None)])
    place = f"az://backups/shop?endpoint=http://127.0.0.1:{azure_server.port}"
    asked = ["backup", place, "--bootstrap-servers", source, "--topic", topic]
    assert "give ?account_name=" in str(CliRunner().invoke(tidegate, asked).exception)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", azure_server.account)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", azure_server.key)
    assert run(*asked)["written"] == 1
    assert run(*asked)["written"] == 0
    there = ("--bootstrap-servers", target.bootstrap_servers)
    assert run("restore", place, *there, "--topic", topic, "--execute")["problems"] == []
    assert contents(source, topic) == contents(target.bootstrap_servers, topic)


@pytest.mark.proof
@pytest.mark.long
def test_a_platform_is_restored_with_its_connectors_and_events(tmp_path: Path) -> None:
    from tests.support.platform import running_platform, until
    from tests.support.platform import tidegate as command

    place = tmp_path / "place"
    text = "org.apache.kafka.connect.storage.StringConverter"
    event = {
        "type": "record",
        "name": "Parcel_Sent__e",
        "fields": [
            {"name": "CreatedDate", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "CreatedById", "type": "string"},
            {"name": "Weight__c", "type": ["null", "double"], "default": None},
        ],
    }
    (tmp_path / "Parcel_Sent__e.avsc").write_text(json.dumps(event))
    (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with running_platform(tmp_path / "first") as platform:
        where = ("--data", platform.data)
        command("events", "define", tmp_path / "Parcel_Sent__e.avsc", *where)
        command("events", "publish", "Parcel_Sent__e", "Weight__c=7", *where)
        platform.create(
            "in", connector__class="FileStreamSource", file=tmp_path / "in.txt", topic="lines", value__converter=text
        )
        platform.create(
            "out", connector__class="FileStreamSink", topics="lines", file=tmp_path / "out.txt", value__converter=text
        )
        for name in ("in", "out"):
            ask = ("connectors", "offsets", "get", name, "--json")
            until(lambda ask=ask: "14" in (said := command(*ask, *where).stdout) or '"kafka_offset": 3' in said, name)
        command("backup", place, *where)
    (tmp_path / "out.txt").unlink()
    with running_platform(tmp_path / "second") as platform:
        where = ("--data", platform.data)
        told = json.loads(command("restore", place, "--execute", "--start-connectors", "--json", *where).stdout)
        assert told["problems"] == [] and told["written"] == 4
        with (tmp_path / "in.txt").open("a") as lines:
            lines.write("four\n")
        until(
            lambda: (tmp_path / "out.txt").exists() and (tmp_path / "out.txt").read_text() == "four\n",
            "only the new line",
        )
        said = command("events", "subscribe", "Parcel_Sent__e", "--replay", "-2", "-n", "1", *where).stdout
        assert '"Weight__c": 7.0' in said
