"""MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from connectors.sql.tables import TableId
from connectors.sql.write_dialects.base import Statement, WriteDialect
from connectors.sql.write_types import ColumnSpec

__all__ = ["MySqlWrites"]


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
        """The driver would treat a percent sign as a parameter."""
        return super().quote(name).replace("%", "%%")

    def text(self, value: str) -> str:
        return super().text(value.replace("\\", "\\\\"))

    def default(self, column: ColumnSpec) -> str | None:
        """TEXT and BLOB columns cannot have defaults."""
        return None if column.kind in ("string", "json", "xml") and not column.key else super().default(column)

    def type_of(self, column: ColumnSpec) -> str:
        if column.kind in ("time", "timestamp") and column.unit in ("us", "ns"):
            return super().type_of(column).replace("(3)", "(6)")
        return super().type_of(column)

    def upsert(self, table: TableId, keys: Sequence[str], rest: Sequence[str]) -> Statement:
        made = self.insert(table, keys, rest)
        changes = ",".join(f"{self.quote(name)}=VALUES({self.quote(name)})" for name in rest or keys)
        return Statement(f"{made.sql} ON DUPLICATE KEY UPDATE {changes}", made.parameters)
