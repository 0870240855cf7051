"""What differs between databases when one reads from them: quoting, the clock, literals, and how a column is selected."""

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
    """A column to read: ``select`` is the SQL expression that delivers it in a form ``to_connect`` takes.

    ``timestamp`` marks one that the timestamp options apply to, ``zoned`` one of these with a time zone; ``like`` is a
    value of the type it is delivered as, in SQL.
    """

    name: str
    schema: Schema
    select: str
    increments: bool = False
    timestamp: bool = False
    zoned: bool = False
    like: str = "NULL"


class Dialect(ABC):
    """A kind of database. ``timezone`` is that of timestamps without one.

    ``connection`` is what the driver of that kind describes tables over: SQLAlchemy's, for MySQL and DuckDB their own.
    """

    wide = False
    quotes: ClassVar[tuple[str, str]] = ('"', '"')
    octets: ClassVar[str | None] = None
    """The function for the bytes of a value, where the database answers it without reading the value."""
    keeps_order = True
    """Whether rows of a subselect come in its order; where they need not, the statement around it orders them too."""

    def __init__(self, *, quoting: bool = True, timezone: str = "UTC") -> None:
        self._quoting = quoting
        self.timezone = timezone

    def quote(self, identifier: str) -> str:
        before, after = self.quotes
        return f"{before}{identifier.replace(after, after * 2)}{after}" if self._quoting else identifier

    def quote_path(self, path: str) -> str:
        """A column that may be named with its table: ``a.id`` is ``"a"."id"``."""
        return ".".join(self.quote(part.strip('"`[]')) for part in path.split("."))

    def table(self, table: TableId, *, qualified: bool = True) -> str:
        parts = [table.schema, table.name] if qualified else [table.name]
        return ".".join(self.quote(part) for part in parts if part is not None)

    def subselect(self, query: str) -> str:
        return f"({query}) AS q"

    def ordered(self, query: str) -> str:
        """A query that ends with ORDER BY as one that may stand in a subselect."""
        return query

    def integer(self, expression: str) -> str:
        """The expression as a number of 64 bits."""
        return f"CAST({expression} AS BIGINT)"

    def columns(self, reflected: Sequence[ReflectedColumn], options: TypeOptions) -> tuple[list[Column], list[str]]:
        """The columns that can be read, and the names of those that have no place in Connect's model."""
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
        """All tables of the given JDBC types, by name; the patterns are JDBC's."""
        return find_tables(connection, types=types, catalog_pattern=catalog_pattern, schema_pattern=schema_pattern)

    def reflect_table(self, connection: Any, table: TableId) -> list[ReflectedColumn]:
        """The columns of a table in their order; raises ConnectError where there is no such table."""
        return columns_of(connection, table)

    @abstractmethod
    def reflect_query(self, connection: Any, query: str) -> list[ReflectedColumn]:
        """The columns that a SELECT delivers."""

    @abstractmethod
    def _column(self, column: ReflectedColumn, schema: Schema) -> Column: ...

    @property
    @abstractmethod
    def now(self) -> str:
        """A query for the database's clock, in microseconds since the epoch once ``micros`` has seen the answer."""

    def micros(self, now: Any) -> int:
        return int(now)

    def instant(self, expression: str, *, zoned: bool) -> str:
        """An expression whose values order like the timestamps of ``expression``, and arrive as timestamps or integers."""
        return expression

    def literal(self, epoch_micros: int, *, zoned: bool) -> str:
        """An instant as it compares with ``instant``."""
        return f"TIMESTAMP{'TZ' * zoned} '{self.shown(epoch_micros, zoned=zoned)}'"

    def shown(self, epoch_micros: int, *, zoned: bool) -> str:
        """An instant in ISO 8601: with the zone UTC, or without one as a clock of this database shows it."""
        moment = EPOCH + timedelta(microseconds=epoch_micros)
        return moment.isoformat(" ") if zoned else self.local(epoch_micros).isoformat(" ")

    def local(self, epoch_micros: int) -> datetime:
        """An instant as a timestamp without zone of this database shows it."""
        return (EPOCH + timedelta(microseconds=epoch_micros)).astimezone(ZoneInfo(self.timezone)).replace(tzinfo=None)
