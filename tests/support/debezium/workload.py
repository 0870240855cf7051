"""A random workload on a few tables, and the tables rebuilt from change events."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from connect.api import RecordBatch

__all__ = ["MariaDbWorkload", "MySqlWorkload", "Workload", "rebuilt"]

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
        "widen": "ALTER TABLE {table} ALTER COLUMN {column} TYPE bigint",
        "narrow": "ALTER TABLE {table} DROP COLUMN IF EXISTS {column}",
    }
    tables: ClassVar[tuple[str, ...]] = (
        "CREATE TABLE accounts (id int PRIMARY KEY, name text, amount numeric(12, 2), at timestamp)",
        "CREATE TABLE notes (a int, b text, big text, PRIMARY KEY (a, b))",
        "ALTER TABLE notes REPLICA IDENTITY FULL",
        "INSERT INTO accounts SELECT g, 'old ' || g, g / 4.0, '2024-01-01' FROM generate_series(1, 50) g",
    )

    def __init__(self, connections: Iterable[Any], seed: int, *, alters: float = 0.04) -> None:
        """``alters`` is how likely a round is to begin with DDL."""
        self._connections = list(connections)
        self._random = random.Random(seed)
        self._alters = alters
        self._added: list[tuple[str, str]] = []
        self._names = 0

    def reconnect(self, connections: Iterable[Any]) -> None:
        """Go on over other connections; what was open on the old ones is lost."""
        self.close()
        self._connections = list(connections)

    def close(self) -> None:
        for connection in self._connections:
            connection.close()

    def run(self, connection: Any, statement: str, *values: Any) -> int:
        """The number of rows changed."""
        return max(0, connection.execute(statement.encode(), values or None).rowcount)

    def prepare(self) -> None:
        for statement in self.tables:
            self.run(self._connections[0], statement)

    def step(self) -> int:
        """One round: two transactions with alternating statements, on disjoint keys.

        Returns the number of rows changed.
        """
        dice = self._random
        connections = self._connections[:2]
        if dice.random() < self._alters:
            self.alter()
        for connection in connections:
            self.run(connection, "BEGIN")
        changed = [0, 0]
        for _ in range(dice.choice((1, 3, 10, 60))):
            for parity, connection in enumerate(connections):
                changed[parity] += self._change(connection, parity)
        done = 0
        for parity in (0, 1) if dice.random() < 0.5 else (1, 0):
            kept = dice.random() < 0.85
            self.run(connections[parity], "COMMIT" if kept else "ROLLBACK")
            done += changed[parity] if kept else 0
        return done

    def alter(self) -> None:
        """Add a column; now and then make one wider that was added, or drop it."""
        dice = self._random
        roll = dice.random()
        if self._added and roll < 0.4:
            chosen = self._added[dice.randrange(len(self._added))]
            if roll < 0.2:
                self._added.remove(chosen)
            kind = "narrow" if roll < 0.2 else "widen"
        else:
            self._names += 1
            chosen = (dice.choice(_TABLES), f"extra{self._names}")
            kind = "alter"
        table, column = chosen
        made = self.statements[kind].format(table=table, column=column, number=self._names)
        self.run(self._connections[0], made)
        if kind == "alter":
            self._added.append(chosen)

    def _change(self, connection: Any, parity: int) -> int:
        dice, statements = self._random, self.statements
        number = dice.randrange(100) * 2 + parity
        roll = dice.random()
        if roll < 0.35:
            return self.run(connection, statements["put"], number, f"n{dice.random()}", round(dice.random() * 1000, 2))
        if roll < 0.5:
            return self.run(connection, statements["add"], number)
        if roll < 0.6:
            return self.run(connection, statements["drop"], number)
        if roll < 0.7:
            other = dice.randrange(100) * 2 + parity
            return self.run(connection, statements["move"], other, number, other)
        if roll < 0.9:
            return self.run(
                connection, statements["note"], number, dice.choice("xyz"), str(number), dice.choice((1, 200))
            )
        return self.run(connection, statements["forget"], number)


class MariaDbWorkload(Workload):
    """The same over connections of PyMySQL."""

    statements = Workload.statements | {
        "put": "INSERT INTO accounts (id, name, amount) VALUES (%s, %s, %s) ON DUPLICATE KEY UPDATE name = VALUES(name)",
        "move": "UPDATE IGNORE accounts SET id = %s WHERE id = %s AND 0 <> %s + 1",
        "note": "INSERT INTO notes (a, b, big) VALUES (%s, %s, repeat(md5(%s), %s)) ON DUPLICATE KEY UPDATE b = VALUES(b)",
        "alter": "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column} int DEFAULT {number} FIRST",
        "widen": "ALTER TABLE {table} MODIFY COLUMN IF EXISTS {column} bigint DEFAULT 7",
    }
    tables = (
        "CREATE TABLE accounts (id int PRIMARY KEY, name text, amount numeric(12, 2), at datetime)",
        "CREATE TABLE notes (a int, b varchar(20), big text, PRIMARY KEY (a, b))",
        "INSERT INTO accounts SELECT seq, concat('old ', seq), seq / 4.0, '2024-01-01' FROM seq_1_to_50",
    )

    def run(self, connection: Any, statement: str, *values: Any) -> int:
        with connection.cursor() as cursor:
            if statement == "BEGIN":  # without locks of gaps, in which one transaction here would wait for the other
                cursor.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            return int(cursor.execute(statement, values or None))


class MySqlWorkload(MariaDbWorkload):
    """The same in what MySQL has of that."""

    statements = MariaDbWorkload.statements | {
        "alter": "ALTER TABLE {table} ADD COLUMN {column} int DEFAULT {number} FIRST",
        "widen": "ALTER TABLE {table} MODIFY COLUMN {column} bigint DEFAULT 7",
        "narrow": "ALTER TABLE {table} DROP COLUMN {column}",
    }
    tables = (
        *MariaDbWorkload.tables[:2],
        "INSERT INTO accounts VALUES " + ", ".join(f"({n}, 'old {n}', {n / 4}, '2024-01-01')" for n in range(1, 51)),
    )


def rebuilt(batches: Iterable[RecordBatch]) -> dict[str, dict[Any, Any]]:
    """The events replayed into the rows of each table, by key."""
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
