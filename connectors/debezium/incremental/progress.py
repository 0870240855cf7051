"""The progress of incremental snapshots, stored in the offset under the names that Debezium uses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from connect.api import DataError
from connectors.debezium.javaobjects import read_keys, written_keys

__all__ = ["MEMBER_PREFIX", "Progress", "TablePart", "Unreadable", "unknown_table", "without_members"]

MEMBER_PREFIX: Final = "incremental_snapshot_"
_COLLECTIONS: Final = "incremental_snapshot_collections"
_SENT, _MAXIMUM = f"{MEMBER_PREFIX}primary_key", f"{MEMBER_PREFIX}maximum_key"
_CORRELATION: Final = f"{MEMBER_PREFIX}correlation_id"


class TablePart(NamedTuple):
    """A table to read: its full name, an SQL condition, the column to read by (the primary key where empty), and the
    signal that asked for it.

    In an offset only the last signal's id is kept, as in Debezium.
    """

    table: str
    condition: str = ""
    surrogate: str = ""
    correlation: str = ""

    def read_by(self, primary: Iterable[str]) -> list[str]:
        """The columns to read a table with this primary key by. Raises DataError where there are none."""
        names = [self.surrogate] if self.surrogate else list(primary)
        if not names:
            raise Unreadable(f"table {self.table} has no primary key: name a column in surrogate-key", "NO_PRIMARY_KEY")
        return names


class Unreadable(DataError):
    """A table cannot be read in chunks; ``status`` is the status that notifications report."""

    def __init__(self, message: str, status: str) -> None:
        super().__init__(message)
        self.status = status


def unknown_table(part: TablePart) -> Unreadable:
    return Unreadable(f"table {part.table} is not there, or not captured", "UNKNOWN_SCHEMA")


def without_members(offset: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in offset.items() if not name.startswith(MEMBER_PREFIX)}


@dataclass(slots=True)
class Progress:
    """``parts`` are the tables still to be read, the first of which is in progress: up to ``maximum``, with rows
    delivered up to ``sent``.
    """

    parts: list[TablePart] = field(default_factory=list)
    sent: tuple[Any, ...] | None = None
    maximum: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Progress:
        """Read it from an offset. Raises DataError where its members are invalid."""
        text = offset.get(_COLLECTIONS)
        if not text:
            return cls()
        try:
            parts = [
                TablePart(
                    state[f"{_COLLECTIONS}_id"],
                    state.get(f"{_COLLECTIONS}_additional_condition") or "",
                    state.get(f"{_COLLECTIONS}_surrogate_key") or "",
                    state.get(f"{_COLLECTIONS}_correlation_id") or offset.get(_CORRELATION) or "",
                )
                for state in json.loads(text)
            ]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{_COLLECTIONS} {str(text)[:80]!r} is no list of tables") from error
        return cls(parts, _key(offset.get(_SENT)), _key(offset.get(_MAXIMUM)))

    def members(self) -> dict[str, Any]:
        """The members to store in an offset; empty when there is nothing to read."""
        if not self.parts:
            return {}
        collections = [
            {
                f"{_COLLECTIONS}_id": part.table,
                f"{_COLLECTIONS}_additional_condition": part.condition or None,
                f"{_COLLECTIONS}_surrogate_key": part.surrogate or None,
            }
            for part in self.parts
        ]
        return {
            _COLLECTIONS: json.dumps(collections, separators=(",", ":"), ensure_ascii=False),
            _SENT: written_keys(self.sent),
            _MAXIMUM: written_keys(self.maximum),
            _CORRELATION: self.parts[-1].correlation,
        }

    def add(self, parts: Sequence[TablePart]) -> None:
        self.parts += parts

    def next_table(self) -> None:
        """Remove the first table: it has been read, or cannot be."""
        self.parts.pop(0)
        self.sent = self.maximum = None


def _key(text: Any) -> tuple[Any, ...] | None:
    keys = read_keys(text) if isinstance(text, str) else None
    return None if keys is None else tuple(keys)
