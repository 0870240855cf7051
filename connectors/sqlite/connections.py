"""Opens the database, and converts its errors to ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from connect.api import ConnectError, RetriableConnectError
from connectors.sqlite.config import SqliteConfig

__all__ = ["connect", "database_errors", "is_busy", "quoted", "writing"]

_PASSING: Final = frozenset(
    [
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_PROTOCOL,
    ]
)
"""Errors that may disappear with time or through another process."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def connect(config: SqliteConfig) -> sqlite3.Connection:
    """A connection that starts no transactions by itself and never creates a file. Raises sqlite3.Error."""
    return sqlite3.connect(
        f"{Path(config.path).absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=config.busy_timeout_ms / 1000,
        isolation_level=None,
        check_same_thread=False,
    )


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextmanager
def database_errors(config: SqliteConfig, doing: str) -> Iterator[None]:
    """Convert SQLite's errors to ours: a lock, a full disk and a missing file are retriable."""
    try:
        yield
    except sqlite3.Error as error:
        text = f"{doing} {config.path}: {error}"
        if _code(error) in _PASSING:
            hint = f" (another process held a lock for {config.busy_timeout_ms} ms)" if is_busy(error) else ""
            raise RetriableConnectError(text + hint) from error
        raise ConnectError(text) from error


@contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that takes the write lock at its beginning, so that no other write comes between its reads and
    writes.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
