"""The SQL of the triggers that write a table's changes to the change log.

A row of the log has its shape, an ``op``, milliseconds since 1970, and the old and the new values of the shape's
columns as ``o1``, ``n1``, ``o2``, … in their own storage classes. The new values are read from the table, not from NEW:
another trigger may already have changed the row, and SQLite does not define which of two triggers runs first.

INSERT OR REPLACE deletes conflicting rows without running delete triggers (sqlite.org, "ON CONFLICT"). So the rows that
a new row conflicts with through a unique index are noted beforehand as ``p``. Those that are gone afterwards become
deletions, and the other notes are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from connectors.sqlite.connections import quoted
from connectors.sqlite.tables import Table

__all__ = ["NOW", "REPLACED", "columns_of_log", "trigger_prefix", "triggers"]

NOW: Final = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
REPLACED: Final = "p"


def trigger_prefix(log: str) -> str:
    return f"{log}_on_"


def columns_of_log(kind: str, width: int) -> list[str]:
    """``kind`` is ``o`` or ``n``."""
    return [f"{kind}{at}" for at in range(1, width + 1)]


def triggers(log: str, shape: int, table: Table) -> dict[str, str]:
    """Maps each trigger's name to the statement that creates it."""
    width = len(table.columns)
    old, new = columns_of_log("o", width), columns_of_log("n", width)
    names = [quoted(column.name) for column in table.columns]
    olds = [f"OLD.{name}" for name in names]
    this = " AND ".join(f"{quoted(name)} IS NEW.{quoted(name)}" for name in table.identity)
    source = f"FROM {quoted(table.name)} WHERE {this}"

    def note(op: str, columns: Sequence[str], values: Sequence[str], rest: str = "") -> str:
        into = ", ".join(["shape", "op", "at", *columns])
        values_text = ", ".join([str(shape), f"'{op}'", NOW, *values])
        return f"INSERT INTO {quoted(log)} ({into}) SELECT {values_text} {rest};"

    made = {
        "insert": ("AFTER INSERT", [note("c", new, names, source)]),
        "update": ("AFTER UPDATE", [note("u", [*old, *new], [*olds, *names], source)]),
        "delete": ("AFTER DELETE", [note("d", old, olds)]),
    }
    if table.uniques:
        rows = [f"r{at}" for at in range(1, len(table.identity) + 1)]
        identity = [quoted(name) for name in table.identity]
        waiting = f"op = '{REPLACED}' AND shape = {shape}"
        gone = " AND ".join(f"t.{name} IS {row}" for name, row in zip(identity, rows, strict=True))
        resolve = [
            f"UPDATE {quoted(log)} SET op = 'd' WHERE {waiting} AND NOT EXISTS (SELECT 1 FROM {quoted(table.name)} t WHERE {gone});",
            f"DELETE FROM {quoted(log)} WHERE {waiting};",
        ]
        conflicts = " OR ".join(f"({_equal(unique.columns)})" for unique in table.uniques)
        conflicting = f"FROM {quoted(table.name)} WHERE ({conflicts})"
        noted = note(REPLACED, [*rows, *old], [*identity, *names], conflicting)
        again = f"DELETE FROM {quoted(log)} WHERE {waiting} AND ({', '.join(rows)}) IN (SELECT {', '.join(identity)} {conflicting});"
        other = " OR ".join(f"{name} IS NOT OLD.{name}" for name in identity)
        moved = ", ".join(dict.fromkeys(quoted(column) for unique in table.uniques for column, _ in unique.columns))
        deleted = " AND ".join(f"{row} IS OLD.{name}" for name, row in zip(identity, rows, strict=True))
        for name in ("insert", "update"):
            made[name][1].extend(resolve)
        made["delete"][1].append(f"DELETE FROM {quoted(log)} WHERE {waiting} AND {deleted};")
        made["before_insert"] = ("BEFORE INSERT", [again, noted])
        made["before_update"] = (f"BEFORE UPDATE OF {moved}", [again, f"{noted[:-1]} AND ({other});"])
    return {
        f"{trigger_prefix(log)}{shape}_{name}": f"CREATE TRIGGER {quoted(f'{trigger_prefix(log)}{shape}_{name}')} {when} "
        f"ON {quoted(table.name)} BEGIN {' '.join(statements)} END"
        for name, (when, statements) in made.items()
    }


def _equal(columns: Iterable[tuple[str, str]]) -> str:
    return " AND ".join(f"{quoted(name)} = NEW.{quoted(name)} COLLATE {collation}" for name, collation in columns)
