"""Reads databases that are reached only through SQLAlchemy.

The SQL for SQL Server and Oracle is compiled and its text is tested; it has never been run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import sqlalchemy
from sqlalchemy import types
from sqlalchemy.dialects import mssql, oracle

from connect.api import DECIMAL, Schema
from connectors.sql.dialects.base import EPOCH, Column, Dialect
from connectors.sql.result_types import type_of_result
from connectors.sql.tables import ReflectedColumn, TableId, columns_of, like

__all__ = ["AlchemyDialect", "OracleDialect", "SqlServerDialect"]


class AlchemyDialect(Dialect):
    """Standard SQL."""

    keeps_order = False

    @property
    def now(self) -> str:
        return "SELECT CURRENT_TIMESTAMP"

    def micros(self, now: Any) -> int:
        if isinstance(now, datetime):
            zoned = now if now.tzinfo is not None else now.replace(tzinfo=ZoneInfo(self.timezone))
            return (zoned - EPOCH) // timedelta(microseconds=1)
        return super().micros(now)

    def literal(self, epoch_micros: int, *, zoned: bool) -> str:
        return f"TIMESTAMP '{self.shown(epoch_micros, zoned=zoned)}'"

    def reflect_query(self, connection: sqlalchemy.Connection, query: str) -> list[ReflectedColumn]:
        """The driver describes the result of a statement that returns no row."""
        result = connection.exec_driver_sql(f"SELECT * FROM {self.subselect(query)} WHERE 1 = 0")
        described: Any = result.cursor.description if result.cursor is not None else ()
        columns = [ReflectedColumn(each[0], type_of_result(each), nullable=each[6] is not False) for each in described]
        result.close()
        return columns

    def _column(self, column: ReflectedColumn, schema: Schema) -> Column:
        kind: Any = column.type
        stamp = isinstance(kind, types.DateTime)
        zoned = stamp and (bool(kind.timezone) or isinstance(kind, mssql.DATETIMEOFFSET))
        select = self._selected(self.quote(column.name), schema)
        return Column(column.name, schema, select, increments=column.increments, timestamp=stamp, zoned=zoned)

    def _selected(self, name: str, schema: Schema) -> str:
        """The expression that returns a column without loss."""
        return name


class SqlServerDialect(AlchemyDialect):
    quotes: ClassVar = ("[", "]")

    def reflect_table(self, connection: Any, table: TableId) -> list[ReflectedColumn]:
        money = (mssql.MONEY, mssql.SMALLMONEY)
        return [
            replace(column, type=types.Numeric(19, 4)) if isinstance(column.type, money) else column
            for column in columns_of(connection, table)
        ]

    @property
    def now(self) -> str:
        return "SELECT DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())"

    def ordered(self, query: str) -> str:
        """SQL Server rejects ORDER BY in a subselect without TOP or OFFSET."""
        return f"{query} OFFSET 0 ROWS"

    def instant(self, expression: str, *, zoned: bool) -> str:
        """A DATETIME counts 300ths of a second: compared directly, it would always be slightly greater than the value
        that was read.
        """
        return f"CAST({expression} AS {'DATETIMEOFFSET' if zoned else 'DATETIME2'}(6))"

    def literal(self, epoch_micros: int, *, zoned: bool) -> str:
        return self.instant(f"'{self.shown(epoch_micros, zoned=zoned)}'", zoned=zoned)


class OracleDialect(AlchemyDialect):
    """SQLAlchemy writes upper-case names in lower case; JDBC does not, and so topics and fields do not either."""

    @property
    def now(self) -> str:
        return "SELECT (CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE) - DATE '1970-01-01') * 86400000000 FROM DUAL"

    def micros(self, now: Any) -> int:
        micros_: int = round(now)
        return micros_

    def subselect(self, query: str) -> str:
        return f"({query}) q"

    def integer(self, expression: str) -> str:
        return f"CAST({expression} AS NUMBER(19))"

    def _selected(self, name: str, schema: Schema) -> str:
        """As text a number keeps all its digits, which the driver's float would not."""
        return f"TO_CHAR({name}, 'TM9', {_POINT})" if schema.name == DECIMAL else name

    def find_tables(
        self, connection: Any, *, types: Iterable[str], catalog_pattern: str | None, schema_pattern: str | None
    ) -> list[TableId]:
        tables = super().find_tables(connection, types=types, catalog_pattern=None, schema_pattern=None)
        tables_ = [TableId(None, _upper(table.schema), str(_upper(table.name))) for table in tables]
        return [table for table in tables_ if not schema_pattern or like(schema_pattern, table.schema or "")]

    def reflect_table(self, connection: Any, table: TableId) -> list[ReflectedColumn]:
        known = TableId(None, _lower(table.schema), str(_lower(table.name)))
        return [
            replace(column, name=str(_upper(column.name)), type=_exact(column.type))
            for column in columns_of(connection, known)
        ]


_POINT = "'NLS_NUMERIC_CHARACTERS=''.,'''"
_ORACLE: Any = oracle.dialect()  # type: ignore[no-untyped-call]


def _exact(kind: Any) -> types.TypeEngine[Any]:
    """SQLAlchemy uses NUMBER both for integers and for decimals."""
    return types.Numeric(kind.precision, kind.scale) if isinstance(kind, oracle.NUMBER) else kind


def _upper(name: str | None) -> str | None:
    """The database's form of a name from SQLAlchemy."""
    return None if name is None else str(_ORACLE.denormalize_name(name))


def _lower(name: str | None) -> str | None:
    return None if name is None else str(_ORACLE.normalize_name(name))
