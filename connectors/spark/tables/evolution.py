"""Columns of a table and those of its next rows: what has to change in the table, and how rows become its rows.

Each change is one that both Iceberg and Delta make without rewriting a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructField,
    StructType,
)

from connectors.spark.tables.sql import ddl, quoted
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["Added", "Change", "SchemaConflict", "Widened", "as_table_type", "changes_of", "nullable"]

_INTEGERS: Final = (ByteType, ShortType, IntegerType, LongType)
_DIGITS: Final = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}


class SchemaConflict(UsageError):
    """The rows have a column that the table can't take. Nothing is written, and the records stay in their topic."""


@dataclass(frozen=True)
class Added:
    """A new column; ``path`` leads to it through structs, ``element`` of arrays and ``value`` of maps."""

    path: tuple[str, ...]
    type: DataType

    @property
    def action(self) -> str:
        return f"ADD COLUMNS ({quoted(*self.path)} {ddl(self.type)})"


@dataclass(frozen=True)
class Widened:
    path: tuple[str, ...]
    type: DataType

    @property
    def action(self) -> str:
        return f"ALTER COLUMN {quoted(*self.path)} TYPE {ddl(self.type)}"


Change = Added | Widened


def changes_of(table: StructType, rows: StructType, *, allowed: str) -> list[Change]:
    """The changes that the table needs before it can take the rows. ``allowed`` is ``none``, ``add`` or ``widen``.

    Names are compared without case, as Spark does. Raises SchemaConflict with all columns that can't be taken.
    """
    changes: list[Change] = []
    conflicts: list[str] = []
    _compare(table, rows, (), changes, conflicts)
    for change in changes:
        kind = "add" if isinstance(change, Added) else "widen"
        if allowed == "none" or (allowed == "add" and kind == "widen"):
            conflicts.append(
                f"the column {'.'.join(change.path)} would have to be {'added' if kind == 'add' else 'widened'} as {ddl(change.type)}, "
                f"and spark.output.schema.evolution is {allowed}"
            )
    if conflicts:
        raise SchemaConflict(
            f"the table can't take the rows: {'; '.join(conflicts)}. Nothing was written, and the records stay in their topic. Cast or "
            "rename the column in spark.sql, change the table, or write to another one"
        )
    return changes


def _compare(
    table: StructType, rows: StructType, path: tuple[str, ...], changes: list[Change], conflicts: list[str]
) -> None:
    there = {field.name.casefold(): field for field in table}
    for field in rows:
        column = there.get(field.name.casefold())
        if column is None:
            changes.append(Added((*path, field.name), nullable(field.dataType)))
        else:
            _compare_type(column.dataType, field.dataType, (*path, column.name), changes, conflicts)
    given = {field.name.casefold() for field in rows}
    conflicts += [
        f"the column {'.'.join((*path, column.name))} is NOT NULL in the table, and the rows lack it"
        for column in table
        if not column.nullable and column.name.casefold() not in given
    ]


def _compare_type(
    table: DataType, rows: DataType, path: tuple[str, ...], changes: list[Change], conflicts: list[str]
) -> None:
    if isinstance(table, StructType) and isinstance(rows, StructType):
        _compare(table, rows, path, changes, conflicts)
    elif isinstance(table, ArrayType) and isinstance(rows, ArrayType):
        _compare_type(table.elementType, rows.elementType, (*path, "element"), changes, conflicts)
    elif isinstance(table, MapType) and isinstance(rows, MapType):
        if nullable(table.keyType) != nullable(rows.keyType):
            conflicts.append(_told((*path, "key"), table.keyType, rows.keyType))
        _compare_type(table.valueType, rows.valueType, (*path, "value"), changes, conflicts)
    elif table == rows or _fits(rows, table):
        return
    elif _widens(table, rows):
        changes.append(Widened(path, rows))
    else:
        conflicts.append(_told(path, table, rows))


def _told(path: Sequence[str], table: DataType, rows: DataType) -> str:
    return f"the column {'.'.join(path)} is {ddl(table)} in the table and {ddl(rows)} in the rows"


def _widens(table: DataType, rows: DataType) -> bool:
    """Whether the table's column can become the rows' type, with all its values."""
    if isinstance(table, DecimalType) and isinstance(rows, DecimalType):
        return bool(rows.precision > table.precision and rows.scale == table.scale)
    if isinstance(table, FloatType):
        return isinstance(rows, DoubleType)
    return _is_wider_integer(table, rows)


def _fits(rows: DataType, table: DataType) -> bool:
    """Whether each value of the rows is one of the table's type."""
    if isinstance(table, DecimalType):
        whole = table.precision - table.scale
        if isinstance(rows, DecimalType):
            return bool(rows.scale <= table.scale and rows.precision - rows.scale <= whole)
        return type(rows) in _DIGITS and _DIGITS[type(rows)] <= whole
    if isinstance(table, DoubleType):
        return isinstance(rows, FloatType | ByteType | ShortType | IntegerType)
    if isinstance(table, FloatType):
        return isinstance(rows, ByteType | ShortType)
    return _is_wider_integer(rows, table)


def _is_wider_integer(narrow: DataType, wide: DataType) -> bool:
    ranks = {kind: rank for rank, kind in enumerate(_INTEGERS)}
    return type(narrow) in ranks and type(wide) in ranks and ranks[type(narrow)] < ranks[type(wide)]


def as_table_type(column: Column, rows: DataType, table: DataType) -> Column:
    """The column with the names, the order and the types of the table; members that it lacks are null."""
    from pyspark.sql import functions as f

    if rows == table:
        return column
    if isinstance(table, StructType) and isinstance(rows, StructType):
        there = {field.name.casefold(): field for field in rows}
        members = []
        for field in table:
            given = there.get(field.name.casefold())
            member = (
                f.lit(None).cast(field.dataType)
                if given is None
                else as_table_type(column.getField(given.name), given.dataType, field.dataType)
            )
            members.append(member.alias(field.name))
        return f.when(column.isNotNull(), f.struct(*members))
    if isinstance(table, ArrayType) and isinstance(rows, ArrayType):
        of, to = rows.elementType, table.elementType
        return f.transform(column, lambda element: as_table_type(element, of, to))
    if isinstance(table, MapType) and isinstance(rows, MapType):
        of, to = rows.valueType, table.valueType
        return f.transform_values(column, lambda _, value: as_table_type(value, of, to))
    return column.cast(table)


def nullable(type_: DataType) -> DataType:
    """The type with each member nullable, as a column that older rows lack must be."""
    if isinstance(type_, StructType):
        return StructType([StructField(field.name, nullable(field.dataType), nullable=True) for field in type_])
    if isinstance(type_, ArrayType):
        return ArrayType(nullable(type_.elementType), containsNull=True)
    if isinstance(type_, MapType):
        return MapType(nullable(type_.keyType), nullable(type_.valueType), valueContainsNull=True)
    return type_
