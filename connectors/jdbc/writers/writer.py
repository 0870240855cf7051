"""The contract of a connection that writes, and what drivers' errors come to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connect.api import ConnectError, RetriableConnectError
from connectors.sql.engines import database_errors
from connectors.sql.tables import TableId
from connectors.sql.urls import Database
from connectors.sql.write_dialects import OnConflictDialect, WriteDialect

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Change", "Conflict", "RowsRefused", "TargetColumn", "Writer"]


class RowsRefused(ConnectError):
    """The database takes the statement but not one of its rows: a constraint, a value out of range."""


class Conflict(RetriableConnectError):
    """Another transaction was in the way (deadlock, serialisation failure): the same may be done again at once."""


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """A column that a table has. ``type`` is the database's name for its type."""

    name: str
    type: str
    required: bool = False
    """Whether an insert has to give it."""


@dataclass(frozen=True, slots=True)
class Change:
    """An operation (insert, upsert, update, delete) on a table, and its rows.

    ``rows`` has the columns ``keys`` and then ``rest``, by those names, in the Arrow types of their schemas; timestamps
    have the zone UTC. No key is there twice unless the operation is insert.
    """

    operation: str
    table: TableId
    keys: tuple[str, ...]
    rest: tuple[str, ...]
    rows: pa.RecordBatch
    columns: dict[str, TargetColumn] = field(default_factory=dict)
    """The table's columns by the names of the rows'."""

    def slice(self, start: int, length: int) -> Change:
        rows = self.rows.slice(start, length)
        return Change(self.operation, self.table, self.keys, self.rest, rows, self.columns)


class Writer(ABC):
    """A connection in a transaction, which begins by itself and ends with ``commit`` or ``rollback``.

    Every call may raise RowsRefused, Conflict, RetriableConnectError (the connection is lost: make another) or
    ConnectError, with the database's own words. From one thread, but for ``cancel``.
    """

    def __init__(self, database: Database, dialect: WriteDialect, timezone: str) -> None:
        self.database, self.dialect, self.timezone = database, dialect, timezone
        with self.errors("cannot connect to"):
            self._connect()

    @abstractmethod
    def _connect(self) -> None: ...

    @abstractmethod
    def run(self, sql: str) -> int:
        """Run a statement without parameters; the number of rows that it changed, -1 where the driver cannot tell."""

    @abstractmethod
    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""

    @abstractmethod
    def columns(self, table: TableId) -> list[TargetColumn] | None:
        """The table's columns in their order; None where there is no such table."""

    @abstractmethod
    def apply(self, change: Change) -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None: ...

    @abstractmethod
    def cancel(self) -> None:
        """From another thread: have a statement that runs end with an error. Raises nothing."""

    @abstractmethod
    def close(self) -> None: ...

    @property
    def locking(self) -> str:
        """What a SELECT ends with that locks its rows until the transaction's end."""
        return " FOR UPDATE"

    def staged(self, change: Change, targets: Sequence[TargetColumn], staging: str, values: Sequence[str]) -> str:
        """The statement that applies a change whose rows lie in a staging table, as ``OnConflictDialect`` has it."""
        assert isinstance(self.dialect, OnConflictDialect)
        names = [target.name for target in targets]
        return self.dialect.from_staging(change.operation, change.table, names, len(change.keys), staging, values)

    @abstractmethod
    def _kind_of(self, error: Exception) -> type[RowsRefused | Conflict | RetriableConnectError] | None:
        """What an error of the driver comes to; None for one that no repetition helps against."""

    @contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Turn the driver's errors inside into ours."""
        from connect.api import TidegateError

        try:
            with database_errors(self.database, doing):
                yield
        except TidegateError as error:
            cause = error.__cause__
            kind = self._kind_of(cause) if isinstance(cause, Exception) else None
            if kind is None or type(error) is kind:
                raise
            raise kind(str(error)) from cause


def fits(columns: Sequence[str], known: dict[str, TargetColumn]) -> list[TargetColumn]:
    """The table's columns for those of a change; raises ConnectError for one that it has not."""
    missing = [name for name in columns if name not in known]
    if missing:
        raise ConnectError(f"the table has no column {', '.join(missing)}")
    return [known[name] for name in columns]
