"""Opens DuckDB databases.

A process can hold a file open in only one mode, reading or writing, so all connectors open files here.
"""

from __future__ import annotations

from typing import Any

from connect.api import files_are_limited, require_file

__all__ = ["open_duckdb"]


def open_duckdb(path: str, *, writing: bool = False) -> Any:
    """A connection whose time zone is UTC.

    A reader shares the file with readers in other processes, and with a writer in this one; where another process
    writes, DuckDB raises IOException about its lock. Raises PermissionError if the
    connector's owner has no right to the file; its queries then read no other files either.
    """
    import duckdb

    if path != ":memory:":
        require_file(path, writing=writing)
    settings: dict[str, Any] = {"enable_external_access": False} if files_are_limited() else {}

    try:
        connection = duckdb.connect(path, read_only=not writing and path != ":memory:", config=settings)
    except duckdb.ConnectionException:
        if writing:
            raise
        connection = duckdb.connect(path, config=settings)  # this process writes to it
    connection.execute("SET TimeZone = 'UTC'")
    return connection
