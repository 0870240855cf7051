"""The page about a cluster of Kafka Connect is followed with the original's workers and with Debezium: 100 orders come to
each, and 100 while no worker runs. All are in the file at the end, each once, in their order.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
import requests

from tests.servers.fetch import require
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker, KafkaConnect
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_ports, wait_until
from tests.support.pages import ROOT, Shell, blocks, commands

PAGE = ROOT / "docs" / "how-to" / "from-kafka-connect.md"


def properties() -> dict[str, str]:
    (block,) = blocks(PAGE, "properties")
    return dict(line.split("=", 1) for line in block.text.splitlines() if not line.startswith("#"))


def sections() -> dict[str, list]:
    """The page's commands by their heading."""
    text, found = PAGE.read_text().splitlines(), {}
    for block in blocks(PAGE, "console"):
        heading = next(line for line in reversed(text[: block.line]) if line.startswith("## "))
        found.setdefault(heading.removeprefix("## "), []).extend(commands(block))
    return found


class Orders:
    """The table ``orders``; each call of ``place`` adds a hundred."""

    def __init__(self, database: psycopg.Connection) -> None:
        self._database, self.placed = database, 0

    def place(self) -> None:
        self._database.execute(
            "INSERT INTO orders SELECT n, 'bike' FROM generate_series(%s::int, %s::int) AS n",
            (self.placed + 1, self.placed + 100),
        )
        self.placed += 100


@pytest.fixture
def orders(postgres_server: PostgresServer) -> Iterator[Orders]:
    with postgres_server.connect() as root:
        root.autocommit = True
        root.execute("CREATE DATABASE from_kafka_connect")
    with postgres_server.connect("from_kafka_connect") as database:
        database.autocommit = True
        database.execute("CREATE TABLE orders (id int PRIMARY KEY, product text)")
        yield Orders(database)
        database.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active")


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long
def test_a_cluster_is_taken_over_and_given_back(
    apache_kafka: KafkaBroker, postgres_server: PostgresServer, orders: Orders, tmp_path: Path
) -> None:
    plugins = or_skip(lambda: [str(require(name).absolute() / "plugins") for name in ("kafka", "debezium-postgres")])
    settings = {**properties(), "plugin.path": ",".join(plugins), "plugin.discovery": "hybrid_warn"}
    del settings["bootstrap.servers"], settings["listeners"]
    theirs = KafkaConnect(tmp_path / "theirs", apache_kafka.bootstrap_servers, settings, heap="1G")
    (trial,) = free_ports(1)
    out = tmp_path / "orders.txt"
    shell = Shell(
        tmp_path,
        {"TIDEGATE_CONTEXTS": str(tmp_path / "contexts.json")},
        replaced={
            "127.0.0.1:9092": apache_kafka.bootstrap_servers,
            "127.0.0.1:8083": theirs.url.removeprefix("http://"),
            "127.0.0.1:8084": f"127.0.0.1:{trial}",
            "/srv/orders.txt": str(out),
        },
    )
    (worker,) = blocks(PAGE, "properties")
    (tmp_path / "worker.properties").write_text(shell.here(worker.text))
    steps = sections()

    def do(step: str) -> None:
        for command in steps.pop(step):
            shell.run(command)

    def delivered() -> None:
        wait_until(
            lambda: out.exists() and len(out.read_text().splitlines()) == orders.placed, "all orders in the file"
        )

    try:
        orders.place()
        theirs.start()
        for block in blocks(PAGE, "json"):
            connector = json.loads(shell.here(block.text))
            if "database.dbname" in connector["config"]:
                connector["config"] |= {
                    "database.port": str(postgres_server.port),
                    "database.user": postgres_server.user,
                    "database.dbname": "from_kafka_connect",
                }
            answer = requests.post(f"{theirs.url}/connectors", json=connector, timeout=60)
            assert answer.status_code == 201, answer.text
        delivered()
        do("1. Look, before anything changes")
        do("2. Note where the connectors stand")
        theirs.stop()
        orders.place()
        do("3. Stop one, start the other")
        orders.place()
        do("4. Check that nothing is missing")
        orders.place()
        delivered()
        pid = int((tmp_path / "worker.pid").read_text())
        do("Back")
        wait_until(lambda: not alive(pid), "our worker gone")
        orders.place()
        theirs.start()
        orders.place()
        delivered()
    finally:
        theirs.stop()
        for name in ("trial", "worker"):
            if (file := tmp_path / f"{name}.pid").exists():
                with suppress(ProcessLookupError):
                    os.kill(int(file.read_text()), signal.SIGTERM)
    assert steps == {}, "commands that nobody ran"
    assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == list(range(1, orders.placed + 1))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
