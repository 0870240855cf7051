"""A random workload on a few tables, and the tables as they follow from change events."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, Final

import psycopg

from connect.api import RecordBatch

__all__ = ["Workload", "rebuilt"]

_TABLES: Final = ("accounts", "notes")


class Workload:
    """Transactions of inserts, updates, deletes and key changes, some rolled back, some interleaved, some long; now and then DDL."""

    def __init__(self, connections: Iterable[psycopg.Connection[Any]], seed: int) -> None:
        self._connections = list(connections)
        self._random = random.Random(seed)
        self._added = 0

    def reconnect(self, connections: Iterable[psycopg.Connection[Any]]) -> None:
        """Go on over other connections; what was open on the old ones is lost."""
        self.close()
        self._connections = list(connections)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def prepare(self) -> None:
        run = self._connections[0].execute
        run("CREATE TABLE accounts (id int PRIMARY KEY, name text, amount numeric(12, 2), at timestamp)")
        run("CREATE TABLE notes (a int, b text, big text, PRIMARY KEY (a, b)); ALTER TABLE notes REPLICA IDENTITY FULL")
        run("INSERT INTO accounts SELECT g, 'old ' || g, g / 4.0, '2024-01-01' FROM generate_series(1, 50) g")

    def step(self) -> None:
        """One round: two transactions whose statements take turns, on keys that do not meet."""
        dice = self._random
        first, second = self._connections[:2]
        if dice.random() < 0.04:
            self._ddl()
        first.execute("BEGIN")
        second.execute("BEGIN")
        for _ in range(dice.choice((1, 3, 10, 60))):
            self._change(first, 0)
            self._change(second, 1)
        for connection in (first, second) if dice.random() < 0.5 else (second, first):
            connection.execute("COMMIT" if dice.random() < 0.85 else "ROLLBACK")

    def _ddl(self) -> None:
        self._added += 1
        column = f"extra{self._added}"
        table = self._random.choice(_TABLES)
        self._connections[0].execute(
            f"ALTER TABLE {table} ADD IF NOT EXISTS {column} int DEFAULT {self._added}".encode()
        )

    def _change(self, connection: psycopg.Connection[Any], parity: int) -> None:
        dice = self._random
        number = dice.randrange(100) * 2 + parity
        roll = dice.random()
        if roll < 0.35:
            connection.execute(
                "INSERT INTO accounts (id, name, amount) VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name",
                [number, f"n{dice.random()}", round(dice.random() * 1000, 2)],
            )
        elif roll < 0.5:
            connection.execute("UPDATE accounts SET amount = amount + 1 WHERE id = %s", [number])
        elif roll < 0.6:
            connection.execute("DELETE FROM accounts WHERE id = %s", [number])
        elif roll < 0.7:
            other = dice.randrange(100) * 2 + parity
            connection.execute(
                "UPDATE accounts SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM accounts WHERE id = %s)",
                [other, number, other],
            )
        elif roll < 0.9:
            connection.execute(
                "INSERT INTO notes (a, b, big) VALUES (%s, %s, repeat(md5(%s), %s)) ON CONFLICT (a, b) DO UPDATE SET b = notes.b",
                [number, dice.choice("xyz"), str(number), dice.choice((1, 200))],
            )
        else:
            connection.execute("DELETE FROM notes WHERE a = %s", [number])


def rebuilt(batches: Iterable[RecordBatch]) -> dict[str, dict[Any, Any]]:
    """What the events leave of each table: rows by key."""
    tables: dict[str, dict[Any, Any]] = {}
    for batch in batches:
        table = tables.setdefault(batch.topic.rpartition(".")[2], {})
        for record in batch.records():
            if record.value is not None and record.value["op"] == "t":
                table.clear()
                continue
            key = tuple(record.key.values())
            if record.value is None or record.value["op"] == "d":
                table.pop(key, None)
            else:
                table[key] = record.value["after"]
    return tables
