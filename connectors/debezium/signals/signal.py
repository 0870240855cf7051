"""Signals and their contents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from connect.api import DataError, JavaRegex

__all__ = ["Signal", "SnapshotRequest", "signal_of_json", "signal_of_row", "stop_patterns"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal; ``data`` is empty where the signal has none."""

    id: str
    type: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """``execute-snapshot``: the tables (full names as regular expressions), a condition for each, the column to read
    by.
    """

    tables: tuple[str, ...]
    blocking: bool
    conditions: tuple[tuple[str, str], ...]
    surrogate_key: str

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> SnapshotRequest:
        """Parse a signal's data. Raises DataError that says what is wrong."""
        tables = _patterns(data)
        if not tables:
            raise DataError("data-collections should be a list of regular expressions for whole names schema.table")
        kind = data.get("type") or "incremental"
        if not isinstance(kind, str) or kind.lower() not in ("incremental", "blocking"):
            raise DataError(f"type {kind!r} should be incremental or blocking")
        conditions = []
        additional = data.get("additional-conditions") or []
        for condition in additional if isinstance(additional, list) else [additional]:
            names = ("data-collection", "filter")
            if not isinstance(condition, dict) or not all(isinstance(condition.get(name), str) for name in names):
                raise DataError(f"additional-conditions has {condition!r}: should have data-collection and filter")
            conditions.append((_checked(condition["data-collection"].strip()), condition["filter"]))
        surrogate = data.get("surrogate-key") or ""
        if not isinstance(surrogate, str):
            raise DataError(f"surrogate-key {surrogate!r} should be a column's name")
        return cls(tables, kind.lower() == "blocking", tuple(conditions), surrogate)

    def condition(self, table: str) -> str:
        """The SQL condition for a table's rows; empty where there is none."""
        return next(
            (sql for pattern, sql in self.conditions if JavaRegex(pattern, ignore_case=True).fullmatch(table)), ""
        )


def stop_patterns(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The tables that ``stop-snapshot`` names; every table where it names none."""
    return _patterns(data) or (".*",)


def _patterns(data: Mapping[str, Any]) -> tuple[str, ...]:
    collections = data.get("data-collections") or []
    if not isinstance(collections, list) or not all(isinstance(collection, str) for collection in collections):
        raise DataError(f"data-collections {collections!r} should be a list of texts")
    return tuple(_checked(collection.strip()) for collection in collections)


def _checked(pattern: str) -> str:
    try:
        JavaRegex(pattern)
    except ValueError as error:
        raise DataError(f"{pattern!r} is no regular expression: {error}") from error
    return pattern


def signal_of_row(row: Mapping[str, Any]) -> Signal:
    """A signal from a row of the signal table: its first three columns, whatever their names. Raises DataError."""
    values = [*row.values()][:3]
    if len(values) < 3 or not all(isinstance(value, str) for value in values[:2]):
        raise DataError("a row of the table of signals should have texts for id, type and data")
    return Signal(values[0], values[1], _data(values[2]))


def signal_of_json(text: str) -> Signal:
    """A signal from a line of a file or the value of a record. Raises DataError."""
    try:
        made = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{text[:80]!r} is no JSON: {error}") from error
    if not isinstance(made, dict) or not isinstance(made.get("type"), str):
        raise DataError(f'{text[:80]!r} should be {{"id": ..., "type": ..., "data": {{...}}}}')
    return Signal(str(made.get("id") or ""), made["type"], _data(made.get("data")))


def _data(data: Any) -> Mapping[str, Any]:
    """An object, or a text that holds one as JSON; an empty text means none, as in Debezium."""
    if isinstance(data, str):
        try:
            data = json.loads(data) if data.strip() else {}
        except (ValueError, RecursionError) as error:
            raise DataError(f"data {data[:80]!r} is no JSON: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise DataError(f"data {str(data)[:80]!r} should be an object")
    return data
