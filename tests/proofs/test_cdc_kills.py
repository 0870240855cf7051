"""Change events through a worker, while worker, broker and database are killed: the tables rebuilt from the topics equal the source's."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.proofs import drawn_seed, effort
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.debezium.workload import MariaDbWorkload, Workload
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.proof, pytest.mark.servers]


@dataclass(frozen=True, slots=True)
class Database:
    """A server, its workload, what runs the connector, and a query for rows as JSON."""

    make: Callable[[], Any]
    workload: type[Workload]
    connector: dict[str, str]
    topics: str
    rows: str


DATABASES = {
    "postgresql": Database(
        PostgresServer,
        Workload,
        {
            "connector_class": "io.debezium.connector.postgresql.PostgresConnector",
            "database_dbname": PostgresServer.database,
            "status_update_interval_ms": "200",
        },
        "k.public",
        "SELECT row_to_json(t)::text FROM (SELECT * FROM {table}) t",
    ),
    "mariadb": Database(
        # what is committed must be in the files before it is in the binary log, or a kill would part the two
        partial(MariaDbServer, "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1", "--innodb-lock-wait-timeout=2"),
        MariaDbWorkload,
        {
            "connector_class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database_include_list": MariaDbServer.database,
        },
        f"k.{MariaDbServer.database}",
        "SELECT * FROM {table}",
    ),
}
_LOST = (psycopg.Error, pymysql.err.Error)


class Source:
    """The database under its workload. A lost connection loses the transactions that were open."""

    def __init__(self, database: Database, server: Any, seed: int) -> None:
        self._database, self._server, self._seed = database, server, seed
        self._work = database.workload([server.connect() for _ in range(2)], seed)
        self._work.prepare()
        self._stopping = threading.Event()
        self.rounds = 0
        self.resting = threading.Event()
        self.resting.set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.resting.wait(60)
            try:
                self._work.step()
                self.rounds += 1
                time.sleep(0.005)
            except _LOST:
                self._connect()

    def _connect(self) -> None:
        while not self._stopping.wait(0.1):
            try:
                self._work.reconnect([self._server.connect() for _ in range(2)])
                return
            except _LOST:
                continue

    def stop(self) -> None:
        self._stopping.set()
        self.resting.set()
        if self._thread.is_alive():
            self._thread.join(60)
        with suppress(*_LOST):
            self._work.close()

    def table(self, name: str, key: tuple[str, ...]) -> dict[Any, Any]:
        with self._server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(self._database.rows.format(table=name))
            names = [column[0] for column in cursor.description]
            found = list(cursor.fetchall())
        rows = [json.loads(row[0]) if len(row) == 1 else dict(zip(names, row, strict=True)) for row in found]
        return {tuple(row[k] for k in key): row for row in rows}


def rebuilt(bootstrap: str, topic: str) -> dict[Any, Any]:
    """What a topic of one partition leaves of its table."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "rebuild", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    rows: dict[Any, Any] = {}
    while (message := consumer.poll(10)) is not None and message.error() is None:
        key = tuple(json.loads(message.key()).values())
        event = None if message.value() is None else json.loads(message.value())
        if event is None or event["op"] == "d":
            rows.pop(key, None)
        else:
            rows[key] = event["after"]
    consumer.close()
    return rows


def differing(ours: dict[Any, Any], truth: dict[Any, Any]) -> list[Any]:
    """A few of the rows that are not alike: columns added with a default later are not repeated for rows that rest; ``at`` and
    amounts have another form."""
    wrong = [
        (key, ours.get(key), truth.get(key))
        for key in {*ours, *truth}
        if key not in ours
        or key not in truth
        or any(
            ours[key][column] != value
            for column, value in truth[key].items()
            if column in ours[key] and column not in ("at", "amount")
        )
    ]
    return [len(wrong), *([] if not wrong else [str(row)[:300] for row in wrong[:3]])] if wrong else []


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ["postgresql", pytest.param("mariadb", marks=pytest.mark.long)])
def test_tables_are_rebuilt_whatever_is_killed(tmp_path: Path, name: str) -> None:
    seed = drawn_seed()
    dice = random.Random(seed)
    database = DATABASES[name]
    server = database.make()
    server.start()
    broker = TidegateBroker(tmp_path / "broker")
    broker.start()
    worker = ConnectWorker(tmp_path / "worker", broker.bootstrap_servers)
    worker.start()
    source = Source(database, server, seed)
    killed: Counter[str] = Counter()
    try:
        worker.create(
            "cdc",
            database_hostname="127.0.0.1",
            database_port=str(server.port),
            database_user=server.user,
            topic_prefix="k",
            poll_interval_ms="50",
            max_queue_size="500",
            decimal_handling_mode="string",
            **database.connector,
        )
        source.start()
        for _ in range(effort(3, 20)):
            time.sleep(dice.uniform(0.5, 2))
            victim = (
                dice.choice(("worker", "broker", "database"))
                if effort(0, 1)
                else ("worker", "database", "broker")[sum(killed.values())]
            )
            killed[victim] += 1
            process = {"worker": worker, "broker": broker, "database": server.process}[victim]
            process.kill()
            time.sleep(dice.uniform(0.1, 1))
            process.start()
        source.stop()
        deadline = time.monotonic() + 240
        tables = {"accounts": ("id",), "notes": ("a", "b")}
        while True:
            found = {name: rebuilt(broker.bootstrap_servers, f"{database.topics}.{name}") for name in tables}
            truths = {name: source.table(name, key) for name, key in tables.items()}
            if not any(differing(found[name], truths[name]) for name in tables):
                break
            late = {name: differing(found[name], truths[name]) for name in tables}
            assert time.monotonic() < deadline, (killed, source.rounds, worker.state("cdc"), late)
            time.sleep(0.5)
        assert source.rounds > 5 and all(truths.values())
        print(dict(killed), source.rounds)
    finally:
        source.stop()
        worker.kill()
        broker.kill()
        server.stop()
