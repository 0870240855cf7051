"""Any database for which SQLAlchemy has a dialect and a driver: rows arrive as Python values and are converted to
columns here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import sqlalchemy

from connectors.jdbc.drivers.base import CHUNK_BYTES, RowReader, Rows
from connectors.jdbc.queries import INCREMENTING, TIMESTAMP
from connectors.sql.engines import database_errors, open_engine
from connectors.sql.urls import Database

__all__ = ["AlchemyReader"]

_FIRST_ROWS: Final = 16
_MOST_ROWS: Final = 10_000


class AlchemyReader(RowReader):
    def __init__(self, database: Database, isolation: str) -> None:
        self._database = database
        with database_errors(database, "cannot connect to"):
            engine = open_engine(database)
            if isolation != "DEFAULT":
                level: Any = isolation.replace("SQL_SERVER_", "").replace("_", " ")
                engine = engine.execution_options(isolation_level=level)
            self._connection = engine.connect()

    @property
    def describing(self) -> sqlalchemy.Connection:
        return self._connection

    def value(self, statement: str) -> Any:
        with database_errors(self._database, "asking"):
            value = self._connection.exec_driver_sql(statement).scalar_one()
            self._connection.rollback()
            return value

    def read(self, statement: str, likeness: str, widest: str | None) -> Rows:
        with database_errors(self._database, "reading from"):
            self._connection.rollback()
            streamed = self._connection.execution_options(stream_results=True)
            # not every driver allows use of a connection by another thread (PEP 249, threadsafety 1)
            return Rows(self._database, _Chunks(streamed.exec_driver_sql(statement)), ahead=False)

    def cancel(self) -> None:
        driver: Any = getattr(self._connection.connection, "dbapi_connection", None)
        if hasattr(driver, "cancel"):
            with suppress(Exception):  # the statement may have ended already
                driver.cancel()

    def close(self) -> None:
        with suppress(Exception):  # closing fails on a lost connection
            self._connection.close()


class _Chunks:
    """Chunks of about ``CHUNK_BYTES``, estimated from the rows before; each has at most twice as many rows as the one
    before.
    """

    def __init__(self, result: sqlalchemy.CursorResult[Any]) -> None:
        self._result = result
        self._names = [_name_of(name) for name in list(result.keys())]
        self._rows = _FIRST_ROWS

    def read_next_batch(self) -> pa.RecordBatch:
        rows = self._result.fetchmany(self._rows)
        if not rows:
            raise StopIteration
        chunk = pa.RecordBatch.from_arrays([_column(values) for values in zip(*rows, strict=True)], names=self._names)
        fitting = len(rows) * CHUNK_BYTES // max(chunk.nbytes, 1)
        self._rows = max(1, min(fitting, 2 * len(rows), _MOST_ROWS))
        return chunk

    def close(self) -> None:
        self._result.close()


def _name_of(name: str) -> str:
    """Our own names for the columns with the row's position, in whatever case the database returns them."""
    return name.lower() if name.lower() in (INCREMENTING, TIMESTAMP) else name


def _column(values: Sequence[Any]) -> pa.Array:
    return pa.array([_plain(value) for value in values])


def _plain(value: Any) -> Any:
    """Converts values that Arrow does not know: large objects, which are read, and identifiers."""
    if isinstance(value, UUID):
        return str(value)
    return value.read() if hasattr(value, "read") else value
