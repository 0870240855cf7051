"""Pieces of SQL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

__all__ = ["columns_ddl", "ddl", "literal", "partitioned_ddl", "properties_ddl", "quoted"]


def quoted(*names: str) -> str:
    """A name, of parts."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in names)


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def ddl(type_: DataType) -> str:
    if isinstance(type_, StructType):
        return f"STRUCT<{', '.join(f'{quoted(field.name)}: {ddl(field.dataType)}' for field in type_)}>"
    if isinstance(type_, ArrayType):
        return f"ARRAY<{ddl(type_.elementType)}>"
    if isinstance(type_, MapType):
        return f"MAP<{ddl(type_.keyType)}, {ddl(type_.valueType)}>"
    return str(type_.simpleString()).upper()


def columns_ddl(fields: Iterable[StructField]) -> str:
    return ", ".join(f"{quoted(field.name)} {ddl(field.dataType)}" for field in fields)


def properties_ddl(properties: Mapping[str, str]) -> str:
    if not properties:
        return ""
    return f"TBLPROPERTIES ({', '.join(f'{literal(name)} = {literal(value)}' for name, value in properties.items())})"


def partitioned_ddl(partition_by: Iterable[str]) -> str:
    """``PARTITIONED BY`` for columns and transforms of them. A transform with a comma is in two parts: the list was split there."""
    parts = list[str]()
    for part in partition_by:
        if parts and parts[-1].count("(") > parts[-1].count(")"):
            parts[-1] += f", {part}"
        else:
            parts.append(part)
    named = [part if "(" in part else quoted(part) for part in parts]
    return f"PARTITIONED BY ({', '.join(named)})" if named else ""
