"""SQLAlchemy engines for reflection and DDL, and the conversion of drivers' errors to ours.

SQLite is reached through its ADBC driver here as well: two copies of the SQLite library in one process would drop each
other's file locks (sqlite.org, "How To Corrupt An SQLite Database File", 2.2.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.base import ischema_names
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.pool import NullPool

from connect.api import ConnectError, MissingExtra, RetriableConnectError, TidegateError, require_file
from connectors.sql.errors import is_lost_connection, mysql_code
from connectors.sql.urls import PRESENT, Database

__all__ = ["AdbcSqliteDialect", "database_errors", "open_engine"]

_SQLITE_OF_THE_DRIVER = (3, 40, 0)
"""A version that is at least as new as the features for which SQLAlchemy checks the version (hidden columns,
RETURNING).
"""


class _AdbcSqlite:
    """The driver's DBAPI module with the one additional attribute that SQLAlchemy's dialect needs."""

    sqlite_version_info = _SQLITE_OF_THE_DRIVER

    def __getattr__(self, name: str) -> Any:
        import adbc_driver_sqlite.dbapi

        return getattr(adbc_driver_sqlite.dbapi, name)


class AdbcSqliteDialect(SQLiteDialect):
    """SQLAlchemy's SQLite dialect over the ADBC driver, in autocommit mode: meant for reading."""

    driver = "adbc"
    supports_statement_cache = True

    @classmethod
    def import_dbapi(cls) -> Any:
        return _AdbcSqlite()

    def create_connect_args(self, url: sqlalchemy.URL) -> Any:
        return [url.database or ":memory:"], {"autocommit": True}

    def _get_server_version_info(self, _connection: Any) -> tuple[int, ...]:
        return _SQLITE_OF_THE_DRIVER

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Nothing to undo in autocommit."""

    def do_commit(self, dbapi_connection: Any) -> None:
        """Nothing to commit in autocommit."""


ischema_names.setdefault("xml", sqlalchemy.Text)  # SQLAlchemy warns about it as unknown otherwise
registry.register("sqlite.adbc", __name__, "AdbcSqliteDialect")


def open_engine(database: Database, *, timeout_s: int = 10) -> sqlalchemy.Engine:
    """An engine without a pool. Nothing is connected yet. Raises PermissionError for a file that the connector's owner may not read."""
    if database.kind == "sqlite" and database.name != ":memory:":
        require_file(database.name)
    arguments: dict[str, Any] = {}
    if database.kind == "postgresql":
        # a connection that waits for the next poll must not hold a snapshot
        arguments["isolation_level"] = "AUTOCOMMIT"
        defaults = {**PRESENT, "connect_timeout": timeout_s}
        arguments["connect_args"] = {key: defaults[key] for key in defaults.keys() - database.parameters.keys()}
    return sqlalchemy.create_engine(database.sqlalchemy_url(), poolclass=NullPool, **arguments)


_OTHER_DRIVERS = {"sqlserver": "pyodbc", "oracle": "oracledb", "db2": "ibm_db_sa"}
_EXTRAS = {"postgresql": "postgres", "mysql": "mysql", "duckdb": "duckdb"}


@contextmanager
def database_errors(database: Database, doing: str) -> Iterator[None]:
    """Convert a driver's errors to one line that names the database and the action.

    A connection that failed or was lost is retriable; all other errors of the server (no such column, no permission)
    are permanent.
    """
    try:
        yield
    except TidegateError:
        raise
    except sqlalchemy.exc.NoSuchModuleError as error:
        known = f"there is no SQLAlchemy dialect for {database.kind} here"
        raise ConnectError(f"{doing} {database}: {known}: install one, or correct connection.url") from error
    except ImportError as error:
        if (package := _OTHER_DRIVERS.get(database.kind)) is not None:
            message = f"{doing} {database}: its driver is not installed: pip install {package}"
            raise ConnectError(message) from error
        raise MissingExtra(f"a {database.kind} database", _EXTRAS.get(database.kind, "jdbc")) from error
    except Exception as error:
        said = _first_lines(error)
        said += _advice(said)
        if is_lost_connection(error, database.kind):
            raise RetriableConnectError(f"{doing} {database}: {said}") from error
        raise ConnectError(f"{doing} {database}: {said}") from error


_ADVICE = (
    (r"password authentication failed|no password supplied|Access denied for user .*password",
     "check connection.user and connection.password"),
    (r"Access denied for user .* to database", "GRANT SELECT on the database's tables to that user"),
    (r'role ".*" does not exist', "check connection.user"),
    (r'database ".*" does not exist|Unknown database', "check the name at the end of connection.url"),
    (r"no pg_hba\.conf entry", "pg_hba.conf of the server has to let this user in from here"),
    (r"permission denied for (table|view|relation|schema|sequence)|command denied to user",
     "GRANT SELECT ON it (in PostgreSQL also USAGE ON its SCHEMA) to the user of connection.user"),
    (r"could not translate host name|Name or service not known|Temporary failure in name resolution|nodename nor servname",
     "check the host in connection.url"),
    (r"[Cc]onnection refused|Can't connect to MySQL server", "is the server running there? Check host and port in connection.url"),
    (r"Could not set lock on file", "another process holds the file open; it is tried again"),
)  # fmt: skip
"""Advice for servers' error messages about a configuration."""


def _advice(said: str) -> str:
    return next((f"; {advice}" for pattern, advice in _ADVICE if re.search(pattern, said)), "")


def _first_lines(error: Exception) -> str:
    """The server's message, without SQLAlchemy's links and the statement's text."""
    original = getattr(error, "orig", None) or error
    text = str(original.args[1]) if mysql_code(original) is not None and len(original.args) > 1 else str(original)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not _ASIDE.match(line)]
    said = " ".join(kept[:3]) or type(error).__name__
    return said if said.count(_SERVER) > 1 else _PREAMBLE.sub("", said)


_SERVER: Final = "connection to server "
_ASIDE: Final = re.compile(
    r"(LINE \d+:|\^|Query was:|query:|\[SQL:|\(Background)|(?:\t|\s)*Is the server running|Multiple connection attempts failed"
)
_PREAMBLE: Final = re.compile(
    rf"^(?:[A-Z_]+: )?(?:\[libpq\] )?(?:Failed to connect: )?(?:connection failed: )?{_SERVER}.*? failed: (?:FATAL:\s+)?"
)
"""The words of libpq and its drivers before the reason. The database is named already, unless there are several hosts."""
