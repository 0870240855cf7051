"""SQL Server, Oracle and Db2: upserts by MERGE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from connectors.sql.tables import TableId
from connectors.sql.write_dialects.base import Statement, WriteDialect
from connectors.sql.write_types import ColumnSpec

__all__ = ["Db2Writes", "OracleWrites", "SqlServerWrites"]


class _Merging(WriteDialect):
    """Uses MERGE where a database has no shorter upsert. Subclasses define how a row of parameters becomes a table."""

    end = ""

    def _target(self, table: TableId) -> str:
        return f"{self.table(table)} target"

    def _incoming(self, names: Sequence[str]) -> str:
        raise NotImplementedError

    def upsert(self, table: TableId, keys: Sequence[str], rest: Sequence[str]) -> Statement:
        names = (*keys, *rest)
        same = " AND ".join(f"target.{self.quote(k)}=incoming.{self.quote(k)}" for k in keys)
        changes = ",".join(f"target.{self.quote(n)}=incoming.{self.quote(n)}" for n in rest)
        matched = f" WHEN MATCHED THEN UPDATE SET {changes}" if rest else ""
        values = ",".join(f"incoming.{self.quote(n)}" for n in names)
        return Statement(
            f"MERGE INTO {self._target(table)} USING {self._incoming(names)} ON ({same}){matched} "
            f"WHEN NOT MATCHED THEN INSERT({self._list(names)}) VALUES({values}){self.end}",
            names,
        )


class SqlServerWrites(_Merging):
    kind = "sqlserver"
    types: ClassVar = WriteDialect.types | {
        "int8": "SMALLINT",
        "int32": "INT",
        "float64": "FLOAT",
        "boolean": "BIT",
        "string": "NVARCHAR(MAX)",
        "bytes": "VARBINARY(MAX)",
        "timestamp": "DATETIME2",
        "timestamptz": "DATETIMEOFFSET",
        "uuid": "UNIQUEIDENTIFIER",
    }
    key_types: ClassVar = {"string": "NVARCHAR(450)", "bytes": "VARBINARY(900)"}
    quotes: ClassVar = ("[", "]")
    booleans: ClassVar = ("0", "1")
    transactional_ddl = True
    end = ";"

    def alter(self, table: TableId, columns: Sequence[ColumnSpec]) -> list[str]:
        return [f"ALTER TABLE {self.table(table)} ADD\n" + ",\n".join(self.column(column) for column in columns)]

    def _target(self, table: TableId) -> str:
        return f"{self.table(table)}{' WITH (HOLDLOCK)' if self.hold_lock else ''} AS target"

    def _incoming(self, names: Sequence[str]) -> str:
        return "(SELECT {}) AS incoming".format(", ".join(f"{self.placeholder} AS {self.quote(n)}" for n in names))


class OracleWrites(_Merging):
    kind = "oracle"
    types: ClassVar = WriteDialect.types | {
        "int8": "NUMBER(3,0)",
        "int16": "NUMBER(5,0)",
        "int32": "NUMBER(10,0)",
        "int64": "NUMBER(19,0)",
        "float32": "BINARY_FLOAT",
        "float64": "BINARY_DOUBLE",
        "boolean": "NUMBER(1,0)",
        "string": "CLOB",
        "decimal": "NUMBER(*,{scale})",
        "time": "DATE",
    }
    key_types: ClassVar = {"string": "VARCHAR2(4000)", "bytes": "RAW(2000)"}
    booleans: ClassVar = ("0", "1")

    def alter(self, table: TableId, columns: Sequence[ColumnSpec]) -> list[str]:
        return [f"ALTER TABLE {self.table(table)} ADD(\n" + ",\n".join(self.column(column) for column in columns) + ")"]

    def _incoming(self, names: Sequence[str]) -> str:
        return "(SELECT {} FROM DUAL) incoming".format(", ".join(f"{self.placeholder} {self.quote(n)}" for n in names))


class Db2Writes(_Merging):
    kind = "db2"
    types: ClassVar = WriteDialect.types | {
        "int32": "INTEGER",
        "float32": "FLOAT",
        "float64": "DOUBLE",
        "boolean": "SMALLINT",
        "string": "VARCHAR(32672)",
        "bytes": "BLOB(64000)",
        "decimal": "DECIMAL(31,{scale})",
    }
    key_types: ClassVar = {"string": "VARCHAR(255)"}
    booleans: ClassVar = ("0", "1")

    def _target(self, table: TableId) -> str:
        return f"{self.table(table)} AS target"

    def _incoming(self, names: Sequence[str]) -> str:
        return f"TABLE ({self._values(names)}) AS incoming({self._list(names)})"
