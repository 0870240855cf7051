"""Connect schemas in Kafka Connect's JSON form (``{"type":"struct","fields":[...]}``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from connect.data.errors import DataError
from connect.data.json_text import json_texts
from connect.data.json_values import reader_of
from connect.data.schema import Field, Schema, SchemaType

__all__ = ["schema_from_json", "schema_to_json"]

_NAMES: Final = {
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
}
_TYPES: Final = {_NAMES.get(kind, kind.value): kind for kind in SchemaType}


def schema_to_json(schema: Schema, *, numeric_decimals: bool = False) -> dict[str, Any]:
    """The JSON form, its members in Kafka Connect's order."""
    form: dict[str, Any] = {"type": _NAMES.get(schema.type, schema.type.value)}
    if schema.type is SchemaType.STRUCT:
        members = ((member.name, schema_to_json(member.schema)) for member in schema.fields)
        form["fields"] = [{**member, "field": name} for name, member in members]
    if schema.type is SchemaType.MAP:
        assert schema.key_schema is not None
        form["keys"] = schema_to_json(schema.key_schema)
    if schema.value_schema is not None:
        form["values" if schema.type is SchemaType.MAP else "items"] = schema_to_json(schema.value_schema)
    form["optional"] = schema.optional
    for name in ("name", "version", "doc"):
        if getattr(schema, name) is not None:
            form[name] = getattr(schema, name)
    if schema.parameters:
        form["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        form["default"] = _default_to_json(schema, numeric_decimals)
    return form


def _default_to_json(schema: Schema, numeric_decimals: bool) -> Any:
    import json

    import pyarrow as pa

    column = pa.array([schema.default], schema.arrow_type)
    return json.loads(json_texts(schema, column, numeric_decimals=numeric_decimals)[0].as_py())


def schema_from_json(form: Any, *, depth: int = 0) -> Schema:
    """The schema described by a JSON form. Raises DataError with the problem."""
    if not isinstance(form, Mapping):
        raise DataError(f"a schema must be an object, not {type(form).__name__}")
    if depth > 50:
        raise DataError("a schema is nested more than 50 deep")
    kind = _TYPES.get(form["type"]) if isinstance(form.get("type"), str) else None
    if kind is None:
        raise DataError(f"Unknown schema type: {form.get('type')}; it must be one of: {', '.join(_TYPES)}")
    fields = _fields(form, depth) if kind is SchemaType.STRUCT else ()
    version, parameters = form.get("version"), form.get("parameters") or {}
    if not isinstance(parameters, Mapping) or not all(isinstance(value, str) for value in parameters.values()):
        raise DataError("schema parameters must be an object of strings")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise DataError("a schema's version must be an integer")
    schema = Schema(
        kind,
        optional=bool(form.get("optional", False)),
        name=_text(form, "name"),
        version=version,
        doc=_text(form, "doc"),
        parameters=dict(parameters),
        fields=fields,
        key_schema=schema_from_json(form.get("keys"), depth=depth + 1) if kind is SchemaType.MAP else None,
        value_schema=_member_schema(form, kind, depth),
    )
    if form.get("default") is None:
        return schema
    return _with_default(schema, form["default"])


def _with_default(schema: Schema, payload: Any) -> Schema:
    from dataclasses import replace

    try:
        return replace(schema, default=reader_of(schema)(payload))
    except (ValueError, TypeError, ArithmeticError) as error:
        raise DataError(f"a schema's default does not fit it: {error}") from error


def _member_schema(form: Mapping[str, Any], kind: SchemaType, depth: int) -> Schema | None:
    if kind is SchemaType.MAP:
        return schema_from_json(form.get("values"), depth=depth + 1)
    return schema_from_json(form.get("items"), depth=depth + 1) if kind is SchemaType.ARRAY else None


def _fields(form: Mapping[str, Any], depth: int) -> tuple[Field, ...]:
    members = form.get("fields")
    if not isinstance(members, list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields = []
    for member in members:
        name = member.get("field") if isinstance(member, Mapping) else None
        if not isinstance(name, str):
            raise DataError("Struct schema's field name not specified properly")
        fields.append(Field(name, schema_from_json(member, depth=depth + 1)))
    if len({member.name for member in fields}) != len(fields):
        raise DataError("a struct schema has a field name twice")
    return tuple(fields)


def _text(form: Mapping[str, Any], name: str) -> str | None:
    value = form.get(name)
    if value is not None and not isinstance(value, str):
        raise DataError(f"a schema's {name} must be a string")
    return value
