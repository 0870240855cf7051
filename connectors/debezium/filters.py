"""Which tables and columns are meant, and what is done to single columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from connectors.debezium.config import CaptureConfig, parse_key_columns

__all__ = ["Chosen", "Filters", "compiled"]


def compiled(patterns: Iterable[str]) -> list[re.Pattern[str]]:
    """Patterns that must match a whole name, whatever its case, as Debezium's."""
    return [re.compile(pattern.strip(), re.IGNORECASE) for pattern in patterns]


def _any(patterns: Sequence[re.Pattern[str]], *names: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns for name in names)


class Chosen:
    """The names that an include list chooses; where it is empty, all but those of the exclude list."""

    __slots__ = ("_exclude", "_include")

    def __init__(self, include: Iterable[str], exclude: Iterable[str]) -> None:
        self._include, self._exclude = compiled(include), compiled(exclude)

    def has(self, *names: str) -> bool:
        """Whether one of what a thing is called is chosen."""
        return _any(self._include, *names) if self._include else not _any(self._exclude, *names)


class Filters:
    """The lists of a configuration, compiled. Tables are named ``schema.table``, columns ``schema.table.column``."""

    def __init__(self, config: CaptureConfig, *, database: str = "") -> None:
        self._database = database
        self._signals = (config.signal_collection or "").lower()
        self._tables = Chosen(config.table_include, config.table_exclude)
        self._columns = Chosen(config.column_include, config.column_exclude)
        self._keys = parse_key_columns(config.key_columns)
        self._propagated = compiled(config.propagate_columns)
        self._propagated_types = compiled(config.propagate_types)
        self._masks = [
            (int(name.split(".")[1]), compiled(patterns.split(","))) for name, patterns in config.column_masks.items()
        ]
        self._cuts = [
            (int(name.split(".")[0]), compiled(patterns.split(",")))
            for name, patterns in config.column_truncations.items()
        ]

    def table(self, name: str) -> bool:
        """Whether it is captured; the table of signals always is."""
        return name.lower() == self._signals or self._tables.has(name)

    def column(self, table: str, column: str) -> bool:
        return self._columns.has(f"{table}.{column}", f"{self._database}.{table}.{column}")

    def key_of(self, table: str) -> list[str] | None:
        """The columns that message.key.columns gives a table."""
        for pattern, columns in self._keys:
            if pattern.fullmatch(table) or pattern.fullmatch(f"{self._database}.{table}"):
                return columns
        return None

    def mask(self, table: str, column: str) -> int | None:
        """How many asterisks replace the column's text."""
        names = (f"{table}.{column}", f"{self._database}.{table}.{column}")
        return next((length for length, patterns in self._masks if _any(patterns, *names)), None)

    def cut(self, table: str, column: str) -> int | None:
        """How many characters of the column's text are kept."""
        names = (f"{table}.{column}", f"{self._database}.{table}.{column}")
        return next((length for length, patterns in self._cuts if _any(patterns, *names)), None)

    def propagated(self, table: str, column: str, type_name: str) -> bool:
        names = (f"{table}.{column}", f"{self._database}.{table}.{column}")
        types = (f"{self._database}.{type_name}", type_name, *(f"{name}.{type_name}" for name in names))
        return _any(self._propagated, *names) or _any(self._propagated_types, *types)
