"""The differences between databases when reading: quoting, the current time, literals, and how columns are selected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final
from zoneinfo import ZoneInfo

from connect.api import Schema
from connectors.sql.tables import ReflectedColumn, TableId, columns_of, find_tables
from connectors.sql.types import TypeOptions, schema_of

__all__ = ["EPOCH", "Column", "Dialect"]

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read: ``select`` is the SQL expression that returns it in a form that ``to_connect`` accepts.

    ``timestamp`` marks a column that the timestamp options apply to, ``zoned`` one of these with a time zone; ``like``
    is an SQL value of the type in which the column is returned.
    """

    name: str
    schema: Schema
    select: str
    increments: bool = False
    timestamp: bool = False
    zoned: bool = False
    like: str = "NULL"


class Dialect(ABC):
    """A kind of database. ``timezone`` applies to timestamps without one.

    ``connection`` is the one that this kind's driver uses to describe tables: SQLAlchemy's, except for MySQL and
    DuckDB, which use their own.
    """

    wide = False
    quotes: ClassVar[tuple[str, str]] = ('"', '"')
    octets: ClassVar[str | None] = None
    """The function for the size of a value in bytes, where the database knows it without reading the value."""
    keeps_order = True
    """Whether the rows of a subselect keep its order; where they may not, the outer statement is ordered too."""

    def __init__(self, *, quoting: bool = True, timezone: str = "UTC") -> None:
        self._quoting = quoting
        self.timezone = timezone

    def quote(self, identifier: str) -> str:
        before, after = self.quotes
        return f"{before}{identifier.replace(after, after * 2)}{after}" if self._quoting else identifier

    def quote_path(self, path: str) -> str:
        """Quote a column that may be qualified by its table: ``a.id`` becomes ``"a"."id"``."""
        return ".".join(self.quote(part.strip('"`[]')) for part in path.split("."))

    def table(self, table: TableId, *, qualified: bool = True) -> str:
        parts = [table.schema, table.name] if qualified else [table.name]
        return ".".join(self.quote(part) for part in parts if part is not None)

    def subselect(self, query: str) -> str:
        return f"({query}) AS q"

    def ordered(self, query: str) -> str:
        """A query with ORDER BY in a form that is allowed in a subselect."""
        return query

    def integer(self, expression: str) -> str:
        """The expression as a number of 64 bits."""
        return f"CAST({expression} AS BIGINT)"

    def columns(self, reflected: Sequence[ReflectedColumn], options: TypeOptions) -> tuple[list[Column], list[str]]:
        """The columns that can be read, and the names of those that Connect's model cannot represent."""
        made, skipped = [], []
        for column in reflected:
            schema = schema_of(column.type, optional=column.nullable, options=options)
            if schema is None:
                skipped.append(column.name)
            else:
                made.append(self._column(column, schema))
        return made, skipped

    def find_tables(
        self, connection: Any, *, types: Iterable[str], catalog_pattern: str | None, schema_pattern: str | None
    ) -> list[TableId]:
        """All tables of the given JDBC types, sorted by name; the patterns are JDBC's."""
        return find_tables(connection, types=types, catalog_pattern=catalog_pattern, schema_pattern=schema_pattern)

    def reflect_table(self, connection: Any, table: TableId) -> list[ReflectedColumn]:
        """The columns of a table in order; raises ConnectError where the table does not exist."""
        return columns_of(connection, table)

    @abstractmethod
    def reflect_query(self, connection: Any, query: str) -> list[ReflectedColumn]:
        """The columns that a SELECT returns."""

    @abstractmethod
    def _column(self, column: ReflectedColumn, schema: Schema) -> Column: ...

    @property
    @abstractmethod
    def now(self) -> str:
        """A query for the database's current time; ``micros`` converts the result to microseconds since the epoch."""

    def micros(self, now: Any) -> int:
        return int(now)

    def instant(self, expression: str, *, zoned: bool) -> str:
        """An expression whose values sort like the timestamps of ``expression``, and are returned as timestamps or
        integers.
        """
        return expression

    def literal(self, epoch_micros: int, *, zoned: bool) -> str:
        """An instant in a form that can be compared with ``instant``."""
        return f"TIMESTAMP{'TZ' * zoned} '{self.shown(epoch_micros, zoned=zoned)}'"

    def shown(self, epoch_micros: int, *, zoned: bool) -> str:
        """An instant in ISO 8601: in UTC, or without zone in this database's local time."""
        moment = EPOCH + timedelta(microseconds=epoch_micros)
        return moment.isoformat(" ") if zoned else self.local(epoch_micros).isoformat(" ")

    def local(self, epoch_micros: int) -> datetime:
        """An instant as this database's timestamp without zone."""
        return (EPOCH + timedelta(microseconds=epoch_micros)).astimezone(ZoneInfo(self.timezone)).replace(tzinfo=None)
