"""The newest value of each key on two sides, and where they differ; kept in a temporary file, so memory is bounded."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Final, NamedTuple, Self

__all__ = ["SIDES", "Difference", "KeyRange", "States"]

SIDES: Final = ("a", "b")


class Difference(NamedTuple):
    """A key whose values differ. ``kind`` is ``only left``, ``only right``, ``value`` or ``count``."""

    part: str
    key: str
    kind: str
    columns: tuple[str, ...] = ()
    """The columns that differ, where rows are compared by column."""
    counts: tuple[int, int] | None = None
    """How many rows of the key each side has, with ``count``."""


class KeyRange(NamedTuple):
    """The keys from ``first`` to ``last``, how many of them each side has, and how many differ."""

    part: str
    first: Any
    last: Any
    left: int
    right: int
    differing: int


class States:
    """``part`` separates keys of different tables; keys are texts that people can read.

    ``limits`` are the first and the last key, or the first column of one, of all that are kept.
    """

    unlike: ClassVar[str] = "s.a IS NOT s.b"
    """The condition for keys that differ."""

    def __init__(self, limits: tuple[str | None, str | None] = (None, None)) -> None:
        self._limits = tuple(None if limit is None else _order(_ranked(limit)) for limit in limits)
        self._folder = tempfile.TemporaryDirectory(prefix="tidegate-verify-")
        self._database = sqlite3.connect(Path(self._folder.name) / "states.db", isolation_level=None)
        for statement in (
            "PRAGMA journal_mode = OFF",
            "PRAGMA synchronous = OFF",
            "PRAGMA cache_size = -65536",
            "CREATE TABLE states (part TEXT, key TEXT, a BLOB, b BLOB, PRIMARY KEY (part, key)) WITHOUT ROWID",
            "CREATE TABLE before (part TEXT, key TEXT, a BLOB, b BLOB, PRIMARY KEY (part, key)) WITHOUT ROWID",
        ):
            self._database.execute(statement)
        self._database.create_function("ranked", 1, _ranked, deterministic=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
        self._folder.cleanup()

    def put(self, side: int, part: str, rows: Iterable[tuple[str, bytes | None]]) -> None:
        """Set the values of keys on side 0 or 1; a value of None removes the key, and of several the last counts."""
        hashed = (
            (key, None if value is None else hashlib.blake2b(value, digest_size=16).digest()) for key, value in rows
        )
        self._put(side, part, hashed, "excluded.{0}")

    def _put(self, side: int, part: str, rows: Iterable[tuple[str, bytes | None]], merged: str) -> None:
        """``merged`` is what becomes of a state that is there."""
        column = SIDES[side]
        self._database.execute("BEGIN")
        self._database.executemany(
            f"INSERT INTO states (part, key, {column}) VALUES (?, ?, ?) "
            f"ON CONFLICT (part, key) DO UPDATE SET {column} = {merged.format(column)}",
            ((part, key, state) for key, state in rows if self._within(key)),
        )
        self._database.execute("COMMIT")

    def _within(self, key: str) -> bool:
        low, high = self._limits
        if low is None and high is None:
            return True
        rank = _order(_ranked(key))
        return (low is None or low <= rank) and (high is None or rank <= high)

    def clear(self, side: int, part: str | None = None) -> None:
        """Forget what a side has, or has of a part."""
        where, values = ("", ()) if part is None else (" WHERE part = ?", (part,))
        self._database.execute(f"UPDATE states SET {SIDES[side]} = NULL{where}", values)

    def count(self, side: int) -> int:
        return int(self._database.execute(f"SELECT count({SIDES[side]}) FROM states").fetchone()[0])

    def differing(self) -> int:
        return int(self._database.execute(f"SELECT count(*) FROM states s WHERE {self.unlike}").fetchone()[0])

    def remember(self) -> None:
        """Keep the differences of now, for ``lasting``."""
        self._database.execute("DELETE FROM before")
        self._database.execute("INSERT INTO before SELECT * FROM states WHERE a IS NOT b")

    def lasting(self) -> int:
        """How many keys differ as they did at ``remember``, with nothing changed on either side."""
        row = self._database.execute(f"SELECT count(*) FROM states s {_LASTING}").fetchone()
        return int(row[0])

    def differences(self, limit: int, *, lasting: bool = False) -> list[Difference]:
        """The first differences in the order of parts and keys."""
        chosen = _LASTING if lasting else f"WHERE {self.unlike}"
        rows = self._database.execute(
            f"SELECT s.part, s.key, s.a, s.b FROM states s {chosen} ORDER BY s.part, s.key LIMIT ?", [limit]
        ).fetchall()
        return [self._difference(*row) for row in rows]

    def _difference(self, part: str, key: str, left: bytes | None, right: bytes | None) -> Difference:
        return Difference(part, key, "only right" if left is None else "only left" if right is None else "value")

    def ranges(self, count: int) -> list[KeyRange]:
        """The keys of each part in their order, cut into ranges of about the same size: numbers by value, before texts."""
        rows = self._database.execute(
            "SELECT part, min(rank), max(rank), count(a), count(b), sum(differs) FROM (SELECT s.part, s.a, s.b, "
            f"ranked(s.key) AS rank, ({self.unlike}) AS differs, NTILE(?) OVER (PARTITION BY s.part ORDER BY ranked(s.key)) AS number "
            "FROM states s WHERE s.a IS NOT NULL OR s.b IS NOT NULL) GROUP BY part, number ORDER BY part, number",
            [count],
        )
        return [KeyRange(*row) for row in rows]

    def parts_differing(self, *, lasting: bool = False) -> list[str]:
        chosen = _LASTING if lasting else f"WHERE {self.unlike}"
        return [row[0] for row in self._database.execute(f"SELECT DISTINCT s.part FROM states s {chosen} ORDER BY 1")]


_LASTING: Final = "JOIN before USING (part, key) WHERE s.a IS NOT s.b AND s.a IS before.a AND s.b IS before.b"


def _ranked(key: str) -> Any:
    """The value by which a key is sorted: the first column of a JSON object or list, a number by its value."""
    value: Any = key
    try:
        if key[:1] in ("{", "["):
            parsed = json.loads(key)
            cells = list(parsed.values()) if isinstance(parsed, dict) else parsed
            value = cells[0] if cells else key
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                value = str(value)
        else:
            value = int(key)
    except (ValueError, RecursionError):  # a key may be any text
        return key
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    if isinstance(value, float) and math.isnan(value):  # SQLite has no NaN
        return str(value)
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _order(rank: Any) -> tuple[bool, Any]:
    return isinstance(rank, str), rank
