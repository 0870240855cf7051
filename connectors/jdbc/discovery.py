"""Finds the tables in the database that a JDBC source's configuration selects."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from connect.api import ConnectError, JavaRegex
from connectors.jdbc.config import JdbcSourceConfig

if TYPE_CHECKING:
    from connectors.jdbc.drivers import RowReader
    from connectors.sql.dialects import Dialect
    from connectors.sql.tables import TableId

__all__ = ["choose_tables", "dialect_for", "find", "look", "open_connection"]


def dialect_for(config: JdbcSourceConfig) -> Dialect:
    from connectors.sql.dialects import dialect_of

    return dialect_of(config.database.kind, quoting=config.quoting, timezone=config.timezone)


def look(config: JdbcSourceConfig) -> list[TableId]:
    """Connect, and list the tables that the configuration selects."""
    with closing(open_connection(config)) as connection:
        return [] if config.sql_query else find(config, connection)


def open_connection(config: JdbcSourceConfig) -> RowReader:
    from connectors.jdbc.drivers import open_reader

    database = config.database
    if database.kind in ("sqlite", "duckdb") and database.name != ":memory:" and not Path(database.name).is_file():
        raise ConnectError(f"there is no {database.kind} file {database.name}: connection.url names it")
    return open_reader(database, isolation=config.isolation)


def find(config: JdbcSourceConfig, connection: RowReader) -> list[TableId]:
    from connectors.sql.engines import database_errors

    dialect = dialect_for(config)
    everywhere = any("." in name for name in config.whitelist) or bool(config.include)
    with database_errors(config.database, "looking for tables of"):
        tables = dialect.find_tables(
            connection.describing,
            types=config.table_types,
            catalog_pattern=config.catalog_pattern or ("%" if everywhere else None),
            schema_pattern=config.schema_pattern,
        )
    return choose_tables(config, tables)


def choose_tables(config: JdbcSourceConfig, tables: Iterable[TableId]) -> list[TableId]:
    """The tables that the configuration selects; raises ConnectError where two of them would write to the same topic."""
    chosen = [table for table in tables if _is_meant(config, table)]
    by_name: dict[str, TableId] = {}
    for table in chosen:
        other = by_name.setdefault(table.name, table)
        if other != table:
            raise ConnectError(
                f"tables {other} and {table} would both go to topic {config.topic_prefix + table.name!r}: "
                "name one of them in full in table.whitelist, or restrict schema.pattern"
            )
    return chosen


def _is_meant(config: JdbcSourceConfig, table: TableId) -> bool:
    if config.whitelist:
        return any(name in config.whitelist for name in table.names)
    if config.include:
        full = str(table)
        included = any(JavaRegex(regex).fullmatch(full) for regex in config.include)
        return included and not any(JavaRegex(regex).fullmatch(full) for regex in config.exclude)
    return not any(name in config.blacklist for name in table.names)
