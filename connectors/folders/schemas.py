"""Schemas of rows: read from configuration, generated from names of columns, or inferred from the first rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from connect.api import ConnectError, Field, Schema, SchemaType
from connect.formats import avro_schema, schema_from_json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["inferred", "key_schema_of", "of_strings", "read_schema"]

_TEXT: Final = Schema(SchemaType.STRING, optional=True)


def read_schema(text: str) -> Schema:
    """A struct from JSON text in any of three forms: SpoolDir's (``fieldSchemas``), Avro's (``"type": "record"``), and Connect's as
    JsonConverter writes it. Raises ConnectError.
    """
    try:
        form = json.loads(text)
    except ValueError as error:
        raise ConnectError(f"it is not JSON: {error}") from error
    try:
        if isinstance(form, dict) and form.get("type") == "record":
            schema = avro_schema(text)
        elif isinstance(form, dict) and "fieldSchemas" in form:
            schema = _of_spooldir(form)
        else:
            schema = schema_from_json(form)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, ConnectError) as error:
        raise ConnectError(f"it is no schema: {error!r}" if not str(error) else f"it is no schema: {error}") from error
    if schema.type is not SchemaType.STRUCT or not schema.fields:
        raise ConnectError(f"it should be a struct with fields, not {schema.type.value}")
    return schema


def _of_spooldir(form: Mapping[str, Any]) -> Schema:
    """The form that SpoolDir's documentation shows."""
    kind = SchemaType[form["type"].upper()]
    fields = form.get("fieldSchemas") or {}
    inner: dict[str, Any] = {name: _of_spooldir(form[key]) for name, key in _INNER.items() if form.get(key) is not None}
    return Schema(
        kind,
        optional=bool(form.get("isOptional", False)),
        name=form.get("name"),
        version=form.get("version"),
        doc=form.get("doc"),
        default=form.get("defaultValue"),
        parameters={name: str(value) for name, value in (form.get("parameters") or {}).items()},
        fields=tuple(Field(name, _of_spooldir(each)) for name, each in fields.items()),
        **inner,
    )


_INNER: Final = {"key_schema": "keySchema", "value_schema": "valueSchema"}


def of_strings(names: Sequence[str], name: str) -> Schema:
    """Optional strings for all columns, as SpoolDir generates a schema."""
    return Schema.struct(dict.fromkeys(names, _TEXT), name=name)


def key_schema_of(value: Schema, names: Sequence[str], name: str) -> Schema:
    """A struct of some fields of the value. Raises DataError for a field that is not there."""
    return Schema.struct([value.field(each) for each in names], name=name)


def inferred(columns: Mapping[str, pa.Array], name: str) -> Schema:
    """The narrowest types of columns of texts that all their values fit: boolean, int64, float64, date, timestamp, else string.

    All fields are optional. Numbers with a leading zero stay strings: they are codes.
    """
    return Schema.struct({each: _narrowest(column) for each, column in columns.items()}, name=name)


def _narrowest(column: pa.Array) -> Schema:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        texts = pc.cast(column, pa.string()).drop_null().unique()
    except pa.ArrowInvalid:
        return _TEXT
    texts = texts.filter(pc.not_equal(texts, ""))
    if not len(texts) or pc.any(pc.match_substring_regex(texts, r"^[+-]?0\d")).as_py():
        return _TEXT
    if pc.all(pc.is_in(pc.utf8_lower(texts), pa.array(["true", "false"]))).as_py():
        return Schema(SchemaType.BOOLEAN, optional=True)
    for arrow, pattern, schema in (
        (pa.int64(), r"^[+-]?\d+$", Schema(SchemaType.INT64, optional=True)),
        (pa.float64(), r"^[+-]?[\d.]", Schema(SchemaType.FLOAT64, optional=True)),
        (pa.date32(), r"^\d{4}-\d\d-\d\d$", Schema.date(optional=True)),
        (pa.timestamp("ms"), r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d", Schema.timestamp(optional=True)),
        (pa.timestamp("ms", "UTC"), r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d", Schema.timestamp(optional=True)),
    ):
        if not pc.all(pc.match_substring_regex(texts, pattern)).as_py():
            continue
        try:
            pc.cast(texts, arrow)
        except pa.ArrowInvalid:
            continue
        return schema
    return _TEXT
