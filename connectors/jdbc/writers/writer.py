"""The interface of a connection for writing, and the classes that drivers' errors are converted to."""

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
    """The database accepts the statement but rejects a row: a constraint is violated or a value is out of range."""


class Conflict(RetriableConnectError):
    """Another transaction conflicted (deadlock, serialization failure): retry immediately."""


@dataclass(frozen=True, slots=True)
class TargetColumn:
    """An existing column of a table. ``type`` is the database's name for its type."""

    name: str
    type: str
    required: bool = False
    """Whether an insert must provide a value."""


@dataclass(frozen=True, slots=True)
class Change:
    """An operation (insert, upsert, update, delete) on a table, and its rows.

    ``rows`` has the columns ``keys`` followed by ``rest``, in the Arrow types of their schemas; timestamps have the
    zone UTC. A key occurs only once unless the operation is insert.
    """

    operation: str
    table: TableId
    keys: tuple[str, ...]
    rest: tuple[str, ...]
    rows: pa.RecordBatch
    columns: dict[str, TargetColumn] = field(default_factory=dict)
    """Maps the rows' column names to the table's columns."""

    def slice(self, start: int, length: int) -> Change:
        rows = self.rows.slice(start, length)
        return Change(self.operation, self.table, self.keys, self.rest, rows, self.columns)


class Writer(ABC):
    """A connection in a transaction, which starts automatically and ends with ``commit`` or ``rollback``.

    Every call may raise RowsRefused, Conflict, RetriableConnectError (the connection is lost: open a new one) or
    ConnectError, with the database's own message. For use from one thread, except ``cancel``.
    """

    def __init__(self, database: Database, dialect: WriteDialect, timezone: str) -> None:
        self.database, self.dialect, self.timezone = database, dialect, timezone
        with self.errors("cannot connect to"):
            self._connect()

    @abstractmethod
    def _connect(self) -> None: ...

    @abstractmethod
    def run(self, sql: str) -> int:
        """Run a statement without parameters.

        Returns the number of rows changed, -1 where the driver does not report it.
        """

    @abstractmethod
    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that a query returns."""

    @abstractmethod
    def columns(self, table: TableId) -> list[TargetColumn] | None:
        """The table's columns in order; None where the table does not exist."""

    @abstractmethod
    def apply(self, change: Change) -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None: ...

    def define(self, statement: str, table: TableId, known: Sequence[TargetColumn] | None) -> None:
        """Run a DDL statement for a table whose columns are ``known``; None where it was missing.

        Raises Conflict, with nothing open, where another task may have made the same change meanwhile: the next attempt
        succeeds. PostgreSQL refuses one of two ``CREATE TABLE IF NOT EXISTS`` that run at the same time.
        """
        try:
            self.run(statement)
        except RetriableConnectError:
            raise
        except ConnectError as error:
            self.rollback()
            if isinstance(error, RowsRefused) or self.columns(table) != known:
                raise Conflict(str(error)) from error
            raise

    @abstractmethod
    def cancel(self) -> None:
        """Called from another thread: make a running statement end with an error. Raises nothing."""

    @abstractmethod
    def close(self) -> None: ...

    @property
    def locking(self) -> str:
        """The end of a SELECT that locks its rows until the end of the transaction."""
        return " FOR UPDATE"

    def staged(self, change: Change, targets: Sequence[TargetColumn], staging: str, values: Sequence[str]) -> str:
        """The statement that applies a change whose rows are in a temporary table, in the manner of
        ``OnConflictDialect``.
        """
        assert isinstance(self.dialect, OnConflictDialect)
        names = [target.name for target in targets]
        return self.dialect.from_staging(change.operation, change.table, names, len(change.keys), staging, values)

    @abstractmethod
    def _kind_of(self, error: Exception) -> type[RowsRefused | Conflict | RetriableConnectError] | None:
        """The class for a driver's error; None for one that a retry cannot solve."""

    @contextmanager
    def errors(self, doing: str) -> Iterator[None]:
        """Convert the driver's errors raised inside the block."""
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
    """The table's columns that belong to a change's columns; raises ConnectError for one that the table lacks."""
    missing = [name for name in columns if name not in known]
    if missing:
        raise ConnectError(f"the table has no column {', '.join(missing)}")
    return [known[name] for name in columns]
