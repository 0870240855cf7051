"""Problems of a JDBC source's configuration that only the database can show, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from connect.api import ConnectError, Problem, TidegateError
from connectors.jdbc.config import JdbcSourceConfig
from connectors.jdbc.discovery import dialect_for, find, open_connection
from connectors.jdbc.drivers import RowReader
from connectors.jdbc.offsets import Position
from connectors.jdbc.queries import Plan, Source, UnfitColumn, plan
from connectors.sql.dialects import Dialect
from connectors.sql.engines import database_errors
from connectors.sql.tables import TableId

__all__ = ["problems"]

_TABLES: Final = 100
"""The most tables that are described, so that validation does not take minutes."""


def problems(config: JdbcSourceConfig) -> Iterator[Problem]:
    try:
        connection = open_connection(config)
    except TidegateError as error:
        yield Problem("connection.url", str(error))
        return
    with closing(connection):
        try:
            yield from _of_query(config, connection) if config.sql_query else _of_tables(config, connection)
        except TidegateError as error:
            yield Problem("connection.url", str(error))


def _of_query(config: JdbcSourceConfig, connection: RowReader) -> Iterator[Problem]:
    key = "query" if config.query else "query.masked"
    yield from _of_source(config, connection, None, key)


def _of_tables(config: JdbcSourceConfig, connection: RowReader) -> Iterator[Problem]:
    tables = find(config, connection)
    there = {name for table in tables for name in table.names}
    missing = [name for name in config.whitelist if name not in there]
    for name in missing:
        types = ", ".join(config.table_types)
        yield Problem(
            "table.whitelist",
            f"table.whitelist names {name!r}, but there is no such table of {types} that "
            f"{config.user or 'the user'} may see in {config.database}: check its spelling, schema.pattern and table.types, or "
            "grant the user SELECT on it",
        )
    key = "table.include.list" if config.include else "table.whitelist"
    for table in tables[:_TABLES]:
        yield from _of_source(config, connection, table, key)


def _of_source(config: JdbcSourceConfig, connection: RowReader, table: TableId | None, key: str) -> Iterator[Problem]:
    """Describe the table as a task would, and select none of its rows, which requires the right to read it."""
    source, dialect = Source.of(config, table), dialect_for(config)
    try:
        with database_errors(config.database, f"describing {source} of"):
            made = plan(config, dialect, connection.describing, source)
        if table is not None:
            name = dialect.table(table, qualified=config.qualify)
            with closing(
                connection.read(f"SELECT {made.columns[0].select} FROM {name} WHERE 1 = 0", "SELECT 0", None)
            ) as rows:
                list(rows)
        elif made.timestamps or made.incrementing is not None:
            _continue_query(config, dialect, connection, made)
    except UnfitColumn as error:
        yield Problem(error.key, str(error))
    except TidegateError as error:
        yield Problem(key, str(error))


def _continue_query(config: JdbcSourceConfig, dialect: Dialect, connection: RowReader, made: Plan) -> None:
    """Describe the query with the WHERE and ORDER BY that the second statement of its mode appends."""
    try:
        with database_errors(config.database, "describing the query of"):
            dialect.reflect_query(connection.describing, made.statement(Position(0, 0), 0))
    except TidegateError as error:
        raise ConnectError(
            f"mode={config.effective_mode} appends WHERE ... ORDER BY ... to the query, and that fails: {error}; wrap a query that "
            "has a WHERE: SELECT * FROM (...) AS t"
        ) from error
