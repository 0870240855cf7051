"""Records as rows with fields: JSON without a schema gets one, and change events become rows to write or to delete."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, Field, RecordBatch, Schema, SchemaType, schema_from_arrow

__all__ = ["Rows", "change_rows", "field_at", "texts_at", "with_schema"]

_ENVELOPE: Final = ("before", "after", "op")
_DELETES: Final = ("d", "D")


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a batch for one purpose, to write or to delete.

    ``numbers`` are their rows in the batch. Those to delete may have just the id columns.
    """

    values: pa.StructArray
    fields: Sequence[Field]
    numbers: pa.Array


def with_schema(batch: RecordBatch) -> RecordBatch:
    """The batch with schemas for keys and values that are JSON without one. Raises DataError for what is no JSON object."""
    if batch.value_schema is None:
        values, schema = _inferred(batch.values, objects=True)
        batch = batch.replace(values=values, value_schema=schema)
    if batch.keys is not None and batch.key_schema is None:
        keys, schema = _inferred(batch.keys, objects=False)
        batch = batch.replace(keys=keys, key_schema=schema)
    if batch.value_schema is not None and batch.value_schema.type is not SchemaType.STRUCT:
        if batch.values.null_count < len(batch):
            raise DataError(
                f"records of {batch.topic!r} have values that are {batch.value_schema.type.value}, and a table needs fields: use a "
                "converter whose values are structs or JSON objects, or put them into a field with HoistField"
            )
        batch = batch.replace(values=pa.nulls(len(batch), pa.struct([])), value_schema=Schema.struct({}, optional=True))
    return batch


def _inferred(texts: pa.Array, *, objects: bool) -> tuple[pa.Array, Schema]:
    try:
        parsed = [None if text is None else json.loads(text) for text in texts.to_pylist()]
        if objects and any(not isinstance(value, dict) for value in parsed if value is not None):
            raise DataError("the record's value is no JSON object, and a table needs fields")
        values = pa.array(parsed)
    except (ValueError, pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(f"JSON without a schema has no column form: {error}") from error
    schema = _schema_of(values.type)
    if schema is None:
        schema = Schema.struct({}, optional=True) if objects else Schema(SchemaType.STRING, optional=True)
    return values.cast(schema.arrow_type), schema


def _schema_of(arrow: pa.DataType) -> Schema | None:
    """The schema of inferred columns, all optional; None where there was no value that shows a type."""
    if pa.types.is_null(arrow):
        return None
    if pa.types.is_struct(arrow):
        known = [(field.name, _schema_of(field.type)) for field in arrow]
        fields = [Field(name, schema) for name, schema in known if schema is not None]
        return Schema.struct(fields, optional=True) if fields else None
    if pa.types.is_list(arrow):
        items = _schema_of(arrow.value_type)
        return None if items is None else Schema.array(items, optional=True)
    return schema_from_arrow(arrow, optional=True)


def field_at(batch: RecordBatch, path: str) -> pa.Array | None:
    """The field of the values that a path with dots leads to; None if there is none."""
    assert batch.value_schema is not None
    values, schema = batch.values, batch.value_schema
    for name in path.split("."):
        if schema.type is not SchemaType.STRUCT or name not in schema.field_names:
            return None
        values = pc.struct_field(values, [schema.field_names.index(name)])
        schema = schema.field(name).schema
    return values


def texts_at(batch: RecordBatch, path: str) -> pa.Array:
    """The field at a path as text; null where there is none."""
    values = field_at(batch, path)
    if values is None or pa.types.is_nested(values.type):
        return pa.nulls(len(batch), pa.string())
    return values.cast(pa.string())


def change_rows(
    batch: RecordBatch, id_columns: Sequence[str], cdc_field: str | None
) -> tuple[Rows, Rows, dict[int, Exception]]:
    """The rows to write, those to delete, and the rows that are neither, with the reason.

    Debezium's envelope is recognised by its fields; a record without value deletes the row of its key.
    """
    schema = batch.value_schema
    assert schema is not None
    numbers = pa.array(range(len(batch)), pa.int64())
    refused: dict[int, Exception] = {}
    missing = batch.values.is_null()
    if cdc_field is None and set(_ENVELOPE) <= set(schema.field_names):
        op = pc.fill_null(pc.struct_field(batch.values, [schema.field_names.index("op")]).cast(pa.string()), "")
        row = schema.field("after").schema
        values = pc.struct_field(batch.values, [schema.field_names.index("after")])
        before = pc.struct_field(batch.values, [schema.field_names.index("before")])
        deleted = pc.or_(missing, pc.equal(op, "d"))
        truncates = pc.equal(op, "t")
        for number in numbers.filter(truncates).to_pylist():
            refused[number] = DataError(
                "a truncate event is not applied to the table: empty it yourself, and skip the record"
            )
        written = pc.and_(pc.invert(deleted), pc.is_in(op, value_set=pa.array(["c", "r", "u"])))
    else:
        values, before, row = batch.values, batch.values, schema
        deleted = missing
        if cdc_field is not None:
            first = pc.utf8_slice_codeunits(texts_at(batch, cdc_field), 0, 1)
            deletes = pc.fill_null(pc.is_in(first, value_set=pa.array(_DELETES)), False)
            deleted = pc.or_(missing, deletes)
        written = pc.invert(deleted)
    upserts = Rows(values.filter(written), row.fields, numbers.filter(written))
    gone = numbers.filter(deleted)
    deletes_rows = Rows(*_ids(batch.filter(deleted), before.filter(deleted), row, id_columns), gone)
    return upserts, deletes_rows, refused


def _ids(
    batch: RecordBatch, before: pa.StructArray, row: Schema, id_columns: Sequence[str]
) -> tuple[pa.StructArray, Sequence[Field]]:
    """The id columns of deleted rows: from the key where it has them, otherwise from the row as it was."""
    columns, fields = [], []
    for name in id_columns:
        of_key, key_field = _of_key(batch, name, id_columns)
        if name in row.field_names:
            number = row.field_names.index(name)
            of_row, field = pc.struct_field(before, [number]), row.fields[number]
        else:
            of_row, field = None, None
        if of_key is not None and (of_row is None or of_row.null_count == len(of_row) or of_key.null_count == 0):
            columns.append(of_key)
            fields.append(key_field)
        elif of_row is not None:
            columns.append(of_row)
            fields.append(field)
    arrow = [pa.field(field.name, column.type) for field, column in zip(fields, columns, strict=True) if field]
    values = pa.StructArray.from_arrays(columns, fields=arrow) if columns else pa.nulls(len(batch), pa.struct([]))
    return values, [Field(field.name, field.schema.as_optional()) for field in fields if field is not None]


def _of_key(batch: RecordBatch, name: str, id_columns: Sequence[str]) -> tuple[Any, Field | None]:
    keys, schema = batch.keys, batch.key_schema
    if keys is None or schema is None:
        return None, None
    if schema.type is SchemaType.STRUCT:
        if name not in schema.field_names:
            return None, None
        number = schema.field_names.index(name)
        return pc.struct_field(keys, [number]), schema.fields[number]
    return (keys, Field(name, schema)) if len(id_columns) == 1 else (None, None)
