"""Decides how records with another schema affect open files (``schema.compatibility``)."""

from __future__ import annotations

import pyarrow as pa

from connect.api import DataError, RecordBatch, Schema, SchemaType

__all__ = ["must_rotate", "project"]


def must_rotate(rule: str, current: Schema | None, arriving: Schema | None) -> bool:
    """Whether records with ``arriving`` end the files with ``current``.

    Raises DataError where the rule needs versions that the schemas do not have.
    """
    if current == arriving:
        return False
    if rule == "NONE" or current is None or arriving is None:
        return True
    if current.version is None or arriving.version is None:
        raise DataError(
            f"schema.compatibility={rule} compares versions of schemas, but those of "
            f"{arriving.name or arriving.type.value} have none: use AvroConverter, or schema.compatibility=NONE"
        )
    newer = arriving.version > current.version
    return not newer if rule == "FORWARD" else newer


def project(batch: RecordBatch, target: Schema | None) -> RecordBatch:
    """Convert values to another version of their schema: fields are matched by name, new ones get their default or
    null.
    """
    if batch.value_schema == target or target is None:
        return batch
    assert batch.value_schema is not None
    return batch.replace(
        values=_column(batch.values, batch.value_schema, target, target.name or "value"), value_schema=target
    )


def _column(column: pa.Array, source: Schema, target: Schema, path: str) -> pa.Array:
    if source.type is not SchemaType.STRUCT or target.type is not SchemaType.STRUCT:
        try:
            return column.cast(target.arrow_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(f"{path} cannot be written with the schema of the open file: {error}") from error
    there = {member.name: i for i, member in enumerate(source.fields)}
    columns = []
    for member in target.fields:
        if member.name in there:
            child = column.field(there[member.name])
            columns.append(
                _column(child, source.fields[there[member.name]].schema, member.schema, f"{path}.{member.name}")
            )
        elif member.schema.default is not None or member.schema.optional:
            value = pa.scalar(member.schema.default, member.schema.arrow_type)
            columns.append(pa.repeat(value, len(column)))
        else:
            raise DataError(f"{path}.{member.name} has neither a value nor a default in records of an older schema")
    fields = [member.schema.arrow_field(member.name) for member in target.fields]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=column.is_null() if column.null_count else None)
