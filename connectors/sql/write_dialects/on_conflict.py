"""PostgreSQL, SQLite and DuckDB: upserts with ON CONFLICT, and writing whole staging tables at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from connectors.sql.tables import TableId
from connectors.sql.write_dialects.base import Statement, WriteDialect
from connectors.sql.write_types import ColumnSpec

__all__ = ["DuckDbWrites", "OnConflictDialect", "PostgresWrites", "SqliteWrites"]


class OnConflictDialect(WriteDialect):
    """PostgreSQL's syntax, which SQLite and DuckDB adopted."""

    def _on_conflict(self, keys: Sequence[str], rest: Sequence[str]) -> str:
        if not rest:
            return f"ON CONFLICT ({self._list(keys)}) DO NOTHING"
        changes = ",".join(f"{self.quote(name)}=EXCLUDED.{self.quote(name)}" for name in rest)
        return f"ON CONFLICT ({self._list(keys)}) DO UPDATE SET {changes}"

    def upsert(self, table: TableId, keys: Sequence[str], rest: Sequence[str]) -> Statement:
        made = self.insert(table, keys, rest)
        return Statement(f"{made.sql} {self._on_conflict(keys, rest)}", made.parameters)

    def from_staging(
        self, operation: str, table: TableId, columns: Sequence[str], keys: int, staging: str, values: Sequence[str]
    ) -> str:
        """An operation with all rows of a staging table named ``s``.

        ``columns`` are the target's, of which the first ``keys`` are its key; ``values`` are the expressions over ``s``
        for these columns.
        """
        name, quoted = self.table(table), [self.quote(column) for column in columns]
        pairs = list(zip(quoted, values, strict=True))
        same = " AND ".join(f"t.{column} = {value}" for column, value in pairs[:keys])
        if operation == "delete":
            return f"DELETE FROM {name} t USING {staging} s WHERE {same}"
        if operation == "update":
            changes = ", ".join(f"{column} = {value}" for column, value in pairs[keys:] or pairs)
            return f"UPDATE {name} t SET {changes} FROM {staging} s WHERE {same}"
        insert = f"INSERT INTO {name}({','.join(quoted)}) SELECT {', '.join(values)} FROM {staging} s"
        return insert if operation == "insert" else f"{insert} {self._on_conflict(columns[:keys], columns[keys:])}"


class PostgresWrites(OnConflictDialect):
    kind = "postgresql"
    types: ClassVar = WriteDialect.types | {
        "int32": "INT",
        "string": "TEXT",
        "bytes": "BYTEA",
        "decimal": "DECIMAL",
        "timestamptz": "TIMESTAMPTZ",
        "json": "JSON",
        "uuid": "UUID",
        "xml": "XML",
    }
    arrays = True
    transactional_ddl = True

    def type_of(self, column: ColumnSpec) -> str:
        if column.kind == "decimal" and column.precision is not None:
            return f"DECIMAL({column.precision},{column.scale})" + "[]" * column.array
        return super().type_of(column)


class SqliteWrites(OnConflictDialect):
    kind = "sqlite"
    types: ClassVar = {
        **dict.fromkeys(("int8", "int16", "int32", "int64", "boolean"), "INTEGER"),
        **dict.fromkeys(("float32", "float64"), "REAL"),
        **dict.fromkeys(("decimal", "date", "time", "timestamp"), "NUMERIC"),
        **dict.fromkeys(("string", "timestamptz"), "TEXT"),
        "bytes": "BLOB",
    }
    transactional_ddl = True
    quotes: ClassVar = ("`", "`")
    booleans: ClassVar = ("0", "1")

    def alter(self, table: TableId, columns: Sequence[ColumnSpec]) -> list[str]:
        return [f"ALTER TABLE {self.table(table)} ADD {self.column(column)}" for column in columns]

    def truncate(self, table: TableId) -> str:
        return f"DELETE FROM {self.table(table)}"


class DuckDbWrites(OnConflictDialect):
    kind = "duckdb"
    types: ClassVar = WriteDialect.types | {
        "int8": "TINYINT",
        "float64": "DOUBLE",
        "string": "VARCHAR",
        "timestamptz": "TIMESTAMPTZ",
        "json": "JSON",
        "uuid": "UUID",
    }
    arrays = True
    savepoints = False
    transactional_ddl = True

    def alter(self, table: TableId, columns: Sequence[ColumnSpec]) -> list[str]:
        """DuckDB adds one column per statement, and none that is NOT NULL."""
        made = []
        for column in columns:
            default = self.default(column)
            rest = f" DEFAULT {default}" if default is not None else ""
            made.append(f"ALTER TABLE {self.table(table)} ADD {self.quote(column.name)} {self.type_of(column)}{rest}")
        return made
