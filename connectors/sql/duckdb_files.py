"""DuckDB's databases. A process may hold a file open in one way only, to read or to write, so all open it here."""

from __future__ import annotations

from typing import Any

__all__ = ["open_duckdb"]


def open_duckdb(path: str, *, writing: bool = False) -> Any:
    """A connection whose time zone is UTC. A reader shares the file with readers of other processes, and with a writer of
    this one; where another process writes, DuckDB's IOException tells of its lock.
    """
    import duckdb

    try:
        connection = duckdb.connect(path, read_only=not writing and path != ":memory:")
    except duckdb.ConnectionException:
        if writing:
            raise
        connection = duckdb.connect(path)  # this process writes to it
    connection.execute("SET TimeZone = 'UTC'")
    return connection
