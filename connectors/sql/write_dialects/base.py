"""SQL for writing in standard form; each database's dialect overrides its differences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from connect.api import ConnectError, DataError
from connectors.sql.tables import TableId
from connectors.sql.write_types import ColumnSpec

__all__ = ["Statement", "WriteDialect", "parse_table"]


@dataclass(frozen=True, slots=True)
class Statement:
    """``parameters`` are the columns in the order of the placeholders."""

    sql: str
    parameters: tuple[str, ...]


_PART: Final = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`|\[([^\]]+)\]|([^.]+)')


def parse_table(name: str) -> TableId:
    """``[[catalog.]schema.]table``, each part plain or quoted; raises ConnectError for an invalid name."""
    parts = [next(filter(None, match.groups())).replace('""', '"') for match in _PART.finditer(name)]
    if not 1 <= len(parts) <= 3 or not name.strip():
        raise ConnectError(
            f"{name!r} is not a table's name; it should look like table, schema.table or catalog.schema.table"
        )
    padded: list[str | None] = [None] * (3 - len(parts)) + list(parts)
    return TableId(padded[0], padded[1], parts[-1])


class WriteDialect:
    """Standard SQL, configured by attributes."""

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
    """The type used in a primary key instead of one that cannot be part of it."""
    arrays = False
    savepoints = True
    transactional_ddl = False
    max_precision: ClassVar[int] = 38
    quotes: ClassVar[tuple[str, str]] = ('"', '"')
    placeholder = "?"
    booleans: ClassVar[tuple[str, str]] = ("FALSE", "TRUE")

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
        """The type of a new column; raises DataError where the database has none for it."""
        kind = column.kind if column.kind in self.types else "string"
        type_name = (self.key_types.get(kind) if column.key else None) or self.types[kind]
        precision = min(column.precision or self.max_precision, self.max_precision)
        type_name = type_name.format(precision=precision, scale=column.scale)
        if column.array:
            if not self.arrays:
                raise DataError(f"field {column.name!r} is an array, which {self.kind} has no column type for")
            return type_name + "[]"
        return type_name

    def default(self, column: ColumnSpec) -> str | None:
        """The default of a new column as a literal; None where it cannot be written safely."""
        value = column.default
        if value is None or column.unit or column.array:
            return None
        if isinstance(value, bool):
            return self.booleans[value]
        if isinstance(value, int | float):
            return repr(value)
        if isinstance(value, bytes):
            return None
        return self.text(str(value))

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
        """The SQL of an operation: insert, upsert, update or delete."""
        made: Statement = getattr(self, operation)(table, keys, rest)
        return made
