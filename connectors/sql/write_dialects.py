"""SQL that writes: DDL, and insert, upsert, update and delete in each database's words.

A statement takes its rows one by one by parameters, or all of them from a staging table. Compiled for SQL Server, Oracle
and Db2 too, which nothing here was ever run on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from connect.api import ConnectError, DataError
from connectors.sql.tables import TableId
from connectors.sql.write_types import ColumnSpec

__all__ = ["Statement", "WriteDialect", "parse_table", "write_dialect"]


@dataclass(frozen=True, slots=True)
class Statement:
    """``parameters`` are the columns in the order that its placeholders take them."""

    sql: str
    parameters: tuple[str, ...]


_PART: Final = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|\[([^\]]+)\]|([^.]+)')


def parse_table(name: str) -> TableId:
    """``[[catalog.]schema.]table``, each part plain or in quotes; raises ConnectError for what is none."""
    parts = [next(filter(None, found.groups())).replace('""', '"') for found in _PART.finditer(name)]
    if not 1 <= len(parts) <= 3 or not name.strip():
        raise ConnectError(
            f"{name!r} is not a table's name; it should look like table, schema.table or catalog.schema.table"
        )
    padded: list[str | None] = [None] * (3 - len(parts)) + list(parts)
    return TableId(padded[0], padded[1], parts[-1])


class WriteDialect:
    """The SQL standard, by parameters."""

    kind: ClassVar[str] = "generic"
    types: ClassVar[dict[str, str]] = {
        "int8": "SMALLINT",
        "int16": "SMALLINT",
        "int32": "INTEGER",
        "int64": "BIGINT",
        "float32": "REAL",
        "float64": "DOUBLE PRECISION",
        "boolean": "BOOLEAN",
        "string": "VARCHAR(4000)",
        "bytes": "BLOB",
        "decimal": "DECIMAL({precision},{scale})",
        "date": "DATE",
        "time": "TIME",
        "timestamp": "TIMESTAMP",
        "timestamptz": "TIMESTAMP WITH TIME ZONE",
    }
    key_types: ClassVar[dict[str, str]] = {}
    """Where a type cannot be part of a primary key, what stands for it there."""
    arrays = False
    savepoints = True
    transactional_ddl = False
    max_precision: ClassVar[int] = 38
    quotes: ClassVar[tuple[str, str]] = ('"', '"')
    placeholder = "?"

    def __init__(self, *, quoting: bool = True, hold_lock: bool = True) -> None:
        self.quoting = quoting
        self.hold_lock = hold_lock

    def quote(self, name: str) -> str:
        if not self.quoting:
            return name
        before, after = self.quotes
        return f"{before}{name.replace(after, after * 2)}{after}"

    def table(self, table: TableId) -> str:
        return ".".join(self.quote(part) for part in table if part is not None)

    def text(self, value: str) -> str:
        """A string literal."""
        return "'{}'".format(value.replace("'", "''"))

    def type_of(self, column: ColumnSpec) -> str:
        """The type that a new column gets; raises DataError where the database has none for it."""
        kind = column.kind if column.kind in self.types else "string"
        found = (self.key_types.get(kind) if column.key else None) or self.types[kind]
        precision = min(column.precision or self.max_precision, self.max_precision)
        found = found.format(precision=precision, scale=column.scale)
        if column.array:
            if not self.arrays:
                raise DataError(f"field {column.name!r} is an array, which {self.kind} has no column type for")
            return found + "[]"
        return found

    def default(self, column: ColumnSpec) -> str | None:
        """The default of a new column as a literal; None where there is none that is safely written."""
        value = column.default
        if value is None or column.unit or column.array:
            return None
        if isinstance(value, bool):
            return self.boolean(value)
        if isinstance(value, int | float):
            return repr(value)
        if isinstance(value, bytes):
            return None
        return self.text(str(value))

    def boolean(self, value: bool) -> str:
        return "TRUE" if value else "FALSE"

    def column(self, column: ColumnSpec) -> str:
        default = self.default(column)
        rest = f"DEFAULT {default}" if default is not None else "NULL" if column.optional else "NOT NULL"
        return f"{self.quote(column.name)} {self.type_of(column)} {rest}"

    def create(self, table: TableId, columns: Sequence[ColumnSpec]) -> str:
        parts = [self.column(column) for column in columns]
        keys = ",".join(self.quote(column.name) for column in columns if column.key)
        if keys:
            parts.append(f"PRIMARY KEY({keys})")
        return f"CREATE TABLE {self.table(table)} (\n" + ",\n".join(parts) + ")"

    def alter(self, table: TableId, columns: Sequence[ColumnSpec]) -> list[str]:
        added = ",\n".join(f"ADD {self.column(column)}" for column in columns)
        return [f"ALTER TABLE {self.table(table)}\n{added}"]

    def truncate(self, table: TableId) -> str:
        return f"TRUNCATE TABLE {self.table(table)}"

    def _list(self, names: Sequence[str]) -> str:
        return ",".join(self.quote(name) for name in names)

    def _values(self, names: Sequence[str]) -> str:
        return f"VALUES({','.join([self.placeholder] * len(names))})"

    def _where(self, keys: Sequence[str]) -> str:
        return " AND ".join(f"{self.quote(key)} = {self.placeholder}" for key in keys)

    def insert(self, table: TableId, keys: Sequence[str], rest: Sequence[str]) -> Statement:
        names = (*keys, *rest)
        return Statement(f"INSERT INTO {self.table(table)}({self._list(names)}) {self._values(names)}", names)

    def upsert(self, table: TableId, keys: Sequence[str], rest: Sequence[str]) -> Statement:
        raise ConnectError(f"insert.mode=upsert is not known for {self.kind} databases; insert and update are")

    def update(self, table: TableId, keys: Sequence[str], rest: Sequence[str]) -> Statement:
        changes = ", ".join(f"{self.quote(name)} = {self.placeholder}" for name in rest or keys)
        return Statement(
            f"UPDATE {self.table(table)} SET {changes} WHERE {self._where(keys)}", (*(rest or keys), *keys)
        )

    def delete(self, table: TableId, keys: Sequence[str], rest: Sequence[str] = ()) -> Statement:
        return Statement(f"DELETE FROM {self.table(table)} WHERE {self._where(keys)}", tuple(keys))

    def statement(self, operation: str, table: TableId, keys: Sequence[str], rest: Sequence[str]) -> Statement:
        """The statement of an operation: insert, upsert, update or delete."""
        made: Statement = getattr(self, operation)(table, keys, rest)
        return made

    def _on_conflict(self, keys: Sequence[str], rest: Sequence[str]) -> str:
        """PostgreSQL's clause, which SQLite and DuckDB took over."""
        if not rest:
            return f"ON CONFLICT ({self._list(keys)}) DO NOTHING"
        changes = ",".join(f"{self.quote(name)}=EXCLUDED.{self.quote(name)}" for name in rest)
        return f"ON CONFLICT ({self._list(keys)}) DO UPDATE SET {changes}"


class _OnConflict(WriteDialect):
    def upsert(self, table: TableId, keys: Sequence[str], rest: Sequence[str]) -> Statement:
        made = self.insert(table, keys, rest)
        return Statement(f"{made.sql} {self._on_conflict(keys, rest)}", made.parameters)


class PostgresWrites(_OnConflict):
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


class SqliteWrites(_OnConflict):
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

    def alter(self, table: TableId, columns: Sequence[ColumnSpec]) -> list[str]:
        return [f"ALTER TABLE {self.table(table)} ADD {self.column(column)}" for column in columns]

    def truncate(self, table: TableId) -> str:
        return f"DELETE FROM {self.table(table)}"

    def boolean(self, value: bool) -> str:
        return "1" if value else "0"


class DuckDbWrites(_OnConflict):
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
        """DuckDB adds one column at a time, and none that is NOT NULL."""
        made = []
        for column in columns:
            default = self.default(column)
            rest = f" DEFAULT {default}" if default is not None else ""
            made.append(f"ALTER TABLE {self.table(table)} ADD {self.quote(column.name)} {self.type_of(column)}{rest}")
        return made


class MySqlWrites(WriteDialect):
    kind = "mysql"
    types: ClassVar = WriteDialect.types | {
        "int8": "TINYINT",
        "int32": "INT",
        "float32": "FLOAT",
        "float64": "DOUBLE",
        "boolean": "TINYINT",
        "string": "TEXT",
        "bytes": "LONGBLOB",
        "decimal": "DECIMAL({precision},{scale})",
        "time": "TIME(3)",
        "timestamp": "DATETIME(3)",
        "timestamptz": "DATETIME(6)",
        "json": "JSON",
    }
    key_types: ClassVar = {"string": "VARCHAR(255)", "bytes": "VARBINARY(255)"}
    max_precision = 65
    quotes: ClassVar = ("`", "`")
    placeholder = "%s"

    def quote(self, name: str) -> str:
        """A percent sign would be taken for a parameter by the driver."""
        return super().quote(name).replace("%", "%%")

    def text(self, value: str) -> str:
        return super().text(value.replace("\\", "\\\\"))

    def default(self, column: ColumnSpec) -> str | None:
        """A TEXT or a BLOB has none there."""
        return None if column.kind in ("string", "json", "xml") and not column.key else super().default(column)

    def type_of(self, column: ColumnSpec) -> str:
        if column.kind in ("time", "timestamp") and column.unit in ("us", "ns"):
            return super().type_of(column).replace("(3)", "(6)")
        return super().type_of(column)

    def upsert(self, table: TableId, keys: Sequence[str], rest: Sequence[str]) -> Statement:
        made = self.insert(table, keys, rest)
        changes = ",".join(f"{self.quote(name)}=VALUES({self.quote(name)})" for name in rest or keys)
        return Statement(f"{made.sql} ON DUPLICATE KEY UPDATE {changes}", made.parameters)


class _Merging(WriteDialect):
    """MERGE, where a database has no shorter upsert. Each says how one row of parameters becomes a table."""

    end = ""

    def _target(self, table: TableId) -> str:
        return f"{self.table(table)} target"

    def _incoming(self, names: Sequence[str]) -> str:
        raise NotImplementedError

    def upsert(self, table: TableId, keys: Sequence[str], rest: Sequence[str]) -> Statement:
        names = (*keys, *rest)
        same = " AND ".join(f"target.{self.quote(k)}=incoming.{self.quote(k)}" for k in keys)
        changes = ",".join(f"target.{self.quote(n)}=incoming.{self.quote(n)}" for n in rest)
        matched = f" WHEN MATCHED THEN UPDATE SET {changes}" if rest else ""
        values = ",".join(f"incoming.{self.quote(n)}" for n in names)
        return Statement(
            f"MERGE INTO {self._target(table)} USING {self._incoming(names)} ON ({same}){matched} "
            f"WHEN NOT MATCHED THEN INSERT({self._list(names)}) VALUES({values}){self.end}",
            names,
        )


class SqlServerWrites(_Merging):
    kind = "sqlserver"
    types: ClassVar = WriteDialect.types | {
        "int8": "SMALLINT",
        "int32": "INT",
        "float64": "FLOAT",
        "boolean": "BIT",
        "string": "NVARCHAR(MAX)",
        "bytes": "VARBINARY(MAX)",
        "timestamp": "DATETIME2",
        "timestamptz": "DATETIMEOFFSET",
        "uuid": "UNIQUEIDENTIFIER",
    }
    key_types: ClassVar = {"string": "NVARCHAR(450)", "bytes": "VARBINARY(900)"}
    quotes: ClassVar = ("[", "]")
    transactional_ddl = True
    end = ";"

    def alter(self, table: TableId, columns: Sequence[ColumnSpec]) -> list[str]:
        return [f"ALTER TABLE {self.table(table)} ADD\n" + ",\n".join(self.column(column) for column in columns)]

    def boolean(self, value: bool) -> str:
        return "1" if value else "0"

    def _target(self, table: TableId) -> str:
        return f"{self.table(table)}{' WITH (HOLDLOCK)' if self.hold_lock else ''} AS target"

    def _incoming(self, names: Sequence[str]) -> str:
        return "(SELECT {}) AS incoming".format(", ".join(f"{self.placeholder} AS {self.quote(n)}" for n in names))


class OracleWrites(_Merging):
    kind = "oracle"
    types: ClassVar = WriteDialect.types | {
        "int8": "NUMBER(3,0)",
        "int16": "NUMBER(5,0)",
        "int32": "NUMBER(10,0)",
        "int64": "NUMBER(19,0)",
        "float32": "BINARY_FLOAT",
        "float64": "BINARY_DOUBLE",
        "boolean": "NUMBER(1,0)",
        "string": "CLOB",
        "decimal": "NUMBER(*,{scale})",
        "time": "DATE",
    }
    key_types: ClassVar = {"string": "VARCHAR2(4000)", "bytes": "RAW(2000)"}

    def alter(self, table: TableId, columns: Sequence[ColumnSpec]) -> list[str]:
        return [f"ALTER TABLE {self.table(table)} ADD(\n" + ",\n".join(self.column(column) for column in columns) + ")"]

    def boolean(self, value: bool) -> str:
        return "1" if value else "0"

    def _incoming(self, names: Sequence[str]) -> str:
        return "(SELECT {} FROM DUAL) incoming".format(", ".join(f"{self.placeholder} {self.quote(n)}" for n in names))


class Db2Writes(_Merging):
    kind = "db2"
    types: ClassVar = WriteDialect.types | {
        "int32": "INTEGER",
        "float32": "FLOAT",
        "float64": "DOUBLE",
        "boolean": "SMALLINT",
        "string": "VARCHAR(32672)",
        "bytes": "BLOB(64000)",
        "decimal": "DECIMAL(31,{scale})",
    }
    key_types: ClassVar = {"string": "VARCHAR(255)"}

    def boolean(self, value: bool) -> str:
        return "1" if value else "0"

    def _target(self, table: TableId) -> str:
        return f"{self.table(table)} AS target"

    def _incoming(self, names: Sequence[str]) -> str:
        return f"TABLE ({self._values(names)}) AS incoming({self._list(names)})"


_DIALECTS: Final[dict[str, type[WriteDialect]]] = {
    made.kind: made
    for made in (PostgresWrites, SqliteWrites, DuckDbWrites, MySqlWrites, SqlServerWrites, OracleWrites, Db2Writes)
}


def write_dialect(kind: str, **options: Any) -> WriteDialect:
    """The dialect of a kind of database, as ``Database.kind`` names it."""
    return _DIALECTS.get(kind, WriteDialect)(**options)
