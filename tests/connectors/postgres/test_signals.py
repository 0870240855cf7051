"""Signals to the PostgreSQL source: incremental and blocking snapshots during streaming."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from connect.api import RecordBatch
from connect.bench import Bench
from connectors.postgres.setup import drop_slot
from connectors.postgres.source import PostgresSource
from tests.servers.postgres import PostgresServer
from tests.support.debezium.replay import settled
from tests.support.debezium.signals import finished, told
from tests.support.debezium.workload import rebuilt
from tidegate.kit.config import validate

pytestmark = pytest.mark.servers


class Shop:
    """A database with 30 orders and a table of signals, and a connector that streams."""

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.server, self.name = server, name
        with server.connect("postgres") as root:
            root.execute(f"CREATE DATABASE {name}".encode())
        self.connection = server.connect(name)
        self.execute("CREATE TABLE orders (id int PRIMARY KEY, word text, big bigint)")
        self.execute("CREATE TABLE signals (id text PRIMARY KEY, type text, data text)")
        self.execute("INSERT INTO orders SELECT g, 'old', g FROM generate_series(1, 30) g")

    def execute(self, statement: str, *values: Any) -> Any:
        return self.connection.execute(statement.encode(), values or None)

    def bench(self, **more: str) -> Bench:
        properties = {
            "database.hostname": "127.0.0.1",
            "database.port": str(self.server.port),
            "database.user": self.server.user,
            "database.dbname": self.name,
            "topic.prefix": "t",
            "slot.name": self.name,
            "poll.interval.ms": "20",
            "snapshot.mode": "no_data",
            "table.include.list": "public.orders",
            "publication.autocreate.mode": "filtered",
            "signal.data.collection": "public.signals",
            "incremental.snapshot.chunk.size": "8",
            "status.update.interval.ms": "10",
            "extended.headers.enabled": "false",
        }
        return Bench(PostgresSource, properties | {name.replace("_", "."): value for name, value in more.items()})

    def signal(self, kind: str, **data: Any) -> None:
        text = json.dumps({name.replace("_", "-"): value for name, value in data.items()})
        self.execute("INSERT INTO signals VALUES (gen_random_uuid(), %s, %s)", kind, text)

    def close(self) -> None:
        drop_slot(self.connection, self.name)
        self.connection.close()


@pytest.fixture
def shop(postgres_server: PostgresServer, request: pytest.FixtureRequest) -> Iterator[Shop]:
    made = Shop(postgres_server, f"signals_{abs(hash(request.node.name))}")
    yield made
    made.close()


def orders(batches: list[RecordBatch]) -> list[Any]:
    return told(batches, "t.public.orders")


@pytest.mark.parametrize("strategy", ["insert_insert", "insert_delete"])
def test_a_table_is_read_in_chunks_while_it_changes_and_the_task_dies(shop: Shop, strategy: str) -> None:
    bench = shop.bench(incremental_snapshot_watermarking_strategy=strategy)
    with bench.task() as running:
        bench.commit(settled(running.task, quiet=2))
        shop.signal("execute-snapshot", data_collections=["public.orders"])
        received: list[RecordBatch] = []
        while len(orders(received)) < 8:
            batches = list(running.task.poll())
            received += batches
            bench.commit(batches)
    shop.execute("UPDATE orders SET word = 'new' WHERE id % 3 = 0")
    shop.execute("DELETE FROM orders WHERE id = 20")
    shop.execute("INSERT INTO orders VALUES (100, 'beyond the end', 1)")
    with bench.task() as running:
        received += finished(running.task, bench)
        received += settled(running.task, quiet=2)
    events = orders(received)
    # none comes twice as read, none is left out that was not told as changed, and the changes are all there
    read = [key for key, op, mark in events if op == "r" and mark == "incremental"]
    assert read == sorted(set(read)) and {key for key, *_ in events} == {*range(1, 31), 100}
    assert [key for key, op, _ in events if op == "u"] == list(range(3, 31, 3))
    truth = {(i,): {"id": i, "word": w, "big": b} for i, w, b in shop.execute("SELECT * FROM orders").fetchall()}
    assert rebuilt([batch for batch in received if batch.topic == "t.public.orders"])["orders"] == truth
    kinds = {row[0] for row in shop.execute("SELECT type FROM signals").fetchall()}
    closing = {"snapshot-window-close", "snapshot-window-open"} if strategy == "insert_insert" else set()
    assert kinds - {"execute-snapshot"} == closing


def test_without_writing_chunks_are_told_apart_by_positions(shop: Shop) -> None:
    bench = shop.bench(read_only="true")
    with bench.task() as running:
        bench.commit(settled(running.task, quiet=2))
        condition = [{"data-collection": "public.orders", "filter": "id > 20"}]
        shop.signal(
            "execute-snapshot", data_collections=["public.orders"], additional_conditions=condition, surrogate_key="big"
        )
        batches = finished(running.task, bench)
    assert orders(batches) == [(n, "r", "incremental") for n in range(21, 31)]
    assert shop.execute("SELECT count(*) FROM signals").fetchone() == (1,)


def test_a_blocking_snapshot_reads_tables_and_the_stream_goes_on(shop: Shop) -> None:
    bench = shop.bench()
    with bench.task() as running:
        bench.commit(settled(running.task, quiet=2))
        chosen = [{"data-collection": "public.orders", "filter": "SELECT * FROM orders WHERE id < 4"}]
        shop.signal(
            "execute-snapshot", type="BLOCKING", data_collections=["public.orders"], additional_conditions=chosen
        )
        received: list[RecordBatch] = []
        while not orders(received):
            received += running.task.poll()
        shop.execute("UPDATE orders SET word = 'later' WHERE id = 1")
        while len(orders(received)) < 4:
            received += running.task.poll()
    assert orders(received) == [(1, "r", "first"), (2, "r", "true"), (3, "r", "last"), (1, "u", "false")]


def test_signals_of_a_file_need_no_table_for_blocking_snapshots(shop: Shop, tmp_path: Path) -> None:
    """An incremental snapshot then has no table to mark its chunks in: it is refused in the log, and the task
    continues.
    """
    signals = tmp_path / "signals.jsonl"
    bench = shop.bench(signal_enabled_channels="file", signal_file=str(signals), signal_poll_interval_ms="50")
    del bench.properties["signal.data.collection"]
    assert [
        error for judged in validate(PostgresSource.config_class, bench.properties) for error in judged.errors
    ] == []
    with bench.task() as running:
        settled(running.task, quiet=2)
        incremental, blocking = (
            {"id": kind, "type": "execute-snapshot", "data": {"data-collections": ["public.orders"], "type": kind}}
            for kind in ("INCREMENTAL", "BLOCKING")
        )
        signals.write_text(json.dumps(incremental) + "\n")
        shop.execute("INSERT INTO orders VALUES (200, 'while it is refused', 1)")
        batches = settled(running.task, quiet=10)
        assert [key for key, *_ in orders(batches)] == [200]
        signals.write_text(json.dumps(blocking) + "\n")
        batches = []
        while len(orders(batches)) < 31:
            batches += running.task.poll()
    assert {op for _, op, _ in orders(batches)} == {"r"}


def test_signals_of_a_topic_need_no_table(shop: Shop, tidegate_broker: Any) -> None:
    """Blocking snapshots never need one; incremental ones do not where chunks are ordered by log positions."""
    servers, topic = tidegate_broker.bootstrap_servers, f"{shop.name}-signal"
    bench = shop.bench(
        signal_enabled_channels="kafka",
        signal_kafka_topic=topic,
        signal_kafka_bootstrap_servers=servers,
        read_only="true",
    )
    bench.properties |= {"signal.poll.interval.ms": "50", "signal.kafka.groupId": shop.name}
    del bench.properties["signal.data.collection"]
    assert [
        error for judged in validate(PostgresSource.config_class, bench.properties) for error in judged.errors
    ] == []
    producer = Producer({"bootstrap.servers": servers})

    def signal(key: str, kind: str) -> None:
        data = {"data-collections": ["public.orders"], "type": kind}
        producer.produce(topic, json.dumps({"id": kind, "type": "execute-snapshot", "data": data}), key)
        assert producer.flush(30) == 0

    signal("another connector", "BLOCKING")
    with bench.task() as running:
        bench.commit(settled(running.task, quiet=2))
        signal("t", "INCREMENTAL")
        incremental = finished(running.task, bench)
        signal("t", "BLOCKING")
        blocking: list[RecordBatch] = []
        while len(orders(blocking)) < 30:
            blocking += running.task.poll()
    assert orders(incremental) == [(n, "r", "incremental") for n in range(1, 31)]
    assert [key for key, *_ in orders(blocking)] == list(range(1, 31))
    assert {mark for *_, mark in orders(blocking)} == {"first", "true", "last"}
