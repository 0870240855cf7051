"""Reading MySQL and MariaDB. The session's time zone is UTC, so a TIMESTAMP is an instant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import types
from sqlalchemy.dialects import mysql

from connect.api import ConnectError, Schema
from connectors.sql.dialects.base import EPOCH, Column, Dialect
from connectors.sql.tables import ReflectedColumn, TableId, like

__all__ = ["MySqlDialect"]

_SYSTEM: Final = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
_TABLE_TYPES: Final = {"TABLE": ("BASE TABLE", "SYSTEM VERSIONED", "SEQUENCE"), "VIEW": ("VIEW",)}


class MySqlDialect(Dialect):
    """``connection`` is PyMySQL's."""

    quotes = ("`", "`")
    keeps_order = False  # MariaDB drops the ORDER BY of a subselect that has no LIMIT

    def table(self, table: TableId, *, qualified: bool = True) -> str:
        parts = [table.catalog, table.name] if qualified else [table.name]
        return ".".join(self.quote(part) for part in parts if part is not None)

    def integer(self, expression: str) -> str:
        return f"CAST({expression} AS SIGNED)"

    @property
    def now(self) -> str:
        return "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"

    def literal(self, epoch_micros: int, *, zoned: bool) -> str:
        shown = (
            (EPOCH + timedelta(microseconds=epoch_micros)).replace(tzinfo=None) if zoned else self.local(epoch_micros)
        )
        return f"TIMESTAMP'{shown.isoformat(' ', 'microseconds')}'"

    def _column(self, column: ReflectedColumn, schema: Schema) -> Column:
        name = self.quote(column.name)
        kind = column.type
        if isinstance(kind, mysql.FLOAT):
            select = f"({name} + 0e0)"  # as text, a FLOAT would have only six digits
        elif isinstance(kind, mysql.BIT):
            select = f"({name} + 0)"
        elif isinstance(kind, mysql.YEAR):
            select = f"CONCAT({name}, '-01-01')"
        else:
            select = name
        stamp = isinstance(kind, types.DateTime)
        return Column(
            column.name,
            schema,
            select,
            increments=column.increments,
            timestamp=stamp,
            zoned=isinstance(kind, types.TIMESTAMP),
        )

    def find_tables(
        self, connection: Any, *, types: Iterable[str], catalog_pattern: str | None, schema_pattern: str | None
    ) -> list[TableId]:
        """Databases are JDBC's catalogs here; without a pattern the database in the URL is used, or all where the URL
        names none.
        """
        kinds = {name for kind in types for name in _TABLE_TYPES.get(kind.upper(), (kind.upper(),))}
        with connection.cursor() as cursor:
            cursor.execute("SELECT table_schema, table_name, table_type, DATABASE() FROM information_schema.tables")
            rows = cursor.fetchall()
        chosen = []
        for catalog, name, kind, current in rows:
            meant = like(catalog_pattern, catalog) if catalog_pattern else catalog == current if current else True
            if meant and kind in kinds and catalog.lower() not in _SYSTEM:
                chosen.append(TableId(catalog, None, name))
        return sorted(chosen)

    def reflect_table(self, connection: Any, table: TableId) -> list[ReflectedColumn]:
        with connection.cursor() as cursor:
            cursor.execute(_COLUMNS, (table.name, table.catalog, table.catalog))
            rows = cursor.fetchall()
        if not rows:
            raise ConnectError(
                f"there is no table {table}, or no right to read it: GRANT SELECT ON {table} TO the user"
            )
        return [
            ReflectedColumn(
                name, _type_of(data_type, column_type, precision, scale), null == "YES", "auto_increment" in extra
            )
            for name, data_type, column_type, null, precision, scale, extra in rows
        ]

    def reflect_query(self, connection: Any, query: str) -> list[ReflectedColumn]:
        """The server describes the result of a statement that returns no row."""
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({query}) AS q LIMIT 0".replace("%", "%%"), ())
            fields = cursor._result.fields
        return [
            ReflectedColumn(field.name, _type_of_field(field), not field.flags & 1, bool(field.flags & 512))
            for field in fields
        ]


_COLUMNS: Final = """
SELECT column_name, data_type, column_type, is_nullable, numeric_precision, numeric_scale, extra
FROM information_schema.columns WHERE table_name = %s AND table_schema = IF(%s IS NULL, DATABASE(), %s) ORDER BY ordinal_position
"""

_INTEGERS: Final[dict[str, Any]] = {
    "tinyint": mysql.TINYINT,
    "smallint": mysql.SMALLINT,
    "mediumint": mysql.MEDIUMINT,
    "int": mysql.INTEGER,
    "bigint": mysql.BIGINT,
}
_PLAIN: Final[dict[str, types.TypeEngine[Any]]] = {
    "float": mysql.FLOAT(),
    "double": types.Double(),
    "date": types.Date(),
    "time": types.Time(),
    "datetime": types.DateTime(),
    "timestamp": types.TIMESTAMP(),
    "year": mysql.YEAR(),
    **dict.fromkeys(
        ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"), types.LargeBinary()
    ),
    **dict.fromkeys(
        (
            "geometry",
            "point",
            "linestring",
            "polygon",
            "multipoint",
            "multilinestring",
            "multipolygon",
            "geomcollection",
        ),
        types.LargeBinary(),
    ),
    "geometrycollection": types.LargeBinary(),
}


def _type_of(data_type: str, column_type: str, precision: int | None, scale: int | None) -> types.TypeEngine[Any]:
    """SQLAlchemy's type for one in information_schema; everything except numbers, times and bytes arrives as text."""
    kind = data_type.lower()
    if kind in _INTEGERS:
        return _INTEGERS[kind](unsigned="unsigned" in column_type)  # type: ignore[no-any-return]
    if kind == "decimal":
        return types.Numeric(precision, scale)
    if kind == "bit":
        return mysql.BIT(int((re.search(r"[0-9]+", column_type) or ["1"])[0]))
    return _PLAIN.get(kind, types.Text())


_FIELDS: Final = {1: "tinyint", 2: "smallint", 9: "mediumint", 3: "int", 8: "bigint", 4: "float", 5: "double"} | {
    7: "timestamp",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    246: "decimal",
    0: "decimal",
    16: "bit",
    255: "geometry",
}
_TEXTS: Final = frozenset({15, 249, 250, 251, 252, 253, 254})
_BINARY_CHARSET: Final = 63


def _type_of_field(field: Any) -> types.TypeEngine[Any]:
    """SQLAlchemy's type for a column of a result, by the protocol's type codes and flags."""
    code = field.type_code
    if code in _TEXTS and field.charsetnr == _BINARY_CHARSET:
        return types.LargeBinary()
    unsigned = "unsigned" if field.flags & 32 else ""
    kind = _FIELDS.get(code, "text")
    digits = field.length - (1 if field.scale else 0) - (0 if unsigned else 1)
    return _type_of(kind, f"bit({field.length})" if kind == "bit" else unsigned, digits, field.scale)
