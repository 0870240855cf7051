"""``tidegate verify``: two topics, and tables with the topics that a connector fills from them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin, BatchProducer
from tests.support.broker import BrokerThread, settings
from tests.support.platform import until
from tests.support.worker import ConnectWorker
from tidegate.cli import tidegate

JSON = "org.apache.kafka.connect.json.JsonConverter"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a home without a platform."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEGATE_CONTEXTS", str(tmp_path / "contexts.json"))


def run(*arguments: str) -> tuple[int, Any]:
    result = CliRunner().invoke(tidegate, ["verify", *arguments, "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    lines = result.stdout.splitlines(keepends=True)
    begin = next(
        n for n, line in enumerate(lines) if line.startswith("{")
    )  # a connector that reads tables logs before it
    return result.exit_code, json.loads("".join(lines[begin:]))


@pytest.fixture
def other(tmp_path: Path) -> Iterator[BrokerThread]:
    with BrokerThread(settings(tmp_path / "other")) as broker:
        yield broker


def test_two_topics_are_compared(tidegate_broker: Any, other: BrokerThread) -> None:
    here, there = tidegate_broker.bootstrap_servers, other.bootstrap_servers
    topic = "verified"
    for servers, partitions in ((here, 2), (there, 3)):
        with Admin(ClientConfig(servers)) as admin, BatchProducer(ClientConfig(servers)) as producer:
            admin.create_topics([NewTopic(topic, partitions)])
            for n in range(300):
                producer.enqueue(topic, b"k%d" % (n % 100), b"v%d" % n, timestamp_ms=n)
            producer.enqueue(topic, b"k7", None)  # deleted on both sides, and never there on neither
            producer.enqueue(topic, None, b"without a key")
            producer.flush()
    where = (topic, topic, "--bootstrap-servers", here, "--to-bootstrap-servers", there)
    status, told = run("topics", *where)
    assert (status, told["keys"], told["differing"], told["records_without_key"]) == (0, [99, 99], 0, 2)
    with BatchProducer(ClientConfig(there)) as producer:
        producer.send(topic, b"k1", b"another")
        producer.send(topic, b"k2", None)
        producer.send(topic, b"\xff\x00", b"new")
    status, told = run("topics", *where, "-n", "2")
    assert (status, told["differing"]) == (1, 3)
    assert [(d["key"], d["kind"]) for d in told["differences"]] == [("base64:/wA=", "only right"), ("k1", "value")]
    text = CliRunner().invoke(tidegate, ["verify", "topics", *where]).stdout
    assert "3 keys differ: 99 keys in the first verified, 99 in the second verified" in text
    refused = CliRunner().invoke(tidegate, ["verify", "topics", *where, "--records"])
    assert "2 partitions" in str(refused.exception)
    misspelt = CliRunner().invoke(tidegate, ["verify", "topics", "verifed", topic, "--bootstrap-servers", here])
    assert "no such topic: verifed; did you mean verified?" in str(misspelt.exception)


def test_records_are_compared_in_their_order(tidegate_broker: Any) -> None:
    servers = tidegate_broker.bootstrap_servers
    names = ("verified-one", "verified-copy")
    with Admin(ClientConfig(servers)) as admin, BatchProducer(ClientConfig(servers)) as producer:
        admin.create_topics([NewTopic(name, 2) for name in names])
        for n in range(500):
            for name in names:
                producer.enqueue(name, b"k", b"v%d" % n, [("h", b"%d" % n)], partition=n % 2, timestamp_ms=n)
                if n % 100 == 0:
                    producer.flush()
        producer.flush()
        where = (*names, "--bootstrap-servers", servers, "--records")
        assert run("topics", *where) == (0, {"alike": 500, "differing": []})
        producer.send(names[0], b"k", b"more", partition=1)
        for name, value in zip(names, (b"x", b"y"), strict=True):
            producer.send(name, b"k", b"same", partition=0, timestamp_ms=1)
            producer.send(name, b"k", value, partition=0, timestamp_ms=1)
    status, told = run("topics", *where)
    assert (status, told["alike"]) == (1, 501)
    assert told["differing"] == [
        {"partition": 0, "left_offset": 251, "right_offset": 251},
        {"partition": 1, "left_offset": 250, "right_offset": None},
    ]


@pytest.mark.proof
def test_tables_are_compared_with_their_topics_and_repaired(tidegate_broker: Any, tmp_path: Path) -> None:
    servers = tidegate_broker.bootstrap_servers
    worker = ConnectWorker(tmp_path / "worker", servers, name="verifying")
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = wal")
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, price DECIMAL(8, 2), at TIMESTAMP, data BLOB)")
        database.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, word TEXT)")
        for n in range(20):
            database.execute("INSERT INTO orders VALUES (?, ?, '2026-01-02 03:04:05', x'00ff')", [n, n + 0.25])
            database.execute("INSERT INTO notes VALUES (?, 'w')", [n])
        with Admin(ClientConfig(servers)) as admin:
            admin.create_topics([NewTopic("verify-signal", 1)])
        worker.start()
        try:
            worker.create(
                "verify-shop",
                connector_class="tidegate.sqlite.SqliteCdcSourceConnector",
                database_path=str(tmp_path / "shop.db"),
                topic_prefix="verify",
                key_converter=JSON,
                key_converter_schemas_enable="true",
                value_converter=JSON,
                value_converter_schemas_enable="false",
                signal_enabled_channels="kafka",
                signal_poll_interval_ms="100",
                poll_interval_ms="50",
                offset_flush_interval_ms="100",
            )
            where = ("verify-shop", "--connect", worker.url, "--bootstrap-servers", servers)
            more = ("--settle", "0.5")

            def alike() -> bool:
                status, told = run("tables", *where, *more)
                return status == 0 and told["keys"] == [40, 40] and told["tables"] == ["main.notes", "main.orders"]

            until(alike, "the snapshot to be in the topics")
            database.execute("DELETE FROM orders WHERE id = 3")
            database.execute("UPDATE orders SET price = 7 WHERE id = 4")
            until(lambda: run("tables", *where, *more)[1]["keys"] == [39, 39], "the changes")
            with BatchProducer(ClientConfig(servers)) as producer:  # what a bug of somebody's may do
                producer.send("verify.main.orders", b'{"schema":null,"payload":{"id":5}}', None)
            status, told = run("tables", *where, *more, "--table", r"main\.orders", "--repair")
            assert (status, told["tables"], told["differing"], told["changing"]) == (1, ["main.orders"], 1, 0)
            assert [(d["key"], d["kind"]) for d in told["differences"]] == [('{"id":5}', "only left")]
            assert told["repairing"]
            until(lambda: run("tables", *where, *more)[0] == 0, "the repair")
            refused = CliRunner().invoke(tidegate, ["verify", "tables", *where, *more, "--table", "nothing"])
            assert "captures no table with a name like nothing" in str(refused.exception)
        finally:
            worker.stop()


@pytest.mark.proof
@pytest.mark.long
@pytest.mark.servers
def test_tables_of_postgresql_are_compared_with_avro_topics(tmp_path: Path, postgres_server: Any) -> None:
    from tests.support.platform import running_platform

    name = "verified"
    with postgres_server.connect("postgres") as root:
        root.execute(f"CREATE DATABASE {name}".encode())
    (tmp_path / "platform").mkdir()
    with (
        running_platform(tmp_path / "platform", "--without", "events") as platform,
        postgres_server.connect(name) as database,
    ):
        database.execute(
            "CREATE TABLE things (id int, part text, price numeric(10, 3), at timestamptz, day date, data bytea, doc jsonb, "
            "tags text[], real float8, PRIMARY KEY (id, part)); "
            "INSERT INTO things SELECT g, 'p' || g, g / 8.0, now(), now()::date, '\\x00ff', '{\"a\": 1}', ARRAY['x', NULL], 1.5 "
            "FROM generate_series(1, 500) g; CREATE TABLE empty (id int PRIMARY KEY)"
        )
        platform.create(
            "shop",
            connector__class="io.debezium.connector.postgresql.PostgresConnector",
            database__hostname="127.0.0.1",
            database__port=postgres_server.port,
            database__user=postgres_server.user,
            database__dbname=name,
            topic__prefix="verified",
            schema__name__adjustment__mode="avro",
            poll__interval__ms="50",
        )
        where = ("shop", "--data", str(platform.data), "--settle", "1")

        def alike(keys: int) -> bool:
            status, told = run("tables", *where)
            return status == 0 and told["keys"] == [keys, keys]

        until(lambda: alike(500), "the snapshot to be in the topics")
        database.execute(
            "DELETE FROM things WHERE id < 10; UPDATE things SET price = price + 1, at = now() WHERE id < 50"
        )
        until(lambda: alike(491), "the changes")
        with BatchProducer(ClientConfig(platform.bootstrap_servers)) as producer:
            producer.send("verified.public.empty", b"", b"")
        refused = CliRunner().invoke(tidegate, ["verify", "tables", *where])
        assert "verified.public.empty" in str(refused.exception), "a topic of a table without rows is compared too"
    with postgres_server.connect(name) as database:
        from connectors.postgres.setup import drop_slot

        drop_slot(database, "debezium")
