"""A random workload on a SQLite database; ``python -m tests.support.debezium.sqlite_workload FILE SEED`` runs it until it is killed."""

from __future__ import annotations

import random
import sqlite3
import sys
import time
from pathlib import Path
from typing import Final

__all__ = ["TABLES", "SqliteWorkload"]

TABLES: Final = {"accounts": ("id",), "notes": ("a", "b")}
"""Each table's key."""


class SqliteWorkload:
    """Transactions of inserts, replacements, updates, deletes and key changes, some rolled back; now and then DDL, and a table
    that is made again as sqlite.org's "ALTER TABLE" describes."""

    def __init__(self, path: Path, seed: int) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=60)
        self.connection.execute("PRAGMA synchronous = OFF")
        self._random = random.Random(seed)

    def prepare(self, journal: str = "wal") -> None:
        run = self.connection.execute
        run(f"PRAGMA journal_mode = {journal}")
        run("CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT, code TEXT UNIQUE, amount REAL)")
        run("CREATE TABLE notes (a INT, b TEXT, big BLOB, PRIMARY KEY (a, b)) WITHOUT ROWID")
        run(
            "INSERT INTO accounts WITH n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT i, 'old', i, i / 4.0 FROM n"
        )

    def step(self) -> None:
        """One transaction, or one change of a table's structure."""
        dice, run = self._random, self.connection.execute
        if dice.random() < 0.04:
            self._ddl()
            return
        run("BEGIN IMMEDIATE")
        for _ in range(dice.choice((1, 3, 10, 60))):
            self._change()
        run("COMMIT" if dice.random() < 0.85 else "ROLLBACK")

    def _ddl(self) -> None:
        table = self._random.choice(list(TABLES))
        columns = [row[1] for row in self.connection.execute(f"PRAGMA table_info({table})")]
        if len(columns) < 8:
            number = len(columns)
            self.connection.execute(f"ALTER TABLE {table} ADD COLUMN extra{number} INT DEFAULT {number}")
            return
        kind, names = self.connection, "id, name, code, amount"
        kind.execute("BEGIN IMMEDIATE")
        kind.execute("CREATE TABLE again (id INTEGER PRIMARY KEY, name TEXT, code TEXT UNIQUE, amount REAL)")
        kind.execute(f"INSERT INTO again SELECT {names} FROM accounts")
        kind.execute("DROP TABLE accounts")
        kind.execute("ALTER TABLE again RENAME TO accounts")
        kind.execute("COMMIT")

    def _change(self) -> None:
        dice, run = self._random, self.connection.execute
        number, other = dice.randrange(200), dice.randrange(200)
        roll = dice.random()
        if roll < 0.2:
            run(
                "INSERT INTO accounts (id, name, amount) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name",
                [number, f"n{dice.random()}", dice.random()],
            )
        elif roll < 0.35:
            run("INSERT OR REPLACE INTO accounts (id, name, code) VALUES (?, 'r', ?)", [number, str(other)])
        elif roll < 0.4:
            run("INSERT OR IGNORE INTO accounts (id, name, code) VALUES (?, 'i', ?)", [number, str(other)])
        elif roll < 0.5:
            run("UPDATE OR REPLACE accounts SET code = ? WHERE id = ?", [str(other), number])
        elif roll < 0.6:
            run("UPDATE accounts SET amount = amount + 1 WHERE id = ?", [number])
        elif roll < 0.7:
            run("DELETE FROM accounts WHERE id = ?", [number])
        elif roll < 0.8:
            run("UPDATE OR REPLACE accounts SET id = ? WHERE id = ?", [other, number])
        elif roll < 0.95:
            big = dice.choice((b"\x00", None, b"\xff" * 300))
            run("INSERT OR REPLACE INTO notes (a, b, big) VALUES (?, ?, ?)", [number, dice.choice("xyz"), big])
        else:
            run("DELETE FROM notes WHERE a = ?", [number])


def main() -> None:
    work = SqliteWorkload(Path(sys.argv[1]), int(sys.argv[2]))
    while True:
        work.step()
        time.sleep(0.002)


if __name__ == "__main__":
    main()
