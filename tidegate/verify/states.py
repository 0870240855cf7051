"""The newest value of each key on two sides, and where they differ; kept in a temporary file, so memory is bounded."""

from __future__ import annotations

import hashlib
import sqlite3
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

__all__ = ["Difference", "States"]

_SIDES: Final = ("a", "b")


class Difference(NamedTuple):
    """A key whose values differ. ``kind`` is ``only left``, ``only right`` or ``value``."""

    part: str
    key: str
    kind: str


class States:
    """``part`` separates keys of different tables; keys are texts that people can read."""

    def __init__(self) -> None:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()
        self._folder.cleanup()

    def put(self, side: int, part: str, rows: Iterable[tuple[str, bytes | None]]) -> None:
        """Set the values of keys on side 0 or 1; a value of None removes the key, and of several the last counts."""
        column = _SIDES[side]
        hashed = (
            (part, key, None if value is None else hashlib.blake2b(value, digest_size=16).digest())
            for key, value in rows
        )
        self._database.execute("BEGIN")
        self._database.executemany(
            f"INSERT INTO states (part, key, {column}) VALUES (?, ?, ?) "
            f"ON CONFLICT (part, key) DO UPDATE SET {column} = excluded.{column}",
            hashed,
        )
        self._database.execute("COMMIT")

    def clear(self, side: int, part: str | None = None) -> None:
        """Forget what a side has, or has of a part."""
        where, values = ("", ()) if part is None else (" WHERE part = ?", (part,))
        self._database.execute(f"UPDATE states SET {_SIDES[side]} = NULL{where}", values)

    def count(self, side: int) -> int:
        return int(self._database.execute(f"SELECT count({_SIDES[side]}) FROM states").fetchone()[0])

    def differing(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM states WHERE a IS NOT b").fetchone()[0])

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
        chosen = _LASTING if lasting else "WHERE s.a IS NOT s.b"
        rows = self._database.execute(
            f"SELECT s.part, s.key, s.a IS NULL, s.b IS NULL FROM states s {chosen} ORDER BY s.part, s.key LIMIT ?",
            [limit],
        ).fetchall()
        return [
            Difference(part, key, "only right" if no_left else "only left" if no_right else "value")
            for part, key, no_left, no_right in rows
        ]

    def parts_differing(self, *, lasting: bool = False) -> list[str]:
        chosen = _LASTING if lasting else "WHERE s.a IS NOT s.b"
        return [row[0] for row in self._database.execute(f"SELECT DISTINCT s.part FROM states s {chosen} ORDER BY 1")]


_LASTING: Final = "JOIN before USING (part, key) WHERE s.a IS NOT s.b AND s.a IS before.a AND s.b IS before.b"
