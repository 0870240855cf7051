"""The change log in the database: its tables, its triggers, and what they follow.

``<name>``         the changes, oldest first; ``seq`` never comes twice
``<name>_shapes``  the shapes that changes have or had, as ``Table.described``; ``current`` are those that triggers write now
``<name>_owner``   one row: whose log it is, its own id, and up to which change it was pruned
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Sequence

from connect.api import ConnectError
from connectors.sqlite.connections import quoted, writing
from connectors.sqlite.tables import Table
from connectors.sqlite.triggers import NOW, REPLACED, columns_of_log, trigger_prefix, triggers

__all__ = ["ChangeLog"]

_PRUNED_AT_ONCE = 20_000


class ChangeLog:
    """One connector's change log, accessed over one connection.

    Methods raise sqlite3.Error; each writes in one transaction.
    """

    def __init__(self, connection: sqlite3.Connection, name: str, server: str) -> None:
        self._connection, self._name, self._server = connection, name, server
        self._quoted = quoted(name)
        self._shapes_table, self._owner_table = quoted(f"{name}_shapes"), quoted(f"{name}_owner")

    @property
    def exists(self) -> bool:
        row = self._connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", [f"{self._name}_owner"]).fetchone()
        return row is not None

    def owner(self) -> tuple[str, str, int]:
        """(id of the log, topic.prefix of its connector, the last change that was pruned)."""
        row = self._connection.execute(f"SELECT id, server, pruned FROM {self._owner_table}").fetchone()
        return row[0], row[1], row[2]

    def open(self) -> str:
        """Create the log if it does not exist; returns its id.

        Raises ConnectError where it belongs to another connector.
        """
        if not self.exists:
            with writing(self._connection):
                if not self.exists:
                    self._make()
        number, server, _ = self.owner()
        if server != self._server:
            raise ConnectError(
                f"change log {self._name!r} belongs to a connector with topic.prefix={server}: "
                "give this one a change.log.name of its own"
            )
        return number

    def _make(self) -> None:
        run = self._connection.execute
        run(
            f"CREATE TABLE {self._quoted} (seq INTEGER PRIMARY KEY AUTOINCREMENT, shape INTEGER NOT NULL, op TEXT NOT NULL, "
            "at INTEGER NOT NULL, r1)"
        )
        run(f"CREATE INDEX {quoted(f'{self._name}_replaced')} ON {self._quoted} (shape) WHERE op = '{REPLACED}'")
        run(
            f"CREATE TABLE {self._shapes_table} (id INTEGER PRIMARY KEY, description TEXT NOT NULL, current INTEGER NOT NULL)"
        )
        run(f"CREATE TABLE {self._owner_table} (id TEXT NOT NULL, server TEXT NOT NULL, pruned INTEGER NOT NULL)")
        run(f"INSERT INTO {self._owner_table} VALUES (?, ?, 0)", [str(uuid.uuid4()), self._server])

    def shapes(self) -> dict[int, Table]:
        """All shapes by number."""
        rows = self._connection.execute(f"SELECT id, description FROM {self._shapes_table}")
        return {number: Table.from_description(text) for number, text in rows}

    def last(self) -> int:
        """The number of the latest change ever written."""
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", [self._name]).fetchone()
        return row[0] if row else 0

    def _stale(self, tables: Sequence[Table]) -> tuple[list[Table], dict[str, tuple[int, Table]], set[str], set[str]]:
        """(tables whose triggers have to be created, current shapes by table, the log's triggers, those of them to
        drop).
        """
        rows = self._connection.execute(f"SELECT id, description FROM {self._shapes_table} WHERE current")
        current = {table.name: (number, table) for number, table in ((n, Table.from_description(t)) for n, t in rows)}
        prefix = trigger_prefix(self._name)
        existing = dict(
            self._connection.execute(
                "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, ?) = ?",
                [len(prefix), prefix],
            ).fetchall()
        )
        kept: set[str] = set()
        stale = []
        for table in tables:
            number, known = current.get(table.name, (0, None))
            names = triggers(self._name, number, table) if known == table else {}
            if names and all(existing.get(name) == table.name for name in names):
                kept.update(names)
            else:
                stale.append(table)
        return stale, current, set(existing), set(existing) - kept

    def renew(self, look: Callable[[], Sequence[Table]], *, copy: bool) -> list[str]:
        """Update the triggers to match the tables that ``look`` returns. Returns the names of new and changed tables.

        With ``copy``, rows are also written to the log: all rows of a table that is new or was recreated without its
        triggers; for a table with new columns, the rows whose values there differ from the default.
        """
        if not self._work(look()):
            return []
        with writing(self._connection):
            tables = look()
            stale, current, existing, dropped = self._stale(tables)
            run = self._connection.execute
            complete = {
                name
                for name, (number, table) in current.items()
                if set(triggers(self._name, number, table)) <= existing
            }
            for name in dropped:
                run(f"DROP TRIGGER {quoted(name)}")
            names = {table.name for table in tables}
            for name, (number, _) in current.items():
                if name not in names:
                    run(f"UPDATE {self._shapes_table} SET current = 0 WHERE id = ?", [number])
            for table in stale:
                old = current.get(table.name)
                number = self._follow(table, old)
                if copy:
                    self._copy(number, table, old[1] if old is not None else None, whole=table.name not in complete)
        return [table.name for table in stale]

    def _work(self, tables: Sequence[Table]) -> bool:
        stale, current, _, dropped = self._stale(tables)
        return bool(stale or dropped or set(current) - {table.name for table in tables})

    def _follow(self, table: Table, old: tuple[int, Table] | None) -> int:
        run = self._connection.execute
        known = {row[1] for row in run(f"PRAGMA table_info({self._quoted})")}
        width = len(table.columns)
        rows = [f"r{at}" for at in range(1, len(table.identity) + 1)]
        for column in [*rows, *columns_of_log("o", width), *columns_of_log("n", width)]:
            if column not in known:
                run(f"ALTER TABLE {self._quoted} ADD COLUMN {column}")
        if old is not None:
            run(f"UPDATE {self._shapes_table} SET current = 0 WHERE id = ?", [old[0]])
        made = run(f"INSERT INTO {self._shapes_table} (description, current) VALUES (?, 1)", [table.described()])
        number = int(made.lastrowid or 0)
        for statement in triggers(self._name, number, table).values():
            run(statement)
        return number

    def _copy(self, number: int, table: Table, old: Table | None, *, whole: bool) -> None:
        run = self._connection.execute
        names = [quoted(column.name) for column in table.columns]
        into = ", ".join(["shape", "op", "at", *columns_of_log("n", len(names))])
        order = ", ".join(quoted(name) for name in table.identity)

        def note(op: str, where: str = "") -> None:
            values = ", ".join([str(number), f"'{op}'", NOW, *names])
            run(
                f"INSERT INTO {self._quoted} ({into}) SELECT {values} FROM {quoted(table.name)} {where} ORDER BY {order}"
            )

        if whole:
            if old is not None:
                run(f"INSERT INTO {self._quoted} (shape, op, at) VALUES ({number}, 't', {NOW})")
            note("r")
            return
        known = {column.name for column in old.columns} if old is not None else set()
        added = [column for column in table.columns if column.name not in known]
        if added:
            note("s", "WHERE " + " OR ".join(f"{quoted(c.name)} IS NOT ({c.default or 'NULL'})" for c in added))

    def prune(self, done: int) -> bool:
        """Delete changes up to ``done``, a limited number at a time. Returns whether there may be more to delete."""
        with writing(self._connection):
            run = self._connection.execute
            pruned = int(run(f"SELECT pruned FROM {self._owner_table}").fetchone()[0])
            until = min(done, pruned + _PRUNED_AT_ONCE)
            if until > pruned:
                run(f"DELETE FROM {self._quoted} WHERE seq <= ?", [until])
                run(f"UPDATE {self._owner_table} SET pruned = ?", [until])
        return until < done

    def drop(self) -> None:
        """Remove the triggers and the log."""
        prefix = trigger_prefix(self._name)
        with writing(self._connection):
            run = self._connection.execute
            rows = run(
                "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND substr(name, 1, ?) = ?",
                [len(prefix), prefix],
            )
            for (name,) in rows.fetchall():
                run(f"DROP TRIGGER {quoted(name)}")
            for table in (self._quoted, self._shapes_table, self._owner_table):
                run(f"DROP TABLE IF EXISTS {table}")
