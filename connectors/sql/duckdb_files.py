"""Opens DuckDB databases.

A process can hold a file open in only one mode, reading or writing, so all connectors open files here.
"""

from __future__ import annotations

from typing import Any

__all__ = ["open_duckdb"]


def open_duckdb(path: str, *, writing: bool = False) -> Any:
    """A connection whose time zone is UTC.

    A reader shares the file with readers in other processes, and with a writer in this one; where another process
    writes, DuckDB raises IOException about its lock.
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
