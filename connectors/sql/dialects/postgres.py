"""Reading PostgreSQL."""

from __future__ import annotations

import re
from typing import Any, Final

import sqlalchemy
from sqlalchemy import types
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql.base import ischema_names

from connect.api import Schema
from connectors.sql.dialects.base import Column, Dialect
from connectors.sql.tables import ReflectedColumn

__all__ = ["PostgresDialect"]


class PostgresDialect(Dialect):
    """PostgreSQL through ADBC, which returns every column as Arrow data except those that are cast here."""

    _CASTS: Final = (
        (postgresql.OID, "bigint"),
        (postgresql.MONEY, "numeric::float8"),
        (types.Uuid, "text"),
        (types.JSON, "text"),
    )

    @property
    def now(self) -> str:
        return "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    def _column(self, column: ReflectedColumn, schema: Schema) -> Column:
        name = self.quote(column.name)
        kind: Any = column.type
        cast = next((sql for base, sql in self._CASTS if isinstance(kind, base)), None)
        if isinstance(kind, types.ARRAY) and isinstance(kind.item_type, _AS_TEXTS):
            cast = None if isinstance(kind.item_type, types.Float) else "text[]"
        stamp = isinstance(kind, types.DateTime)
        return Column(
            column.name,
            schema,
            name if cast is None else f"{name}::{cast}",
            increments=column.increments,
            timestamp=stamp,
            zoned=stamp and bool(kind.timezone),
        )

    def reflect_query(self, connection: sqlalchemy.Connection, query: str) -> list[ReflectedColumn]:
        """The server describes the result: types with their modifiers, and for plain columns whether they may be null."""
        cursor = connection.exec_driver_sql(f"SELECT * FROM ({query}) AS q LIMIT 0").cursor
        described: Any = cursor.pgresult
        columns = []
        for i in range(described.nfields):
            kind, modifier = described.ftype(i), described.fmod(i)
            table, number = described.ftable(i), described.ftablecol(i)
            name, typtype, not_null = connection.exec_driver_sql(_DESCRIBE, (kind, modifier, kind, table, number)).one()
            columns.append(ReflectedColumn(described.fname(i).decode(), _pg_type(name, typtype), nullable=not not_null))
        return columns


_AS_TEXTS: Final = (types.Uuid, types.JSON, types.Enum, types.Numeric)
"""Types that ADBC returns as columns but not as items of arrays. (Floats, which it does return, are also Numeric in
SQLAlchemy.)
"""
_DESCRIBE: Final = """
SELECT format_type(%s, %s), (SELECT typtype FROM pg_type WHERE oid = %s),
       coalesce((SELECT attnotnull FROM pg_attribute WHERE attrelid = %s AND attnum = %s), false)
"""


def _pg_type(name: str, typtype: str) -> types.TypeEngine[Any]:
    """SQLAlchemy's type for a name printed by ``format_type``: ``numeric(10,2)``, ``timestamp(3) with time zone``,
    ``text[]``.
    """
    bare, arrays = re.subn(r"\[\]", "", name)
    arguments: list[Any] = [int(text) for text in re.findall(r"[0-9]+", (re.search(r"\(([^)]*)\)", bare) or [""])[0])]
    bare = re.sub(r"\([^)]*\)", "", bare)
    if typtype == "e":
        made: Any = types.String()
    elif bare == "numeric":
        made = types.Numeric(*arguments[:2])
    elif bare.startswith(("timestamp", "time")):
        base = types.DateTime if bare.startswith("timestamp") else types.Time
        made = base(timezone=bare.endswith("with time zone"))
    else:
        made = ischema_names.get(bare, types.NullType)()
    return types.ARRAY(made) if arrays else made
