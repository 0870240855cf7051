"""The schema history in Debezium's form: every DDL statement with its position and the resulting tables.

Source: Debezium's HistoryRecord. A history written by Debezium can be read here, and the other way round.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.api import ConnectError, DataError, get_logger
from connectors.mysql.binlog.gtid import gtid_set
from connectors.mysql.config import MySqlConfig
from connectors.mysql.ddl import apply
from connectors.mysql.history_stores import History
from connectors.mysql.structure import Change, Column, Structure, Table, TableName

__all__ = ["at_or_before", "record", "recover", "table_struct"]

logger = get_logger(__name__)


# what a record holds

_JDBC: Final = {
    "CHAR": 1, "CHARACTER": 1, "VARCHAR": 12, "TINYTEXT": 12, "TEXT": 12, "MEDIUMTEXT": 12, "LONGTEXT": 12, "LONG": 12, "NCHAR": -15,
    "NVARCHAR": -9, "NATIONAL": -15, "TINYINT": 5, "INT1": 5, "SMALLINT": 5, "INT2": 5, "MEDIUMINT": 4, "INT3": 4, "MIDDLEINT": 4,
    "INT": 4, "INTEGER": 4, "INT4": 4, "BIGINT": -5, "INT8": -5, "REAL": 7, "DOUBLE": 8, "FLOAT8": 8, "FLOAT": 6, "FLOAT4": 6,
    "DECIMAL": 3, "DEC": 3, "FIXED": 3, "NUMERIC": 2, "BIT": -7, "TIME": 92, "TIMESTAMP": 2014, "DATETIME": 93, "BINARY": -2,
    "VARBINARY": -3, "BLOB": 2004, "TINYBLOB": 2004, "MEDIUMBLOB": 2004, "LONGBLOB": 2004, "YEAR": 4, "DATE": 91, "BOOL": 16,
    "BOOLEAN": 16, "ENUM": 1, "SET": 1,
}  # fmt: skip
_OTHER: Final = 1111


def _quoted_id(name: TableName) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in name)


def _column(column: Column, position: int) -> dict[str, Any]:
    words = column.type.split(" ")
    varying = "VARYING" in words
    made: dict[str, Any] = {
        "name": column.name,
        "jdbcType": 12 if varying and words[0] in ("CHAR", "CHARACTER") else _JDBC.get(words[0], _OTHER),
        "typeName": column.type,
        "typeExpression": column.type,
        "charsetName": column.charset,
        "position": position,
        "optional": column.optional,
        "autoIncremented": column.auto_increment,
        "generated": column.generated,
        "comment": column.comment,
        "hasDefaultValue": column.has_default or column.optional,
        "enumValues": ["'" + label.replace("'", "''") + "'" for label in column.labels],
    }
    more = {"length": column.length, "scale": column.scale, "defaultValueExpression": column.default}
    return made | {name: value for name, value in more.items() if value is not None}


def table_struct(table: Table) -> dict[str, Any]:
    """A table in the form used in the history and in the schema change topic."""
    return {
        "defaultCharsetName": table.charset,
        "primaryKeyColumnNames": list(table.key_columns),
        "columns": [_column(column, i + 1) for i, column in enumerate(table.columns)],
        "attributes": [],
    }


def _change(change: Change) -> dict[str, Any]:
    made: dict[str, Any] = {"type": change.type, "id": _quoted_id(change.name)}
    if change.previous is not None:
        made["previousId"] = _quoted_id(change.previous)
    if change.table is not None:
        made |= {"table": table_struct(change.table), "comment": change.table.comment}
    return made


def record(
    config: MySqlConfig, position: Mapping[str, Any], database: str, ddl: str, changes: Sequence[Change]
) -> dict[str, Any]:
    return {
        "source": {"server": config.prefix},
        "position": dict(position),
        "ts_ms": time.time_ns() // 1_000_000,
        "databaseName": database,
        "ddl": ddl,
        "tableChanges": [_change(change) for change in changes],
    }


# what a record says

_UNQUOTE: Final = {"'": "'", '"': '"'}


def _label(text: str) -> str:
    if len(text) > 1 and text[0] in _UNQUOTE and text[-1] == text[0]:
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def _names(identifier: str) -> TableName:
    parts = [part.strip('"').replace('""', '"') for part in identifier.split('"."')]
    return (parts[0], parts[-1])


def _column_of(form: Mapping[str, Any]) -> Column:
    return Column(
        form["name"],
        form["typeName"],
        form.get("length"),
        form.get("scale"),
        form.get("charsetName"),
        bool(form.get("optional", True)),
        bool(form.get("autoIncremented")),
        bool(form.get("generated")),
        form.get("defaultValueExpression"),
        bool(form.get("hasDefaultValue")),
        tuple(_label(label) for label in form.get("enumValues") or ()),
        form.get("comment"),
    )


def _table(name: TableName, form: Mapping[str, Any]) -> Table:
    columns = [_column_of(c) for c in sorted(form["columns"], key=lambda c: int(c["position"]))]
    key = tuple(form.get("primaryKeyColumnNames") or ())
    return Table(name, tuple(columns), key, (), form.get("defaultCharsetName"), form.get("comment"))


def at_or_before(recorded: Mapping[str, Any], target: Mapping[str, Any], *, mariadb: bool) -> bool:
    """Whether a record's position is at or before another: compared by GTIDs where both have them, else by file and
    position.
    """
    if target.get("gtids"):
        if not recorded.get("gtids"):
            return True
        left, other = (gtid_set(str(p["gtids"]), mariadb=mariadb) for p in (recorded, target))
        if left == other:
            if not recorded.get("snapshot") and target.get("snapshot"):
                return False
            return int(recorded.get("event") or 0) <= int(target.get("event") or 0)
        return left.within(other)
    if recorded.get("gtids"):
        return False
    if recorded.get("server_id") and target.get("server_id") and recorded["server_id"] != target["server_id"]:
        return int(recorded.get("ts_sec") or 0) <= int(target.get("ts_sec") or 0)
    return _file_order(recorded) <= _file_order(target)


def _file_order(position: Mapping[str, Any]) -> tuple[int, int, int, int]:
    number = str(position.get("file") or "").rpartition(".")[2]
    return (
        int(number) if number.isdigit() else 0,
        int(position.get("pos") or 0),
        int(position.get("event") or 0),
        int(position.get("row") or 0),
    )


def recover(
    history: History, structure: Structure, config: MySqlConfig, offset: Mapping[str, Any], *, mariadb: bool
) -> int:
    """Restore the structure as it was at a position. Returns the number of records applied."""
    applied = 0
    for record in history.read():
        source = record.get("source") or {}
        if source.get("server") != config.prefix or not at_or_before(
            record.get("position") or {}, offset, mariadb=mariadb
        ):
            continue
        applied += 1
        changes = record.get("tableChanges")
        if not changes:
            _apply_ddl(structure, record, config)
            continue
        for change in changes:
            name = _names(change["id"])
            if change.get("previousId"):
                structure.tables.pop(_names(change["previousId"]), None)
            if change["type"] == "DROP":
                structure.tables.pop(name, None)
            else:
                structure.tables[name] = _table(name, change["table"])
    return applied


def _apply_ddl(structure: Structure, record: Mapping[str, Any], config: MySqlConfig) -> None:
    try:
        apply(structure, record.get("ddl") or "", record.get("databaseName") or "")
    except DataError as error:
        if not config.history_skip:
            raise ConnectError(
                f"the history holds DDL that is not understood: {error}. To go on without it set "
                "schema.history.internal.skip.unparseable.ddl=true"
            ) from error
        logger.warning("DDL in the history is skipped", problem=str(error))
