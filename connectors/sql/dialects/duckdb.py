"""Reading DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import types
from sqlalchemy.dialects import mysql

from connect.api import ConnectError, Schema
from connectors.sql.dialects.base import Column, Dialect
from connectors.sql.tables import ReflectedColumn, TableId, like

__all__ = ["DuckDbDialect"]


class DuckDbDialect(Dialect):
    """``connection`` is DuckDB's own. Nearly all values arrive as Arrow data in the wanted form."""

    keeps_order = False

    def table(self, table: TableId, *, qualified: bool = True) -> str:
        parts = [*table] if qualified else [table.name]
        return ".".join(self.quote(part) for part in parts if part is not None)

    @property
    def now(self) -> str:
        return "SELECT epoch_us(get_current_timestamp())"

    def _column(self, column: ReflectedColumn, schema: Schema) -> Column:
        name = self.quote(column.name)
        kind: Any = column.type
        stamp = isinstance(kind, types.DateTime)
        textual = isinstance(kind, types.String | types.Uuid | types.JSON)
        return Column(
            column.name,
            schema,
            f"CAST({name} AS VARCHAR)"
            if textual
            else f"CAST({name} AS TIMESTAMP)"
            if stamp and not kind.timezone
            else name,
            increments=column.increments,
            timestamp=stamp,
            zoned=stamp and bool(kind.timezone),
        )

    def find_tables(
        self, connection: Any, *, types: Iterable[str], catalog_pattern: str | None, schema_pattern: str | None
    ) -> list[TableId]:
        kinds = {kind.upper() for kind in types}
        sources = []
        if kinds & {"TABLE", "BASE TABLE"}:
            sources.append("SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal")
        if "VIEW" in kinds:
            sources.append("SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal")
        rows = connection.execute(" UNION ALL ".join(sources)).fetchall() if sources else []
        return sorted(
            TableId(*row)
            for row in rows
            if (not catalog_pattern or like(catalog_pattern, row[0]))
            and (not schema_pattern or like(schema_pattern, row[1]))
        )

    def reflect_table(self, connection: Any, table: TableId) -> list[ReflectedColumn]:
        rows = connection.execute(
            "SELECT column_name, data_type, is_nullable, coalesce(column_default, '') FROM duckdb_columns() "
            "WHERE table_name = ? AND (? IS NULL OR schema_name = ?) AND (? IS NULL OR database_name = ?) ORDER BY column_index",
            [table.name, table.schema, table.schema, table.catalog, table.catalog],
        ).fetchall()
        if not rows:
            raise ConnectError(f"there is no table {table}")
        return [
            ReflectedColumn(name, _type_of(kind), nullable, default.startswith("nextval("))
            for name, kind, nullable, default in rows
        ]

    def reflect_query(self, connection: Any, query: str) -> list[ReflectedColumn]:
        rows = connection.execute(f"DESCRIBE SELECT * FROM ({query}) AS q").fetchall()
        return [ReflectedColumn(row[0], _type_of(row[1]), nullable=True) for row in rows]


_TYPES: Final[dict[str, types.TypeEngine[Any]]] = {
    "BOOLEAN": types.Boolean(),
    "TINYINT": mysql.TINYINT(),
    "UTINYINT": mysql.TINYINT(unsigned=True),
    "SMALLINT": types.SmallInteger(),
    "USMALLINT": mysql.SMALLINT(unsigned=True),
    "INTEGER": types.Integer(),
    "UINTEGER": mysql.INTEGER(unsigned=True),
    "BIGINT": types.BigInteger(),
    "UBIGINT": types.BigInteger(),
    "HUGEINT": types.Numeric(38, 0),
    "FLOAT": types.REAL(),
    "DOUBLE": types.Double(),
    "DATE": types.Date(),
    "TIME": types.Time(),
    "TIMESTAMP": types.DateTime(),
    "TIMESTAMP_S": types.DateTime(),
    "TIMESTAMP_MS": types.DateTime(),
    "TIMESTAMP_NS": types.DateTime(),
    "TIMESTAMP WITH TIME ZONE": types.DateTime(timezone=True),
    "VARCHAR": types.Text(),
    "UUID": types.Uuid(),
    "JSON": types.JSON(),
    "BLOB": types.LargeBinary(),
}


def _type_of(name: str) -> types.TypeEngine[Any]:
    """SQLAlchemy's type for one of DuckDB's; NullType for types that Connect's model cannot represent (MAP, STRUCT,
    INTERVAL).
    """
    if (items := re.fullmatch(r"(.*)\[[0-9]*\]", name, re.DOTALL)) is not None:
        return types.ARRAY(_type_of(items[1])) if not items[1].endswith("]") else types.NullType()
    if (decimal := re.fullmatch(r"DECIMAL\(([0-9]+),([0-9]+)\)", name)) is not None:
        return types.Numeric(int(decimal[1]), int(decimal[2]))
    if name.startswith("ENUM("):
        return types.Text()
    return _TYPES.get(name, types.NullType())
