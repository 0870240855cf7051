"""A platform moves to another one over Apache Kafka with all that it has, while records arrive; and back."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import requests

from broker.client import ClientConfig, NewTopic, TopicPartition
from broker.client.blocking import Admin, BatchProducer
from tests.servers.kafka import KafkaBroker
from tests.support.platform import RunningPlatform, running_platform, tidegate, until

pytestmark = [pytest.mark.proof, pytest.mark.long, pytest.mark.servers]  # its page is followed in the short proofs

TEXT = "org.apache.kafka.connect.storage.StringConverter"
ORDERS = "moved.orders"
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}


def values(platform: RunningPlatform, topic: str) -> list[str]:
    said = tidegate("consume", topic, "--data", platform.data, "--to-end", "--values").stdout
    return [json.loads(line) for line in said.splitlines()]


def moved(source: RunningPlatform, target: RunningPlatform, *options: str) -> dict[str, Any]:
    done = tidegate("move", "--data", source.data, "--to", target.data, "--json", *options)
    return json.loads(done.stdout)


def state(platform: RunningPlatform, name: str) -> str:
    said = requests.get(f"{platform.addresses['connect']}/connectors/{name}/status", timeout=60).json()
    return str(said["connector"]["state"]) if "connector" in said else "none yet"


def test_a_platform_moves_while_it_works_and_back(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    lines, out = tmp_path / "in.txt", tmp_path / "out.txt"
    lines.write_text("one\ntwo\nthree\n")
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    kafka = KafkaBroker(tmp_path / "kafka")
    kafka.start()
    try:
        over_kafka = ("--bootstrap-servers", kafka.bootstrap_servers)
        with (
            running_platform(tmp_path / "first") as first,
            running_platform(tmp_path / "second", *over_kafka) as second,
        ):
            where = ("--data", first.data)
            tidegate("schemas", "register", f"{ORDERS}-value", tmp_path / "order.avsc", *where)
            config = ClientConfig(first.bootstrap_servers)
            with Admin(config) as admin, BatchProducer(config) as producer:
                admin.create_topics(
                    [NewTopic(ORDERS, 2, configs={"retention.ms": "-1", "max.message.bytes": "900000"})]
                )
                for n in range(100):
                    producer.enqueue(ORDERS, b"k%d" % (n % 10), b"%d" % n, [("h", b"x")], partition=0, timestamp_ms=n)
                producer.flush()
                admin.delete_records({TopicPartition(ORDERS, 0): 10})
                admin.alter_group_offsets("billing", {TopicPartition(ORDERS, 0): 42})
                admin.alter_share_group_offsets("packers", {TopicPartition(ORDERS, 0): 42})
            first.create("in", connector__class="FileStreamSource", file=lines, topic="lines", value__converter=TEXT)
            first.create("out", connector__class="FileStreamSink", topics="lines", file=out, value__converter=TEXT)
            until(lambda: out.exists() and out.read_text() == "one\ntwo\nthree\n", "the lines")

            tidegate("events", "users", "add", "courier", *where, environment={"TIDEGATE_NEW_PASSWORD": "sesame-7"})
            planned = moved(first, second)
            assert any(row[0] == "events users and apps" for row in planned["changes"])
            assert not planned["executed"] and planned["changes"][0] == [
                "topics",
                "copy 2 topics with up to 93 records",
            ]
            assert ["connectors in", "create, running"] in planned["changes"]
            with Admin(ClientConfig(second.bootstrap_servers)) as admin:
                assert ORDERS not in admin.list_topics()
            assert moved(first, second, "--execute")["copied"] == 93

            # The log goes on, and its oldest records are deleted; one who writes on is waited for, in vain.
            with Admin(config) as admin:
                admin.delete_records({TopicPartition(ORDERS, 0): 60})
            writing = threading.Event()

            def write() -> None:
                with BatchProducer(config) as producer:
                    while not writing.wait(0.01):
                        producer.send(ORDERS, b"late", b"later", partition=1)

            writer = threading.Thread(target=write)
            writer.start()
            try:
                refused = tidegate("move", *where, "--to", second.data, "--execute", "--cut-over", check=False)
            finally:
                writing.set()
                writer.join()
            assert f"records still come to {ORDERS}: stop who writes them" in refused.stderr
            until(lambda: state(first, "in") == state(first, "out") == "RUNNING", "connectors that go on")

            # A connector that runs there is not overwritten, and nothing runs twice.
            other = {"connector__class": "FileStreamSource", "file": tmp_path / "other.txt", "topic": "other"}
            second.create("in", **other)
            refused = tidegate("move", *where, "--to", second.data, "--execute", "--cut-over", check=False)
            assert refused.returncode == 1 and "connectors in: it is RUNNING there" in refused.stderr
            until(lambda: state(first, "in") == state(first, "out") == "RUNNING", "connectors that go on")
            until(lambda: state(second, "out") == "STOPPED", "the other connector, stopped there")
            tidegate("connectors", "delete", "in", "--data", second.data)

            # Killed when the connectors here are stopped, it is finished by the next run.
            command = [
                sys.executable,
                "-m",
                "tidegate.cli",
                "move",
                *where,
                "--to",
                second.data,
                "--execute",
                "--cut-over",
            ]
            with subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL) as killed:
                until(lambda: state(first, "in") == "STOPPED", "the cut-over")
                killed.kill()

            done = moved(first, second, "--execute", "--cut-over")
            assert done["problems"] == [] and not (first.data / "move").exists()
            assert state(first, "in") == state(first, "out") == "STOPPED"
            until(lambda: state(second, "in") == state(second, "out") == "RUNNING", "connectors that go on there")
            with lines.open("a") as more:
                more.write("four\n")
            until(lambda: out.read_text() == "one\ntwo\nthree\nfour\n", "the new line, once, by way of Apache Kafka")
            assert values(second, "lines") == ["one", "two", "three", "four"]
            with Admin(ClientConfig(second.bootstrap_servers)) as admin:
                # Records 10 to 41 are before it, wherever they begin.
                assert admin.group_offsets("billing") == {TopicPartition(ORDERS, 0): 32}
                assert admin.share_group_offsets("packers") == {TopicPartition(ORDERS, 0): 32}
                assert admin.describe_configs(ORDERS)["max.message.bytes"].value == "900000"
            subjects = json.loads(tidegate("schemas", "list", "--data", second.data, "--json").stdout)
            assert f"{ORDERS}-value" in json.dumps(subjects)

            again = tidegate("move", *where, "--to", second.data, "--execute", check=False)
            assert f"This platform has moved to {second.data}, on 2" in again.stderr
            assert not (first.data / "move").exists()
            users = tidegate("events", "users", "list", "--data", second.data).stdout
            assert "courier" in users
            # It is refused where there are records already, the way back too.
            for options in ((), ("--execute",)):
                again = tidegate("move", "--data", second.data, "--to", first.data, *options, check=False)
                assert again.returncode and "the target can't take the records" in again.stderr
    finally:
        kafka.stop()


def test_sinks_that_keep_offsets_go_on_behind_what_they_have_or_hold_the_move_up(tmp_path: Path) -> None:
    """A log that has lost its oldest records is numbered anew: the sink's table would name offsets that are other records."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    fields = [{"field": "id", "type": "int64", "optional": False}]
    schema = {"type": "struct", "optional": False, "fields": fields}

    def produce(platform: RunningPlatform, first: int, end: int) -> None:
        with BatchProducer(ClientConfig(platform.bootstrap_servers)) as producer:
            for n in range(first, end):
                value = json.dumps({"schema": schema, "payload": {"id": n}}).encode()
                producer.enqueue("sales", None, value, partition=0, timestamp_ms=n + 1)
            producer.flush()

    def rows() -> list[int]:
        with contextlib.closing(sqlite3.connect(tmp_path / "out.db")) as database, contextlib.suppress(sqlite3.Error):
            return [int(row[0]) for row in database.execute("SELECT id FROM sales ORDER BY id")]
        return []

    reading = {
        "topics": "sales",
        "value__converter": "org.apache.kafka.connect.json.JsonConverter",
        "consumer__override__auto__offset__reset": "earliest",
    }
    with running_platform(tmp_path / "first") as first, running_platform(tmp_path / "second") as second:
        with Admin(ClientConfig(first.bootstrap_servers)) as admin:
            admin.create_topics([NewTopic("sales", 1)])
            produce(first, 0, 10)
            url = f"jdbc:sqlite:{tmp_path / 'out.db'}"
            keeps = {"auto__create": "true", "tidegate__offsets__table": "sink_offsets"}
            first.create("table", connector__class="JdbcSink", connection__url=url, **keeps, **reading)
            files = {"store__url": (tmp_path / "files").as_uri(), "format__class": "JsonFormat", "flush__size": 5}
            first.create("files", connector__class="LocalSink", **files, **reading)
            until(lambda: rows() == list(range(10)), "the rows")
            for group in ("connect-table", "connect-files"):
                until(lambda group=group: 10 in admin.group_offsets(group).values(), f"the position of {group}")
            admin.delete_records({TopicPartition("sales", 0): 5})

        done = tidegate("move", "--data", first.data, "--to", second.data, "--execute", "--cut-over", check=False)
        assert (
            done.returncode == 1 and "connectors files: its files have offsets of sales in their names" in done.stderr
        )
        tidegate("connectors", "delete", "files", "--data", first.data)
        produce(second, 99, 100)
        produce(first, 10, 11)
        done = tidegate("move", "--data", first.data, "--to", second.data, "--execute", check=False)
        assert "sales-0 of the target has 1 record that did not come from here" in done.stderr
        tidegate("topics", "delete", "sales", "--data", second.data)
        moved(first, second, "--execute", "--cut-over")
        produce(second, 11, 12)
        until(lambda: rows() == list(range(12)), "all rows, each once")
        assert state(second, "table") == "RUNNING"
