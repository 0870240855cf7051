"""Change events through a worker, while worker, broker and database are killed: the tables rebuilt from the topics equal the source's.

A seed of the long form is 50,000 changed rows, 20 kills and at least 5 alterations of tables. TIDEGATE_SEEDS=3,7-9 chooses seeds,
TIDEGATE_SEEDS_AT_ONCE how many run beside each other.
"""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import pymysql
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.proofs import effort, run_seeds, seeds
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker
from tests.servers.mariadb import MariaDbServer
from tests.servers.mysql import MySqlServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.debezium.workload import MariaDbWorkload, MySqlWorkload, Workload
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.proof, pytest.mark.servers]

CHANGES, KILLS, ALTERS = effort(800, 50_000), effort(3, 20), effort(2, 5)
TABLES: Final = {"accounts": ("id",), "notes": ("a", "b")}
BROKERS: Final[dict[str, type[TidegateBroker] | type[KafkaBroker]]] = {
    "tidegate": TidegateBroker,
    "apache": KafkaBroker,
}


@dataclass(frozen=True, slots=True)
class Database:
    """A server, its workload, what runs the connector, and a query for rows as JSON."""

    make: Callable[[], Any]
    workload: type[Workload]
    connector: dict[str, str]
    topics: str
    rows: str


_KEPT: Final = ("--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1", "--innodb-lock-wait-timeout=2")
"""Makes committed data reach the files before the binary log; otherwise a kill would make the two differ."""
DATABASES: Final = {
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
        partial(MariaDbServer, *_KEPT),
        MariaDbWorkload,
        {
            "connector_class": "io.debezium.connector.mariadb.MariaDbConnector",
            "database_include_list": MariaDbServer.database,
        },
        f"k.{MariaDbServer.database}",
        "SELECT * FROM {table}",
    ),
    "mysql": Database(
        partial(MySqlServer, *_KEPT),
        MySqlWorkload,
        {
            "connector_class": "io.debezium.connector.mysql.MySqlConnector",
            "database_include_list": MySqlServer.database,
        },
        f"k.{MySqlServer.database}",
        "SELECT * FROM {table}",
    ),
}
_LOST = (psycopg.Error, pymysql.err.Error)


class Source:
    """The database under its workload, which pauses after as many changes as ``until`` allows.

    A lost connection loses the open transactions.
    """

    def __init__(self, database: Database, server: Any, seed: int) -> None:
        self._database, self._server = database, server
        self._work = database.workload([server.connect() for _ in range(2)], seed, alters=0)
        self._work.prepare()
        self._stopping = threading.Event()
        self.changed = self.altered = self.until = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self.changed >= self.until:
                self._stopping.wait(0.02)
                continue
            try:
                if self.changed > CHANGES * (self.altered + 0.5) / (ALTERS + 1):
                    self._work.alter()
                    self.altered += 1
                self.changed += self._work.step()
                time.sleep(0.002)
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
        if self._thread.is_alive():
            self._thread.join(60)
        with suppress(*_LOST):
            self._work.close()

    def table(self, name: str) -> dict[Any, Any]:
        with self._server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(self._database.rows.format(table=name))
            names = [column[0] for column in cursor.description]
            table_rows = list(cursor.fetchall())
        rows = [
            json.loads(row[0], parse_float=Decimal) if len(row) == 1 else dict(zip(names, row, strict=True))
            for row in table_rows
        ]
        return {tuple(row[k] for k in TABLES[name]): row for row in rows}


class Rebuilt:
    """A topic with one partition replayed into the rows of its table, as far as it was read."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "rebuild", "enable.partition.eof": True})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self.rows: dict[Any, Any] = {}
        self.records = 0

    def read(self) -> None:
        """Read what is there, to the first error; an end that was told before is not told again."""
        while (message := self._consumer.poll(0.5)) is not None and message.error() is None:
            self.records += 1
            key = tuple(json.loads(message.key()).values())
            event = None if message.value() is None else json.loads(message.value())
            if event is None or event["op"] == "d":
                self.rows.pop(key, None)
            else:
                self.rows[key] = event["after"]

    def differing(self, truth: dict[Any, Any]) -> list[Any]:
        """A few of the rows that are not alike: columns added with a default later are not repeated for rows that rest, and
        ``at`` has another form."""
        wrong = [
            (key, self.rows.get(key), truth.get(key))
            for key in {*self.rows, *truth}
            if key not in self.rows or key not in truth or not _alike(self.rows[key], truth[key])
        ]
        return [len(wrong), *(str(row)[:300] for row in wrong[:3])] if wrong else []

    def close(self) -> None:
        self._consumer.close()


def _alike(ours: dict[str, Any], truth: dict[str, Any]) -> bool:
    return all(
        (Decimal(ours[column]) if column == "amount" and ours[column] is not None else ours[column]) == value
        for column, value in truth.items()
        if column in ours and column != "at"
    )


class Scene:
    """Everything that takes part in one seed, in a folder."""

    def __init__(self, folder: Path, kind: str, seed: int) -> None:
        self.folder, self.seed = folder, seed
        name, broker = kind.split("-")
        self.database = DATABASES[name]
        self.server = or_skip(self.database.make)
        self.broker = BROKERS[broker](folder / "broker")
        self.worker = ConnectWorker(folder / "worker", self.broker.bootstrap_servers)
        self.killed: Counter[str] = Counter()
        self.source: Source | None = None
        self.rebuilt: dict[str, Rebuilt] = {}

    def run(self) -> str:
        """Raises AssertionError, TimeoutError and any error of the servers."""
        try:
            for part in (self.server, self.broker, self.worker):
                part.start()
            self.source = Source(self.database, self.server, self.seed)
            self._connector()
            self.rebuilt = {
                name: Rebuilt(self.broker.bootstrap_servers, f"{self.database.topics}.{name}") for name in TABLES
            }
            self.source.start()
            self._strike()
            self.source.until = CHANGES
            wait_until(self._is_done, "the workload to end", 600)
            self.source.stop()
            self._compare()
            return f"{dict(self.killed)}, {self.source.changed} changes, {self.records()} records"
        finally:
            self._end()

    def _connector(self) -> None:
        self.worker.create(
            "cdc",
            database_hostname="127.0.0.1",
            database_port=str(self.server.port),
            database_user=self.server.user,
            topic_prefix="k",
            poll_interval_ms="50",
            max_queue_size="500",
            decimal_handling_mode="string",
            **self.database.connector,
        )

    def _is_done(self) -> bool:
        assert self.source is not None
        return self.source.changed >= CHANGES

    def records(self) -> int:
        return sum(table.records for table in self.rebuilt.values())

    def _arrived(self) -> int:
        for table in self.rebuilt.values():
            table.read()
        return self.records()

    def _strike(self) -> None:
        """Kill and start again. Half of the time records of the connector were seen since the last time, else it may be anywhere."""
        dice = random.Random(self.seed)
        source, seen = self.source, 0
        assert source is not None
        processes = {"worker": self.worker, "broker": self.broker, "database": self.server.process}
        for number in range(KILLS):
            source.until = CHANGES * (number + 1) // (KILLS + 1)
            if dice.random() < 0.5:
                wait_until(lambda: self._arrived() > seen, "a record of the connector", 300, 0.1)
            time.sleep(dice.uniform(0, 1.5))
            seen = self._arrived()
            victim = dice.choice(("worker", "broker", "database")) if number > 2 else [*processes][number]
            self.killed[victim] += 1
            processes[victim].kill()
            time.sleep(dice.uniform(0.1, 1))
            processes[victim].start()

    def _compare(self) -> None:
        source = self.source
        assert source is not None
        truths = {name: source.table(name) for name in TABLES}
        deadline = time.monotonic() + 300
        while True:
            self._arrived()
            late = {name: self.rebuilt[name].differing(truth) for name, truth in truths.items()}
            if not any(late.values()):
                break
            assert time.monotonic() < deadline, (
                self.killed,
                source.changed,
                self.worker.ask("GET", "/connectors/cdc/status"),
                late,
            )
            time.sleep(0.5)
        assert source.altered >= ALTERS and all(truths.values())

    def _end(self) -> None:
        if self.source is not None:
            self.source.stop()
        for table in self.rebuilt.values():
            table.close()
        self.worker.kill()
        self.broker.kill()
        with suppress(OSError):
            shutil.copy(self.server.process.log, self.folder / "database.log")
        self.server.stop()


KINDS = [
    "postgresql-tidegate",
    *(
        pytest.param(kind, marks=pytest.mark.long)
        for kind in ("mariadb-tidegate", "postgresql-apache", "mariadb-apache", "mysql-tidegate")
    ),
]


@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("kind", KINDS)
def test_tables_are_rebuilt_whatever_is_killed(tmp_path: Path, kind: str, record_property: Any) -> None:
    run_seeds(lambda seed, folder: Scene(folder, kind, seed).run(), seeds(1, 20), tmp_path, record_property)
