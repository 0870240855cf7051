"""The dialects for reading, by kind of database."""

from __future__ import annotations

from collections.abc import Callable

from connectors.sql.dialects.base import Column, Dialect

__all__ = ["Column", "Dialect", "dialect_of"]


def dialect_of(kind: str, *, quoting: bool = True, timezone: str = "UTC") -> Dialect:
    """The dialect for a kind of database, as in ``Database.kind``."""
    from connectors.sql.dialects.duckdb import DuckDbDialect
    from connectors.sql.dialects.mysql import MySqlDialect
    from connectors.sql.dialects.postgres import PostgresDialect
    from connectors.sql.dialects.sqlite import SqliteDialect

    made: dict[str, Callable[..., Dialect]] = {
        "postgresql": PostgresDialect,
        "sqlite": SqliteDialect,
        "mysql": MySqlDialect,
        "duckdb": DuckDbDialect,
    }
    if kind not in made:
        from connectors.sql.dialects.alchemy import AlchemyDialect, OracleDialect, SqlServerDialect

        made |= {"sqlserver": SqlServerDialect, "oracle": OracleDialect}
        return made.get(kind, AlchemyDialect)(quoting=quoting, timezone=timezone)
    return made[kind](quoting=quoting, timezone=timezone)
