"""An initial snapshot of many tables whose worker is killed again and again, while rows of all tables change: the tables rebuilt
from the topics equal the source's, and tables whose end was committed are not read again.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psycopg
import pymysql
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.proofs import effort, run_seeds, seeds
from tests.proofs.test_cdc_kills import DATABASES
from tests.servers.fixtures import or_skip
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.proof, pytest.mark.long, pytest.mark.servers, pytest.mark.timeout(3600)]
TABLES: Final = [f"t{number:02d}" for number in range(30)]
ROWS: Final = 20_000
KILLS: Final = effort(3, 6)


class _Changes(threading.Thread):
    """Changes rows of all tables until it is stopped."""

    def __init__(self, connection: Any, seed: int) -> None:
        super().__init__(daemon=True)
        self._connection, self._dice, self.stopping, self.changed = (
            connection,
            random.Random(seed),
            threading.Event(),
            0,
        )

    def close(self) -> None:
        self.stopping.set()
        self.join()
        self._connection.close()

    def run(self) -> None:
        with self._connection.cursor() as cursor:
            while not self.stopping.wait(0.002):
                table, number = self._dice.choice(TABLES), self._dice.randrange(ROWS + 200)
                statement = self._dice.choice(
                    (
                        f"UPDATE {table} SET word = 'changed {self._dice.random()}' WHERE id = {number}",
                        f"DELETE FROM {table} WHERE id = {number}",
                        f"DELETE FROM {table} WHERE id = {number + ROWS}",
                    )
                )
                self.changed += cursor.execute(statement) if isinstance(self._connection, pymysql.Connection) else 1
                with suppress(psycopg.errors.UniqueViolation, pymysql.err.IntegrityError):
                    cursor.execute(f"INSERT INTO {table} VALUES ({number + ROWS}, 'new {self._dice.random()}')")


class _Topics:
    """The topics replayed; ``reads`` counts the rows that snapshots delivered of each table."""

    def __init__(self, bootstrap: str, names: dict[str, str]) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "replay", "enable.partition.eof": True})
        self._tables = names
        self.rows: dict[str, dict[int, str]] = {table: {} for table in names.values()}
        self.reads: Counter[str] = Counter()

    def close(self) -> None:
        self._consumer.close()

    def replay(self) -> None:
        self.rows = {table: {} for table in self._tables.values()}
        self.reads.clear()
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in self._tables])
        ended = 0
        while ended < len(self._tables):
            message = self._consumer.poll(10)
            assert message is not None
            if message.error() is not None:
                ended += 1
                continue
            table = self._tables[message.topic()]
            key = json.loads(message.key())["id"]
            event = None if message.value() is None else json.loads(message.value())
            if event is None or event["op"] == "d":
                self.rows[table].pop(key, None)
                continue
            self.rows[table][key] = event["after"]["word"]
            self.reads[table] += event["op"] == "r"


def _wait_until_alike(topics: _Topics, truth: dict[str, dict[int, str]]) -> None:
    deadline = time.monotonic() + 300
    while True:
        topics.replay()
        wrong = {table: topics.rows[table].items() ^ truth[table].items() for table in TABLES}
        unlike = {table: sorted(rows)[:4] for table, rows in wrong.items() if rows}
        if not unlike:
            return
        assert time.monotonic() < deadline, unlike
        time.sleep(1)


def _run(kind: str, seed: int, folder: Path) -> str:
    database = DATABASES[kind]
    server = or_skip(database.make)
    broker = TidegateBroker(folder / "broker")
    worker = ConnectWorker(folder / "worker", broker.bootstrap_servers, {"offset.flush.interval.ms": "50"})
    dice, changes = random.Random(seed), None
    for part in (server, broker):
        part.start()
    try:
        with server.connect() as connection, connection.cursor() as cursor:
            for table in TABLES:
                cursor.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, word varchar(200))")
                for begin in range(0, ROWS, 1000):
                    rows = ", ".join(f"({n}, 'first {n} {'x' * 80}')" for n in range(begin, begin + 1000))
                    cursor.execute(f"INSERT INTO {table} VALUES {rows}")
            connection.commit()
        changing = server.connect()
        changing.autocommit(True) if isinstance(changing, pymysql.Connection) else None
        changes = _Changes(changing, seed)
        changes.start()
        worker.start()
        worker.create(
            "cdc",
            database_hostname="127.0.0.1",
            database_port=str(server.port),
            database_user=server.user,
            topic_prefix="k",
            poll_interval_ms="20",
            max_queue_size="500",
            producer_override_linger_ms="20",
            **database.connector,
        )

        def committed() -> dict[str, Any]:
            offsets = worker.ask("GET", "/connectors/cdc/offsets")["offsets"]
            return dict(offsets[0]["offset"]) if offsets else {}

        def read() -> int | None:
            """The number of tables that the committed offset says were read; None once the snapshot is complete."""
            offset = committed()
            if offset and "tidegate_snapshot_tables" not in offset:
                return None
            return len(json.loads(offset.get("tidegate_snapshot_tables", "[]")))

        resumed, known = 0, 0
        for _ in range(KILLS):
            aim = known + dice.randrange(1, 3)
            wait_until(lambda aim=aim: (so_far := read()) is None or so_far >= aim, "tables", 300, 0.02)
            if read() is None:
                break
            worker.kill()
            worker.start()
            resumed, known = resumed + 1, read() or 0
        wait_until(lambda: read() is None, "the snapshot's end", 600, 0.5)
        changes.stopping.set()
        changes.join()
        with changing.cursor() as cursor:
            truth = {}
            for table in TABLES:
                cursor.execute(f"SELECT id, word FROM {table}")
                truth[table] = dict(cursor.fetchall())
        topics = _Topics(broker.bootstrap_servers, {f"{database.topics}.{table}": table for table in TABLES})
        try:
            _wait_until_alike(topics, truth)
        finally:
            topics.close()
        total = sum(topics.reads.values())
        again = [table for table in TABLES if topics.reads[table] > 1.2 * ROWS]
        assert resumed >= 2 and len(again) < len(TABLES) / 2, (resumed, topics.reads)
        return f"{resumed} kills, {changes.changed} changes, {len(again)} of {len(TABLES)} tables read again, {total} rows read"
    finally:
        worker.kill()
        broker.kill()
        if changes is not None:
            changes.close()
        server.stop()


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_snapshots_go_on_whatever_is_killed(tmp_path: Path, kind: str, record_property: Any) -> None:
    run_seeds(lambda seed, folder: _run(kind, seed, folder), seeds(1, 5), tmp_path, record_property)
