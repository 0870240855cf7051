"""A random workload on a few tables, and the tables as they follow from change events."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from connect.api import RecordBatch

__all__ = ["MariaDbWorkload", "Workload", "rebuilt"]

_TABLES: Final = ("accounts", "notes")


class Workload:
    """Transactions of inserts, updates, deletes and key changes, some rolled back, some interleaved, some long; now and then DDL.

    Over connections of psycopg; ``statements`` are PostgreSQL's.
    """

    statements: ClassVar[dict[str, str]] = {
        "put": "INSERT INTO accounts (id, name, amount) VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name",
        "add": "UPDATE accounts SET amount = amount + 1 WHERE id = %s",
        "drop": "DELETE FROM accounts WHERE id = %s",
        "move": "UPDATE accounts SET id = %s WHERE id = %s AND NOT EXISTS (SELECT FROM accounts WHERE id = %s)",
        "note": "INSERT INTO notes (a, b, big) VALUES (%s, %s, repeat(md5(%s), %s)) ON CONFLICT (a, b) DO UPDATE SET b = notes.b",
        "forget": "DELETE FROM notes WHERE a = %s",
        "alter": "ALTER TABLE {table} ADD IF NOT EXISTS {column} int DEFAULT {number}",
    }
    tables: ClassVar[tuple[str, ...]] = (
        "CREATE TABLE accounts (id int PRIMARY KEY, name text, amount numeric(12, 2), at timestamp)",
        "CREATE TABLE notes (a int, b text, big text, PRIMARY KEY (a, b))",
        "ALTER TABLE notes REPLICA IDENTITY FULL",
        "INSERT INTO accounts SELECT g, 'old ' || g, g / 4.0, '2024-01-01' FROM generate_series(1, 50) g",
    )

    def __init__(self, connections: Iterable[Any], seed: int) -> None:
        self._connections = list(connections)
        self._random = random.Random(seed)
        self._added = 0

    def reconnect(self, connections: Iterable[Any]) -> None:
        """Go on over other connections; what was open on the old ones is lost."""
        self.close()
        self._connections = list(connections)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def run(self, connection: Any, statement: str, *values: Any) -> None:
        connection.execute(statement.encode(), values or None)

    def prepare(self) -> None:
        for statement in self.tables:
            self.run(self._connections[0], statement)

    def step(self) -> None:
        """One round: two transactions whose statements take turns, on keys that do not meet."""
        dice = self._random
        first, second = self._connections[:2]
        if dice.random() < 0.04:
            self._ddl()
        self.run(first, "BEGIN")
        self.run(second, "BEGIN")
        for _ in range(dice.choice((1, 3, 10, 60))):
            self._change(first, 0)
            self._change(second, 1)
        for connection in (first, second) if dice.random() < 0.5 else (second, first):
            self.run(connection, "COMMIT" if dice.random() < 0.85 else "ROLLBACK")

    def _ddl(self) -> None:
        self._added += 1
        table = self._random.choice(_TABLES)
        made = self.statements["alter"].format(table=table, column=f"extra{self._added}", number=self._added)
        self.run(self._connections[0], made)

    def _change(self, connection: Any, parity: int) -> None:
        dice, statements = self._random, self.statements
        number = dice.randrange(100) * 2 + parity
        roll = dice.random()
        if roll < 0.35:
            self.run(connection, statements["put"], number, f"n{dice.random()}", round(dice.random() * 1000, 2))
        elif roll < 0.5:
            self.run(connection, statements["add"], number)
        elif roll < 0.6:
            self.run(connection, statements["drop"], number)
        elif roll < 0.7:
            other = dice.randrange(100) * 2 + parity
            self.run(connection, statements["move"], other, number, other)
        elif roll < 0.9:
            self.run(connection, statements["note"], number, dice.choice("xyz"), str(number), dice.choice((1, 200)))
        else:
            self.run(connection, statements["forget"], number)


class MariaDbWorkload(Workload):
    """The same over connections of PyMySQL."""

    statements = Workload.statements | {
        "put": "INSERT INTO accounts (id, name, amount) VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE name = VALUES(name)",
        "move": "UPDATE IGNORE accounts SET id = %s WHERE id = %s AND 0 <> %s + 1",
        "note": "INSERT INTO notes (a, b, big) VALUES (%s, %s, repeat(md5(%s), %s)) ON DUPLICATE KEY UPDATE b = VALUES(b)",
        "alter": "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column} int DEFAULT {number} FIRST",
    }
    tables = (
        "CREATE TABLE accounts (id int PRIMARY KEY, name text, amount numeric(12, 2), at datetime)",
        "CREATE TABLE notes (a int, b varchar(20), big text, PRIMARY KEY (a, b))",
        "INSERT INTO accounts SELECT seq, concat('old ', seq), seq / 4.0, '2024-01-01' FROM seq_1_to_50",
    )

    def run(self, connection: Any, statement: str, *values: Any) -> None:
        with connection.cursor() as cursor:
            if statement == "BEGIN":  # without locks of gaps, in which one transaction here would wait for the other
                cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute(statement, values or None)


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
