"""SQL for writing: DDL, insert, upsert, update and delete in each database's dialect."""

from __future__ import annotations

from typing import Any, Final

from connectors.sql.write_dialects.base import Statement, WriteDialect, parse_table
from connectors.sql.write_dialects.merging import Db2Writes, OracleWrites, SqlServerWrites
from connectors.sql.write_dialects.mysql import MySqlWrites
from connectors.sql.write_dialects.on_conflict import DuckDbWrites, OnConflictDialect, PostgresWrites, SqliteWrites

__all__ = ["OnConflictDialect", "Statement", "WriteDialect", "parse_table", "write_dialect"]

_DIALECTS: Final[dict[str, type[WriteDialect]]] = {
    made.kind: made
    for made in (PostgresWrites, SqliteWrites, DuckDbWrites, MySqlWrites, SqlServerWrites, OracleWrites, Db2Writes)
}


def write_dialect(kind: str, **options: Any) -> WriteDialect:
    """The dialect for a kind of database, as in ``Database.kind``."""
    return _DIALECTS.get(kind, WriteDialect)(**options)
