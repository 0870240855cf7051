"""Reads the current structure of tables from the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from connectors.mysql.connections import Server
from connectors.mysql.structure import TableName, quoted

__all__ = ["Catalog", "TableDdl"]


class TableDdl(NamedTuple):
    name: TableName
    sql: str


class Catalog:
    """Queries the server's catalog over its connection. Raises PyMySQL's errors."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def databases(self) -> dict[str, tuple[str, str]]:
        """The character set and the collation of each database that the user sees."""
        rows = self._server.rows(
            "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME"
        )
        return {str(name): (str(charset), str(collation)) for name, charset, collation in rows}

    def server_charset(self) -> str:
        return str(self._server.value("SELECT @@GLOBAL.character_set_server"))

    def tables(self) -> list[TableName]:
        """All base tables that the user can see, sorted by name."""
        rows = self._server.rows(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
        )
        return sorted((str(database), str(name)) for database, name in rows)

    def row_counts(self) -> dict[TableName, int]:
        """The server's estimate of the number of rows of each table."""
        counts = self._server.rows("SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES")
        return {(str(database), str(name)): int(rows or 0) for database, name, rows in counts}

    def clustered(self) -> dict[TableName, dict[str, str]]:
        """The tables that are stored in the order of their primary key, with the collations of its columns, empty for those that have
        none.
        """
        rows = self._server.rows(
            "SELECT t.TABLE_SCHEMA, t.TABLE_NAME, c.COLUMN_NAME, c.COLLATION_NAME FROM information_schema.TABLES t "
            "JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA = t.TABLE_SCHEMA AND c.TABLE_NAME = t.TABLE_NAME "
            "WHERE t.ENGINE = 'InnoDB' AND c.COLUMN_KEY = 'PRI'"
        )
        made: dict[TableName, dict[str, str]] = {}
        for database, name, column, collation in rows:
            made.setdefault((str(database), str(name)), {})[str(column)] = str(collation or "")
        return made

    def whole_rows_logged(self) -> bool:
        """Whether the log has all columns of each row that changed."""
        return str(self._server.value("SELECT @@GLOBAL.binlog_row_image") or "").upper().startswith("FULL")

    def ddl(self, names: Sequence[TableName]) -> list[TableDdl]:
        """The statements that create these tables in their current form."""
        made = []
        for name in names:
            rows = self._server.rows(f"SHOW CREATE TABLE {quoted(name)}")
            made.append(TableDdl(name, str(rows[0][1])))
        return made
