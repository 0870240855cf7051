"""Signals to the SQLite source: incremental and blocking snapshots during streaming."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connect.api import RecordBatch
from connect.bench import Bench
from connectors.sqlite.source import SqliteSource
from tests.proofs import effort
from tests.support.debezium.workload import rebuilt


class Shop:
    """A database with 100 orders and a table of signals, and a connector that read nothing of it yet."""

    def __init__(self, folder: Path) -> None:
        self.connection = sqlite3.connect(folder / "shop.db", isolation_level=None)
        for statement in (
            "PRAGMA journal_mode = wal",
            "PRAGMA synchronous = OFF",
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, word TEXT)",
            "CREATE TABLE pairs (a INT NOT NULL, b TEXT NOT NULL, n INT, PRIMARY KEY (a, b))",
            "CREATE TABLE signals (id TEXT PRIMARY KEY, type TEXT, data TEXT)",
            "INSERT INTO orders WITH n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT i, 'old' FROM n",
            "INSERT INTO pairs SELECT id % 5, 'b' || id, id FROM orders WHERE id <= 20",
        ):
            self.connection.execute(statement)
        self.file = folder / "signals.txt"
        self.bench = Bench(
            SqliteSource,
            {
                "database.path": str(folder / "shop.db"),
                "topic.prefix": "t",
                "poll.interval.ms": "1",
                "snapshot.mode": "no_data",
                "signal.data.collection": "main.signals",
                "signal.enabled.channels": "source,file",
                "signal.file": str(self.file),
                "signal.poll.interval.ms": "1",
                "incremental.snapshot.chunk.size": "7",
                "extended.headers.enabled": "false",
            },
        )

    def signal(self, kind: str, **data: Any) -> None:
        named = {name.replace("_", "-"): value for name, value in data.items()}
        text = json.dumps(named)
        self.connection.execute("INSERT OR REPLACE INTO signals VALUES ('s', ?, ?)", [kind, text])


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.connection.close()


def settled(task: Any, quiet: int = 4) -> list[RecordBatch]:
    batches: list[RecordBatch] = []
    idle = 0
    while idle < quiet:
        polled = task.poll()
        batches += polled
        idle = 0 if polled else idle + 1
    return batches


def read(batches: list[RecordBatch], table: str = "orders") -> list[Any]:
    """Keys of the rows that a snapshot read, in their order, with the mark of each."""
    return [
        (*record.key.values(), record.value["source"]["snapshot"])
        for batch in batches
        if batch.topic == f"t.main.{table}"
        for record in batch.records()
        if record.value is not None and record.value["op"] == "r"
    ]


def test_a_table_is_read_in_chunks_by_its_key(shop: Shop) -> None:
    with shop.bench.task() as running:
        assert settled(running.task) == []
        shop.signal("execute-snapshot", data_collections=["main.(orders|pairs)"])
        batches = settled(running.task)
    assert read(batches) == [(n, "incremental") for n in range(1, 101)]
    truth = shop.connection.execute("SELECT a, b, 'incremental' FROM pairs ORDER BY a, b").fetchall()
    assert read(batches, "pairs") == truth
    assert max(len(batch) for batch in batches) == 7
    offsets = [dict(batch.source_offset or {}) for batch in batches]
    assert "incremental_snapshot_collections" in offsets[0]
    assert set(offsets[-1]) == {"log", "seq"}


def test_conditions_and_another_column_to_read_by(shop: Shop) -> None:
    with shop.bench.task() as running:
        settled(running.task)
        condition = [{"data-collection": "main.pairs", "filter": "n > 10 AND n <= 14"}]
        shop.signal(
            "execute-snapshot", data_collections=["main.pairs"], additional_conditions=condition, surrogate_key="n"
        )
        assert [row[1] for row in read(settled(running.task), "pairs")] == ["b11", "b12", "b13", "b14"]


@pytest.mark.parametrize("seed", range(effort(2, 30)))
def test_a_snapshot_is_right_while_rows_change_and_tasks_die(shop: Shop, seed: int) -> None:
    dice = random.Random(seed)
    run = shop.connection.execute
    seen: list[RecordBatch] = []
    with shop.bench.task() as running:
        shop.bench.commit(running.task.poll())
        shop.signal("execute-snapshot", data_collections=["main.orders"])
    finished = False
    while not finished:
        with shop.bench.task() as running:
            for _ in range(dice.randrange(1, 12)):
                for _ in range(dice.randrange(3)):
                    number = dice.randrange(1, 120)
                    match dice.randrange(3):
                        case 0:
                            run("INSERT OR REPLACE INTO orders VALUES (?, ?)", [number, f"n{dice.random()}"])
                        case 1:
                            run("UPDATE orders SET word = word || '!' WHERE id = ?", [number])
                        case _:
                            run("DELETE FROM orders WHERE id = ?", [number])
                batches = list(running.task.poll())
                seen += batches
                done = batches[: dice.randrange(len(batches) + 1)] if dice.random() < 0.3 else batches
                shop.bench.commit(done)
                if len(done) < len(batches):
                    break
                asked = any("incremental_snapshot_collections" in (b.source_offset or {}) for b in seen)
                last = shop.bench.offset({"server": "t"}) or {}
                finished = asked and "incremental_snapshot_collections" not in last
                if finished:
                    break
    with shop.bench.task() as running:
        seen += settled(running.task)
    truth = {(id,): {"id": id, "word": word} for id, word in run("SELECT id, word FROM orders")}
    assert rebuilt(seen)["orders"] == truth
    reread = [key for key, _ in read(seen)]
    assert len(reread) >= 60


def test_a_snapshot_is_paused_resumed_and_stopped(shop: Shop) -> None:
    with shop.bench.task() as running:
        settled(running.task)
        shop.signal("execute-snapshot", data_collections=["main.orders", "main.pairs"])
        batches = list(running.task.poll()) + list(running.task.poll())
        shop.signal("pause-snapshot")
        batches += settled(running.task)
        assert 0 < len(read(batches)) < 100
        shop.signal("stop-snapshot", data_collections=["main.orders"])
        shop.signal("resume-snapshot")
        batches += settled(running.task)
        assert len(read(batches)) < 100 and len(read(batches, "pairs")) == 20
        shop.signal("execute-snapshot", data_collections=["main.orders"])
        batches = list(running.task.poll())
        shop.signal("stop-snapshot")
        batches += settled(running.task)
        assert len(read(batches)) <= 14
        assert set(batches[-1].source_offset or {}) == {"log", "seq"}


def test_a_file_brings_signals_and_nonsense_is_passed_over(shop: Shop) -> None:
    lines = (
        "no json",
        '{"type": 5}',
        '{"type": "fly"}',
        '{"type": "execute-snapshot", "data": {"data-collections": "x"}}',
        '{"type": "execute-snapshot", "data": {"data-collections": ["("]}}',
        '{"type": "execute-snapshot", "data": {"data-collections": ["main.none"]}}',
        '{"type": "log", "data": {"message": "here: {}"}}',
        '{"id": "1", "type": "execute-snapshot", "data": {"data-collections": ["main.pairs"], '
        '"additional-conditions": [{"data-collection": "main.pairs", "filter": "no such"}]}}',
        '{"id": "2", "type": "execute-snapshot", "data": {"data-collections": ["main.orders"]}}',
    )
    with shop.bench.task() as running:
        settled(running.task)
        shop.file.write_text("\n".join(lines))
        received: list[RecordBatch] = []
        while not read(received):
            received += running.task.poll()
        received += settled(running.task)
    assert len(read(received)) == 100 and read(received, "pairs") == [] and shop.file.read_text() == ""


def test_a_blocking_snapshot_stops_the_stream_until_it_ends(shop: Shop) -> None:
    with shop.bench.task() as running:
        settled(running.task)
        chosen = [{"data-collection": "main.pairs", "filter": "SELECT * FROM pairs WHERE n <= 3"}]
        shop.signal(
            "execute-snapshot",
            type="blocking",
            data_collections=["main.orders", "main.pairs"],
            additional_conditions=chosen,
        )
        while not read(batches := list(running.task.poll())):
            pass
        shop.connection.execute("INSERT INTO orders VALUES (101, 'later')")
        batches += settled(running.task)
    assert [mark for _, mark in read(batches)] == ["first", *["true"] * 98, "last_in_data_collection"]
    assert [row[-1] for row in read(batches, "pairs")] == ["first_in_data_collection", "true", "last"]
    assert next(iter(batches[-1].records())).key == {"id": 101}
