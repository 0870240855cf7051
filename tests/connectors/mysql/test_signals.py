"""Signals to the MariaDB and MySQL sources: incremental and blocking snapshots during streaming, and their
notifications.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect.api import RecordBatch
from connect.bench import Bench
from connectors.mysql.source import MariaDbSource, MySqlSource
from tests.servers.fixtures import or_skip
from tests.servers.mariadb import MariaDbServer
from tests.servers.mysql import MySqlServer
from tests.support.debezium.replay_mariadb import settled
from tests.support.debezium.signals import finished, told
from tests.support.debezium.workload import rebuilt

pytestmark = pytest.mark.servers
_numbers = itertools.count(1)


class Shop:
    """A database with 30 orders and a table of signals, and a connector that streams."""

    def __init__(self, server: MariaDbServer | MySqlServer, folder: Path) -> None:
        self.server, self.number = server, next(_numbers)
        self.source = MySqlSource if isinstance(server, MySqlServer) else MariaDbSource
        self.name, self.history = f"signals_{self.number}", folder / "history"
        self.connection = server.connect("")
        self.execute(f"CREATE DATABASE {self.name}")
        self.execute(f"USE {self.name}")
        self.execute("CREATE TABLE orders (id int PRIMARY KEY, word text, big bigint)")
        self.execute("CREATE TABLE signals (id varchar(64) PRIMARY KEY, type varchar(32) NOT NULL, data text)")
        self.execute("CREATE TABLE numbers (seq int PRIMARY KEY)")
        self.execute("INSERT INTO numbers VALUES " + ", ".join(f"({number})" for number in range(1, 31)))
        self.execute("INSERT INTO orders SELECT seq, 'old', seq FROM numbers")

    def execute(self, statement: str, *values: Any) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def bench(self, **more: str) -> Bench:
        properties = {
            "database.hostname": "127.0.0.1",
            "database.port": str(self.server.port),
            "database.user": self.server.user,
            "database.server.id": str(8000 + self.number),
            "database.include.list": self.name,
            "table.include.list": f"{self.name}\\.(orders|keyed.*)",
            "topic.prefix": "t",
            "poll.interval.ms": "20",
            "snapshot.mode": "no_data",
            "include.schema.changes": "false",
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(self.history),
            "signal.data.collection": f"{self.name}.signals",
            "incremental.snapshot.chunk.size": "8",
            "extended.headers.enabled": "false",
        }
        return Bench(self.source, properties | {name.replace("_", "."): value for name, value in more.items()})

    def signal(self, kind: str, *tables: str, **data: Any) -> None:
        data |= {"data-collections": [f"{self.name}.{table}" for table in tables]}
        text = json.dumps({name.replace("_", "-"): value for name, value in data.items()})
        self.execute("INSERT INTO signals VALUES (UUID(), %s, %s)", kind, text)

    def told(self, batches: list[RecordBatch], table: str = "orders") -> list[Any]:
        return told(batches, f"t.{self.name}.{table}")

    def close(self) -> None:
        self.execute(f"DROP DATABASE {self.name}")
        self.connection.close()


@pytest.fixture(scope="module", params=["mariadb", pytest.param("mysql", marks=[pytest.mark.proof, pytest.mark.long])])
def server(request: pytest.FixtureRequest) -> Iterator[MariaDbServer | MySqlServer]:
    if request.param == "mariadb":
        yield request.getfixturevalue("mariadb_server")
        return
    made = or_skip(MySqlServer)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def shop(server: MariaDbServer | MySqlServer, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(server, tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("strategy", ["insert_insert", "insert_delete"])
def test_a_table_is_read_in_chunks_while_it_changes_and_the_task_dies(shop: Shop, strategy: str) -> None:
    bench = shop.bench(incremental_snapshot_watermarking_strategy=strategy)
    with bench.task() as running:
        bench.commit(settled(shop.server, running.task))
        shop.signal("execute-snapshot", "orders")
        received: list[RecordBatch] = []
        while len(shop.told(received)) < 8:
            batches = list(running.task.poll())
            received += batches
            bench.commit(batches)
    shop.execute("UPDATE orders SET word = 'new' WHERE id % 3 = 0")
    shop.execute("DELETE FROM orders WHERE id = 20")
    shop.execute("INSERT INTO orders VALUES (100, 'beyond the end', 1)")
    with bench.task() as running:
        received += finished(running.task, bench)
        received += settled(shop.server, running.task)
    events = shop.told(received)
    # none comes twice as read, none is left out that was not told as changed, and the changes are all there
    read = [key for key, op, mark in events if op == "r" and mark == "incremental"]
    assert read == sorted(set(read)) and {key for key, *_ in events} == {*range(1, 31), 100}
    assert [key for key, op, _ in events if op == "u"] == list(range(3, 31, 3))
    truth = {(i,): {"id": i, "word": w, "big": b} for i, w, b in shop.execute("SELECT * FROM orders")}
    assert rebuilt([batch for batch in received if batch.topic.endswith("orders")])["orders"] == truth
    kinds = {row[0] for row in shop.execute("SELECT type FROM signals")}
    closing = {"snapshot-window-close", "snapshot-window-open"} if strategy == "insert_insert" else set()
    assert kinds - {"execute-snapshot"} == closing


KEYS = {
    "d, b": ("d decimal(20, 3), b bigint unsigned", "seq / 8 - 1.5, 18446744073709551000 + seq % 3"),
    "e, t": ("e enum('z', 'm', 'a'), t varchar(20)", "1 + seq % 3, concat('it''s \\\\ ', seq, char(233 USING latin1))"),
    "y, n": (
        "y varbinary(9), n datetime(6)",
        "unhex(hex(seq * 7919 % 256)), '2024-01-01' + INTERVAL seq * 1000001 MICROSECOND",
    ),
}


def test_keys_of_all_kinds_are_read_in_the_server_s_order_without_writing(shop: Shop) -> None:
    tables = [f"keyed_{number}" for number in range(len(KEYS))]
    for table, (key, (columns, values)) in zip(tables, KEYS.items(), strict=True):
        shop.execute(f"CREATE TABLE {table} ({columns}, number int, PRIMARY KEY ({key}))")
        shop.execute(f"INSERT INTO {table} SELECT {values}, seq FROM numbers")
    bench = shop.bench(read_only="true")
    with bench.task() as running:
        bench.commit(settled(shop.server, running.task))
        condition = [{"data-collection": f"{shop.name}.*", "filter": "number > 5"}]
        shop.signal("execute-snapshot", *tables, additional_conditions=condition)
        batches = finished(running.task, bench)
    for table, key in zip(tables, KEYS, strict=True):
        read = [r.value["after"]["number"] for b in batches if b.topic.endswith(table) for r in b.records()]
        assert read == [row[0] for row in shop.execute(f"SELECT number FROM {table} WHERE number > 5 ORDER BY {key}")]
    assert [row[0] for row in shop.execute("SELECT count(*) FROM signals")] == [1]


def test_a_table_altered_while_the_stream_is_behind_is_read_as_it_became(shop: Shop) -> None:
    bench = shop.bench(max_queue_size="1")
    with bench.task() as running:
        bench.commit(settled(shop.server, running.task))
        shop.signal("execute-snapshot", "orders")
        shop.execute("UPDATE orders SET word = 'new' WHERE id < 4")
        shop.execute("ALTER TABLE orders DROP COLUMN big, MODIFY word varchar(50) FIRST, ADD more int DEFAULT 7")
        shop.execute("UPDATE orders SET word = 'newer' WHERE id < 3")
        batches = finished(running.task, bench)
        batches += settled(shop.server, running.task)
    truth = {(i,): {"word": w, "id": i, "more": m} for w, i, m in shop.execute("SELECT * FROM orders")}
    assert rebuilt([batch for batch in batches if batch.topic.endswith("orders")])["orders"] == truth


def test_a_blocking_snapshot_reads_tables_and_the_stream_goes_on(shop: Shop) -> None:
    bench = shop.bench()
    with bench.task() as running:
        bench.commit(settled(shop.server, running.task))
        chosen = [
            {"data-collection": f"{shop.name}.orders", "filter": f"SELECT * FROM {shop.name}.orders WHERE id < 4"}
        ]
        shop.signal("execute-snapshot", "orders", type="BLOCKING", additional_conditions=chosen)
        received: list[RecordBatch] = []
        while not shop.told(received):
            received += running.task.poll()
        shop.execute("UPDATE orders SET word = 'later' WHERE id = 1")
        while len(shop.told(received)) < 4:
            received += running.task.poll()
    assert shop.told(received) == [(1, "r", "first"), (2, "r", "true"), (3, "r", "last"), (1, "u", "false")]


def test_snapshots_are_told_of_in_a_topic(shop: Shop) -> None:
    bench = shop.bench(
        snapshot_mode="initial",
        notification_enabled_channels="sink,log",
        notification_sink_topic_name="told",
    )
    with bench.task() as running:
        batches = settled(shop.server, running.task)
        bench.commit(batches)
        shop.signal("execute-snapshot", "orders")
        batches += finished(running.task, bench)
    notes = [record.value for batch in batches if batch.topic == "told" for record in batch.records()]
    first = ["IN_PROGRESS", "TABLE_SCAN_COMPLETED"]
    assert [note["type"] for note in notes if note["aggregate_type"] == "Initial Snapshot"] == [
        *("STARTED", *first, "COMPLETED")
    ]
    assert [note["type"] for note in notes if note["aggregate_type"] == "Incremental Snapshot"] == [
        *("STARTED", *["IN_PROGRESS"] * 4, "TABLE_SCAN_COMPLETED", "COMPLETED")
    ]
    done = [note["additional_data"] for note in notes if note["type"] == "TABLE_SCAN_COMPLETED"]
    assert [(scan["scanned_collection"], scan["total_rows_scanned"]) for scan in done] == [
        (f"{shop.name}.orders", "30"),
        (f"{shop.name}.orders", "30"),
    ]
