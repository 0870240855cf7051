"""Problems that opening the database shows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from connect.api import DataError, Problem
from connectors.debezium.filters import Filters
from connectors.sqlite.changelog import ChangeLog
from connectors.sqlite.config import SqliteConfig
from connectors.sqlite.connections import connect, is_busy
from connectors.sqlite.tables import SCHEMA, captured, tables_of

__all__ = ["find_problems"]

_LEAST: Final = (3, 37, 0)
_MOST_COLUMNS: Final = 900
"""The most columns of a table: the log has two for each, and SQLite's limit is 2000."""


def find_problems(config: SqliteConfig) -> Iterable[Problem]:
    """Each problem says what to do."""
    if sqlite3.sqlite_version_info < _LEAST:
        yield Problem(
            "database.path",
            f"the worker's Python has SQLite {sqlite3.sqlite_version}: 3.37 or later is needed",
        )
        return
    if not Path(config.path).is_file():
        yield Problem("database.path", f"there is no file {config.path!r} on the worker's machine")
        return
    try:
        connection = connect(config)
    except sqlite3.Error as error:
        yield Problem("database.path", f"{config.path!r} cannot be opened: {error}")
        return
    try:
        yield from _problems(config, connection)
    finally:
        connection.close()


def _problems(config: SqliteConfig, connection: sqlite3.Connection) -> Iterable[Problem]:
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            yield Problem(
                "database.path",
                f"another process holds the lock of {config.path!r} for longer than {config.busy_timeout_ms} ms: end its transaction, "
                "or raise database.busy.timeout.ms",
            )
        else:
            yield Problem(
                "database.path",
                f"{config.path!r} cannot be written, which triggers need: {error}; the worker needs the right to write the file "
                "and its folder",
            )
        return
    log = ChangeLog(connection, config.log, config.prefix)
    if log.exists and (server := log.owner()[1]) != config.prefix:
        yield Problem(
            "change.log.name",
            f"change log {config.log!r} belongs to a connector with topic.prefix={server}: give this one another name",
        )
    filters = Filters(config)
    try:
        tables = captured(connection, filters, config.log)
    except DataError as error:
        yield Problem("message.key.columns", str(error))
        return
    if not tables and config.table_include:
        names = [f"{SCHEMA}.{name}" for name, _ in tables_of(connection)]
        yield Problem(
            "table.include.list",
            f"no table matches: names are {SCHEMA}.table, and the tables there are: {', '.join(names[:20]) or 'none'}",
        )
    for table in tables:
        if len(table.columns) > _MOST_COLUMNS:
            yield Problem(
                "column.include.list",
                f"table {table.full_name} has {len(table.columns)} columns: at most {_MOST_COLUMNS} can be captured",
            )
