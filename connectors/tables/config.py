"""A sink's configuration as the shared parts see it, whatever its keys are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Protocol

from connect.api import JavaRegex, Problem

__all__ = ["RoutedTable", "TableSinkConfig", "routing_problems", "setting_of", "setting_problems", "split_names"]


class RoutedTable(Protocol):
    """The settings of one table: its own where given, otherwise the defaults."""

    @property
    def route_regex(self) -> JavaRegex | None: ...
    @property
    def id_columns(self) -> tuple[str, ...]: ...


class TableSinkConfig(Protocol):
    prefix: ClassVar[str]
    """The prefix of the keys: ``iceberg`` or ``delta``."""

    @property
    def tables(self) -> list[str]: ...
    @property
    def dynamic(self) -> bool: ...
    @property
    def route_field(self) -> str | None: ...
    @property
    def auto_create(self) -> bool: ...
    @property
    def evolve_schema(self) -> bool: ...
    @property
    def case_insensitive(self) -> bool: ...
    @property
    def replace_null(self) -> bool: ...
    @property
    def cdc_field(self) -> str | None: ...
    @property
    def changes(self) -> bool:
        """Whether rows are changed by their id columns instead of appended."""
        ...

    @property
    def commit_interval_ms(self) -> int: ...
    @property
    def pending_bytes(self) -> int:
        """The bytes of rows after which a task commits before the interval is over."""
        ...

    def settings(self, table: str) -> RoutedTable: ...


def routing_problems(config: TableSinkConfig) -> Iterable[Problem]:
    prefix = f"{config.prefix}.tables"
    if config.tables and config.dynamic:
        yield Problem(prefix, f"{prefix} and {prefix}.dynamic-enabled exclude one another")
    if not config.tables and not config.dynamic:
        yield Problem(prefix, f"{prefix} has to name a table, such as shop.orders")
    if config.dynamic and not config.route_field:
        yield Problem(f"{prefix}.route-field", f"{prefix}.dynamic-enabled needs {prefix}.route-field")


def setting_problems(prefix: str, table: Mapping[str, str], settings: Sequence[str]) -> Iterable[Problem]:
    """Of the settings of single tables, ``PREFIX.table.NAME.SETTING``."""
    for name, value in table.items():
        of, _, setting = name.rpartition(".")
        full = f"{prefix}.table.{name}"
        if setting not in settings or not of:
            yield Problem(full, f"{full} is not a setting of a table: these are {', '.join(settings)}")
        elif setting == "route-regex":
            yield from _regex_problems(full, value)


def _regex_problems(name: str, value: str) -> Iterable[Problem]:
    try:
        JavaRegex(value)
    except (ValueError, re.error) as error:
        yield Problem(name, f"{name} is {value!r}, which is no regular expression: {error}")


def setting_of(table: Mapping[str, str], name: str, setting: str, default: str | None) -> str:
    """A setting of a table among those of all: ``NAME.setting``."""
    return table.get(f"{name}.{setting}", default or "")


def split_names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
