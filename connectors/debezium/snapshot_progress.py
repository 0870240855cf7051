"""How far a snapshot of whole tables has come: what the offset keeps of it, and what the worker shows.

An offset of an unfinished snapshot names the tables whose rows have all been delivered. A task that finds them reads
only the others. The position in that offset stays the one at which the first attempt began, and streaming begins there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["SnapshotProgress", "parts_read", "tables_read", "without_tables"]

_TABLES: Final = "tidegate_snapshot_tables"
"""The member of the offset: a JSON list of full names. Debezium ignores it, and reads all tables again."""
_PARTS: Final = "tidegate_snapshot_parts"
"""Likewise: how far tables were read that are begun, a JSON object by their full names, as the database's family writes it."""


def tables_read(offset: Mapping[str, Any]) -> frozenset[str] | None:
    """The tables that an unfinished snapshot has delivered; None for an offset without this knowledge, as Debezium's."""
    text = offset.get(_TABLES)
    if not isinstance(text, str):
        return None
    try:
        names = json.loads(text)
    except ValueError:
        return None
    return frozenset(map(str, names)) if isinstance(names, list) else None


def parts_read(offset: Mapping[str, Any]) -> dict[str, Any]:
    """How far an unfinished snapshot has read tables that it did not deliver whole, by their full names."""
    try:
        parts = json.loads(offset.get(_PARTS) or "{}")
    except (ValueError, TypeError):
        return {}
    return parts if isinstance(parts, dict) else {}


def without_tables(offset: Mapping[str, Any]) -> dict[str, Any]:
    """The offset without what is known of tables, which nothing needs once all have been read."""
    return {name: value for name, value in offset.items() if name not in (_TABLES, _PARTS)}


@dataclass(slots=True)
class _Table:
    expected: int | None
    rows: int = 0
    begun: float | None = None
    ended: float | None = None

    def share(self) -> float | None:
        """From 0 to 1; None where the server does not estimate the number of rows.

        A table that has more rows than was estimated stays short of 1 until it has ended.
        """
        if self.ended is not None:
            return 1.0
        if self.expected is None:
            return None
        return min(self.rows / max(1, self.expected), 0.99)

    def seconds_left(self, now: float) -> float | None:
        if self.begun is None or self.ended is not None or not self.rows or self.expected is None:
            return None
        return max(0, self.expected - self.rows) * (now - self.begun) / self.rows


class SnapshotProgress:
    """Counts the rows and tables of one attempt. ``tables`` maps the full names of those to read, in their order, to the
    estimated number of rows; ``before`` are the tables that earlier attempts delivered.
    """

    def __init__(self, tables: Mapping[str, int | None], before: Iterable[str] = ()) -> None:
        self._before = sorted(before)
        self._tables = {name: _Table(expected) for name, expected in tables.items()}
        self._parts: dict[str, Any] = {}
        self._began = time.monotonic()

    def members(self) -> dict[str, str]:
        """The members to store in an offset."""
        ended = [name for name, table in self._tables.items() if table.ended is not None]
        told = {_TABLES: _json(sorted([*self._before, *ended]))}
        return told | {_PARTS: _json(self._parts)} if self._parts else told

    @property
    def resumed(self) -> bool:
        return bool(self._before)

    @property
    def tables(self) -> frozenset[str]:
        """The full names of the tables that this attempt reads."""
        return frozenset(self._tables)

    @property
    def rows(self) -> int:
        """The rows that this attempt has delivered."""
        return sum(table.rows for table in self._tables.values())

    def delivered(self, name: str, rows: int) -> None:
        table = self._tables.get(name)
        if table is not None:
            table.rows += rows
            if table.begun is None:
                table.begun = time.monotonic()

    def reached(self, name: str, part: Any) -> None:
        """The rows of a table up to ``part``, a JSON value, were delivered, or will be likewise."""
        self._parts[name] = part

    def is_ended(self, name: str) -> bool:
        return self._tables[name].ended is not None

    def ended(self, name: str) -> None:
        """All rows of a table were delivered, or will be before anything that is delivered from now on."""
        self._parts.pop(name, None)
        self._tables[name].ended = time.monotonic()

    def told(self) -> dict[str, Any]:
        """The arguments of ``context.progress``: rows of all tables, and each table with rows, percent and seconds left."""
        now = time.monotonic()
        rows = self.rows
        ended = sum(table.ended is not None for table in self._tables.values())
        total = left = None
        if all(table.expected is not None or table.ended is not None for table in self._tables.values()):
            total = sum(
                table.rows if table.ended is not None else max(table.rows, table.expected or 0)
                for table in self._tables.values()
            )
            if rows:
                left = round((total - rows) * (now - self._began) / rows, 1)
        every = len(self._before) + len(self._tables)
        parts: list[dict[str, Any]] = [{"name": name, "state": "read before"} for name in self._before]
        parts += [_part(name, table, now) for name, table in self._tables.items()]
        note = f"snapshot: {len(self._before) + ended} of {every} tables"
        return {"done": rows, "total": total, "unit": "rows", "note": note, "seconds_left": left, "parts": parts}


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _part(name: str, table: _Table, now: float) -> dict[str, Any]:
    state = "waiting" if table.begun is None else "reading"
    share, left = table.share(), table.seconds_left(now)
    return {
        "name": name,
        "state": "read" if table.ended is not None else state,
        "done": table.rows,
        "total": table.rows if table.ended is not None else table.expected,
        "percent": None if share is None else round(100 * share, 1),
        "seconds_left": None if left is None else round(left, 1),
    }
