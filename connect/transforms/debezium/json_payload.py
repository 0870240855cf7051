"""Converts JSON texts to structs with inferred schemas (``table.expand.json.payload``)."""

from __future__ import annotations

import json
from typing import Any, Final

from connect.api import Field, Schema, SchemaType

__all__ = ["Expansion"]

_INT: Final = 1 << 31
_LONG: Final = 1 << 63


class _NoSchema(Exception):
    """An array with members of several kinds."""


class Expansion:
    """``null_bytes``: a null becomes an optional field of bytes; ``empty_strings``: an empty array becomes one of
    optional strings.

    Otherwise both are left out.
    """

    def __init__(self, *, null_bytes: bool, empty_strings: bool) -> None:
        self._null_bytes, self._empty_strings = null_bytes, empty_strings

    def expanded(self, name: str, text: str) -> tuple[Schema, Any] | None:
        """Schema and value of the object in a text; None if there is none, or it has no schema."""
        if not text.startswith("{"):
            return None
        try:
            value = json.loads(text)
            schema = self._schema(name, value)
        except (ValueError, RecursionError, _NoSchema):
            return None
        return None if schema is None else (schema, _fitting(schema, value))

    def _schema(self, name: str | None, value: Any) -> Schema | None:
        if value is None:
            return Schema(SchemaType.BYTES, optional=True) if self._null_bytes else None
        if isinstance(value, dict):
            fields = []
            for member, item in value.items():
                schema = self._schema(f"{name}.{member}" if name else member, item)
                if schema is not None:
                    fields.append(Field(member, schema))
            return Schema.struct(fields, name=name, optional=True)
        if isinstance(value, list):
            return self._array(name, value)
        return Schema(_scalar(value), optional=True)

    def _array(self, name: str | None, items: list[Any]) -> Schema | None:
        if not items:
            strings = Schema(SchemaType.STRING, optional=True)
            return Schema.array(strings, optional=True) if self._empty_strings else None
        item_schemas = [
            self._schema(name if isinstance(item, dict) else None, item) for item in items if item is not None
        ]
        schemas = [schema for schema in item_schemas if schema is not None]
        if len(schemas) != len(item_schemas) or not schemas or len({schema.type for schema in schemas}) > 1:
            raise _NoSchema
        return Schema.array(_merged(schemas) if schemas[0].type is SchemaType.STRUCT else schemas[0], optional=True)


def _scalar(value: Any) -> SchemaType:
    if isinstance(value, bool):
        return SchemaType.BOOLEAN
    if isinstance(value, str):
        return SchemaType.STRING
    if isinstance(value, int) and -_LONG <= value < _LONG:
        return SchemaType.INT32 if -_INT <= value < _INT else SchemaType.INT64
    return SchemaType.FLOAT64


def _merged(schemas: list[Schema]) -> Schema:
    """A struct with the fields of several."""
    fields: dict[str, Field] = {}
    for schema in schemas:
        for member in schema.fields:
            known = fields.get(member.name)
            if known is None or (known.schema.type is SchemaType.BYTES and member.schema.type is not SchemaType.BYTES):
                fields[member.name] = member
    # As in Debezium: merged fields are required, single ones are optional.
    alike = all(schema == schemas[0] for schema in schemas)
    return Schema.struct(list(fields.values()), name=schemas[0].name, optional=alike)


def _fitting(schema: Schema, value: Any) -> Any:
    """The value without parts that its schema lacks."""
    if value is None:
        return None
    if schema.type is SchemaType.STRUCT:
        return {member.name: _fitting(member.schema, value.get(member.name)) for member in schema.fields}
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        return [_fitting(schema.value_schema, item) for item in value]
    return float(value) if schema.type is SchemaType.FLOAT64 else value
