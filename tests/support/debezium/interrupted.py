"""An initial snapshot that is killed again and again while its tables change, and the tables rebuilt from what it delivered."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from connect.api import RecordBatch
from connect.bench import Bench
from tests.support.debezium.workload import rebuilt

__all__ = ["TABLES", "statements_of_tables", "through_kills"]

TABLES: Final = tuple(f"part{number}" for number in range(12))
_ROWS: Final = 20


def statements_of_tables() -> list[str]:
    """Make the tables; one of them is empty."""
    made = [f"CREATE TABLE {name} (id int PRIMARY KEY, word varchar(40))" for name in TABLES]
    for name in TABLES[1:]:
        rows = ", ".join(f"({n}, 'first {n}')" for n in range(_ROWS))
        made.append(f"INSERT INTO {name} VALUES {rows}")
    return made


def _change(dice: random.Random, execute: Callable[[str], Any], names: Sequence[str]) -> None:
    """A few changes of every table, so also of those that were read, are being read and will be read."""
    for name in names:
        for _ in range(dice.randrange(4)):
            number = dice.randrange(_ROWS * 2)
            execute(f"DELETE FROM {name} WHERE id = {number}")
            if dice.random() < 0.6:
                execute(f"INSERT INTO {name} (id, word) VALUES ({number}, 'w{dice.random()}')")
            execute(f"UPDATE {name} SET word = 'u{dice.random()}' WHERE id = {dice.randrange(_ROWS)}")


def through_kills(
    bench: Bench,
    execute: Callable[[str], Any],
    rows: Callable[[str], Sequence[tuple[Any, ...]]],
    settled: Callable[[Any], Sequence[RecordBatch]],
    seed: int,
    *,
    kills: int = 2,
) -> None:
    """Kill snapshots in the middle of tables, then let one end. Raises AssertionError where the tables differ, or where
    a table whose end was committed is read again.
    """
    dice, seen, names = random.Random(seed), list[RecordBatch](), [*TABLES]
    known: set[str] = set()
    for kill in range(kills + 1):
        before = _done(bench)
        assert before >= known
        known = before
        with bench.task() as running:
            made: list[RecordBatch] = []
            if kill == kills:
                made += settled(running.task)
                bench.commit(made)
            else:
                while sum(map(len, made)) < _ROWS * 3.2:
                    made += (batches := list(running.task.poll()))
                    if batches and dice.random() < 0.4:
                        _change(dice, execute, names)
                bench.commit(made[: len(made) - dice.randrange(3)])
        seen += made
        again = Counter(
            b.topic.rpartition(".")[2]
            for b in made
            for r in b.records()
            if r.value is not None and r.value["op"] == "r"
        )
        assert not before & set(again), (kill, before, again)
        if kill == 1:
            execute("CREATE TABLE later (id int PRIMARY KEY, word varchar(40))")
            execute("INSERT INTO later VALUES (1, 'x'), (2, 'y')")
            execute(f"ALTER TABLE {TABLES[-1]} ADD COLUMN more int DEFAULT 7")
            names.append("later")
        _change(dice, execute, names)
    assert known, "no table was read to its end before a kill"
    with bench.task() as running:
        seen += (last := settled(running.task))
        bench.commit(last)
    assert all(r.value is None or r.value["op"] != "r" for b in last for r in b.records())
    tables = rebuilt(seen)
    for name in names:
        truth = {row[0]: row[1] for row in rows(name)}
        assert {key: row["word"] for (key,), row in tables.get(name, {}).items()} == truth, name


def _done(bench: Bench) -> set[str]:
    """The tables that the committed offset says were read."""
    offset = bench.offset({"server": "t"}) or {}
    return {name.rpartition(".")[2] for name in json.loads(offset.get("tidegate_snapshot_tables", "[]"))}
