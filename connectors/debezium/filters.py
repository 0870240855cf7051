"""Which tables and columns are captured, and how single columns are masked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from connect.api import JavaRegex
from connectors.debezium.config import CaptureConfig, parse_key_columns
from connectors.debezium.masks import Mask, Masks

__all__ = ["Chosen", "Filters", "compiled"]


def compiled(patterns: Iterable[str]) -> list[JavaRegex]:
    """Patterns that must match a whole name, ignoring case, as in Debezium."""
    return [JavaRegex(pattern.strip(), ignore_case=True) for pattern in patterns]


def _any(patterns: Sequence[JavaRegex], *names: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns for name in names)


class Chosen:
    """The names that an include list selects; where that is empty, all names except those in the exclude list."""

    __slots__ = ("_exclude", "_include")

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        self._include, self._exclude = compiled(include), compiled(exclude)

    def has(self, *names: str) -> bool:
        """Whether any of the names of one table or column is selected."""
        return _any(self._include, *names) if self._include else not _any(self._exclude, *names)

    def rank(self, name: str) -> int:
        """The index of the first include pattern that matches a name; the number of patterns where none does."""
        return next((n for n, pattern in enumerate(self._include) if pattern.fullmatch(name)), len(self._include))

    def missing(self, names: Iterable[str]) -> list[str]:
        """The include patterns that match none of the existing names."""
        known = list(names)
        return [p.pattern for p in self._include if not any(p.fullmatch(name) for name in known)]


class Filters:
    """A configuration's lists, compiled. Tables are named ``schema.table``, columns ``schema.table.column``."""

    def __init__(self, config: CaptureConfig, *, database: str = "") -> None:
        self._database = database
        self._signals = (config.signal_collection or "").lower()
        self._tables = Chosen(config.table_include, config.table_exclude)
        self._columns = Chosen(config.column_include, config.column_exclude)
        self._keys = parse_key_columns(config.key_columns)
        self._propagated = compiled(config.propagate_columns)
        self._propagated_types = compiled(config.propagate_types)
        self._masks = Masks(config.column_masks, config.column_truncations)

    def table(self, name: str) -> bool:
        """Whether a table is captured; the signal table always is."""
        return name.lower() == self._signals or self._tables.has(name)

    def rank(self, name: str) -> int:
        """The sort key of a table in a snapshot: its position in ``table.include.list``."""
        return self._tables.rank(name)

    def missing(self, names: Iterable[str]) -> list[str]:
        """The patterns of ``table.include.list`` that match no existing table."""
        return self._tables.missing(names)

    def column(self, table: str, column: str) -> bool:
        return self._columns.has(f"{table}.{column}", f"{self._database}.{table}.{column}")

    def key_of(self, table: str) -> list[str] | None:
        """The key columns that message.key.columns sets for a table."""
        for pattern, columns in self._keys:
            if pattern.fullmatch(table) or pattern.fullmatch(f"{self._database}.{table}"):
                return columns
        return None

    def mask(self, table: str, column: str, length: int | None = None) -> Mask | None:
        """The mask of a text column whose values have at most ``length`` characters; None where it is not masked."""
        return self._masks.of((f"{table}.{column}", f"{self._database}.{table}.{column}"), length)

    def propagated(self, table: str, column: str, type_name: str) -> bool:
        names = (f"{table}.{column}", f"{self._database}.{table}.{column}")
        types = (f"{self._database}.{type_name}", type_name, *(f"{name}.{type_name}" for name in names))
        return _any(self._propagated, *names) or _any(self._propagated_types, *types)
