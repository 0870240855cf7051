"""Classifies drivers' errors by their type and codes.

Never by text that may be a user's name or value: a table may be called ``connection refused``. Where a driver reports
no code, its fixed messages are only looked for where the driver itself writes them.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from connectors.sql.mysql import LOST_CONNECTION

__all__ = ["LoginFault", "is_locked_sqlite", "is_lost_connection", "login_fault", "mysql_code"]

LoginFault = Literal["database", "password", "user"]

_LOST_STATES: Final = ("08", "57P", "53")
"""Classes of SQLSTATE (PostgreSQL, appendix A): connection exceptions, the server is shutting down or starting,
insufficient resources.
"""
_ADBC_IO: Final = 10
"""``ADBC_STATUS_IO`` (adbc.h)."""
_SQLITE_LOCKS: Final = frozenset({5, 6})
"""``SQLITE_BUSY`` and ``SQLITE_LOCKED``."""

# Before login, libpq has no SQLSTATE for the server's error (PQerrorMessage): it writes "... failed: FATAL: <the
# message>".
_REFUSED_LOGIN: Final = re.compile(
    r"failed: (?:FATAL:  (?:(?P<password>password authentication failed|[A-Z0-9-]+ authentication failed)|(?P<user>role \")|"
    r"(?P<database>database \".*\" does not exist)|no pg_hba\.conf entry|permission denied for database|must be )|"
    r"(?P<no_password>fe_sendauth: no password supplied))"
)
_LOCKED_SQLITE: Final = re.compile(
    r"[A-Z_]+: (?:\[SQLite\] )?[Ff]ailed to \w+(?: \w+)?: database (?:is locked|(?:table|schema) is locked(?:: .*)?)"
)
"""The complete message of ADBC's driver, which reports no code."""
_LOCKED_DUCKDB: Final = "IO Error: Could not set lock on file"
_MYSQL_FAULTS: Final[dict[int, LoginFault]] = {1044: "user", 1045: "password", 1049: "database", 1698: "password"}


def is_lost_connection(error: BaseException, kind: str) -> bool:
    """Whether a retry may succeed over another connection, or later over this one. ``kind`` is the database's."""
    original = _original(error)
    if getattr(error, "connection_invalidated", False):  # SQLAlchemy's dialects know the codes of their drivers
        return True
    if state := getattr(original, "sqlstate", None):
        return str(state).startswith(_LOST_STATES)
    match _driver(original):
        case "pymysql":
            return mysql_code(original) in LOST_CONNECTION or type(original).__name__ == "InterfaceError"
        case "psycopg":
            return (
                type(original).__name__ in ("ConnectionTimeout", "OperationalError") and login_fault(original) is None
            )
        case "adbc_driver_manager":
            if kind == "sqlite":
                return is_locked_sqlite(original)
            return getattr(original, "status_code", None) == _ADBC_IO and login_fault(original) is None
        case "sqlite3":
            return is_locked_sqlite(original)
        case "duckdb":
            return type(original).__name__ == "IOException" and str(original).startswith(_LOCKED_DUCKDB)
        case "builtins" | "socket":
            return isinstance(original, OSError)
        case _:
            # for an unknown driver, SQLAlchemy shows whether the failure came before there was a statement
            connecting = getattr(error, "statement", "") is None
            return connecting and type(error).__name__ in ("InterfaceError", "OperationalError")


def login_fault(error: BaseException) -> LoginFault | Literal["refused"] | None:
    """The part of the login that the server rejected; ``refused`` for another reason; None where the error is not about
    a login.
    """
    original = _original(error)
    if (code := mysql_code(original)) is not None:
        return _MYSQL_FAULTS.get(code)
    if _driver(original) not in ("psycopg", "adbc_driver_manager") or getattr(original, "sqlstate", None):
        return None  # an error with a code belongs to a statement, whose names and values may be any text
    match = _REFUSED_LOGIN.search(str(original))
    if match is None:
        return None
    if match["password"] or match["no_password"]:
        return "password"
    return "user" if match["user"] else "database" if match["database"] else "refused"


def is_locked_sqlite(error: BaseException) -> bool:
    """Whether another process or connection is currently writing."""
    original = _original(error)
    if (code := getattr(original, "sqlite_errorcode", None)) is not None:
        return code & 0xFF in _SQLITE_LOCKS
    return _LOCKED_SQLITE.fullmatch(next(iter(str(original).splitlines()), "")) is not None


def mysql_code(error: BaseException) -> int | None:
    """MySQL's error number; None where the error did not come from a server."""
    code = error.args[0] if error.args else None
    return code if isinstance(code, int) and _driver(error) == "pymysql" else None


def _original(error: BaseException) -> BaseException:
    """The driver's error that SQLAlchemy's wraps."""
    return getattr(error, "orig", None) or error


def _driver(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0].lstrip("_")
