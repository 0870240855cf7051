"""Arrow columns as JSON, with a JSON Schema in Confluent framing or alone.

A null member is left out, unless the schema requires it. Bytes are base64, times and dates ISO 8601.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from registry.formats.json_schema.schema import JsonSchema
from registry.serde.arrow_types import UnsupportedSchema
from registry.serde.errors import UnencodableValue
from registry.serde.framing import header
from registry.serde.json_schema import Form, form_of

__all__ = ["encode_json", "json_schema_of"]

_EXACT_DIGITS: Final = 15
"""A double holds decimals of so many digits."""
_SIMPLE: Final[tuple[tuple[Callable[[pa.DataType], bool], dict[str, str]], ...]] = (
    (pa.types.is_boolean, {"type": "boolean"}),
    (pa.types.is_int8, {"type": "integer", "connect.type": "int8"}),
    (pa.types.is_int16, {"type": "integer", "connect.type": "int16"}),
    (pa.types.is_int32, {"type": "integer", "connect.type": "int32"}),
    (pa.types.is_integer, {"type": "integer"}),
    (pa.types.is_float32, {"type": "number", "connect.type": "float32"}),
    (pa.types.is_floating, {"type": "number"}),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t), {"type": "string"}),
    (pa.types.is_timestamp, {"type": "string", "format": "date-time"}),
    (pa.types.is_date, {"type": "string", "format": "date"}),
)
Convert = Callable[[Any], Any]


def json_schema_of(type_: pa.DataType, title: str = "Record") -> JsonSchema:
    """A schema for values of an Arrow type. Objects are closed, so that a property may be added later, and no property is required.

    Raises UnsupportedSchema for a type that JSON lacks, and for decimals with more digits than a JSON number keeps.
    """
    return JsonSchema.parse(json.dumps({"title": title, **_part(type_, "")}))


def _part(type_: pa.DataType, path: str) -> dict[str, Any]:
    if pa.types.is_struct(type_):
        properties = {field.name: _part(field.type, f"{path}.{field.name}" if path else field.name) for field in type_}
        return {"type": "object", "properties": properties, "additionalProperties": False}
    if _is_list(type_):
        return {"type": "array", "items": _or_null(_part(type_.value_type, f"{path}[]"))}
    if pa.types.is_map(type_):
        if not pa.types.is_string(type_.key_type):
            raise UnsupportedSchema(f"a map with keys of {type_.key_type}; JSON's are strings", path=path)
        return {"type": "object", "additionalProperties": _or_null(_part(type_.item_type, f"{path}[]"))}
    if _is_bytes(type_):
        return {"type": "string", "connect.type": "bytes"}
    if pa.types.is_decimal(type_):
        _check_digits(type_, path)
        return {"type": "integer" if type_.scale == 0 else "number"}
    for matches, part in _SIMPLE:
        if matches(type_):
            return part
    raise UnsupportedSchema(f"Arrow type {type_} has no JSON type: cast it to STRING", path=path)


def _or_null(part: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, part]}


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_))


def _check_digits(type_: pa.DataType, path: str) -> None:
    if type_.scale > 0 and type_.precision > _EXACT_DIGITS:
        raise UnsupportedSchema(
            f"{type_} has more digits than a JSON number keeps ({_EXACT_DIGITS}): cast it to STRING", path=path
        )


def encode_json(
    column: pa.Array, schema: JsonSchema | None = None, schema_id: int | None = None, *, validate: bool = True
) -> pa.Array:
    """Every row as JSON, and a null row as null; with an id in Confluent framing.

    Without ``validate`` the schema only says what is required and what is JSON text already. Raises UnencodableValue with the
    row and the field of the first value that does not fit, and UnsupportedSchema.
    """
    convert = _conversion(column.type, None if schema is None else form_of(schema), "")
    validator = schema.validator() if schema is not None and validate else None
    prefix = b"" if schema_id is None else header(schema_id)
    encoded: list[bytes | None] = []
    for row, value in enumerate(column.to_pylist()):
        if value is None:
            encoded.append(None)
            continue
        try:
            made = value if convert is None else convert(value)
            text = json.dumps(made, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            encoded.append(prefix + text.encode())
        except ValueError as error:
            raise UnencodableValue(str(error), row=row) from error
        if validator is not None and (wrong := next(validator.iter_errors(made), None)) is not None:
            path = ".".join(map(str, wrong.absolute_path))
            raise UnencodableValue(wrong.message, row=row, path=path)
    return pa.array(encoded, pa.binary())


def _conversion(type_: pa.DataType, form: Form | None, path: str) -> Convert | None:
    """The function that makes JSON's values of Python's; None: they are that already."""
    if form is not None and form.any and (pa.types.is_string(type_) or pa.types.is_large_string(type_)):
        return json.loads
    if pa.types.is_struct(type_):
        return _object(type_, form, path)
    if _is_list(type_):
        item = _conversion(type_.value_type, _part_of(form, 0), f"{path}[]")
        return None if item is None else _each(item)
    if pa.types.is_map(type_):
        item = _conversion(type_.item_type, _part_of(form, 0), f"{path}[]")
        return lambda pairs: {str(k): v if v is None or item is None else item(v) for k, v in pairs}
    if _is_bytes(type_):
        return lambda data: base64.b64encode(data).decode()
    if pa.types.is_decimal(type_):
        _check_digits(type_, path)
        return int if type_.scale == 0 else float
    if pa.types.is_timestamp(type_):
        return _instant
    return dt.date.isoformat if pa.types.is_date(type_) else None


def _each(convert: Convert) -> Convert:
    return lambda values: [None if value is None else convert(value) for value in values]


def _instant(value: dt.datetime) -> str:
    if value.tzinfo is None:
        return value.isoformat()
    return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


def _object(type_: pa.DataType, form: Form | None, path: str) -> Convert:
    parts = {}
    required: frozenset[str] = frozenset()
    if form is not None and pa.types.is_struct(form.type):
        parts = {form.type.field(at).name: part for at, part in enumerate(form.parts)}
        required = form.required
    members = [
        (field.name, _conversion(field.type, parts.get(field.name), f"{path}.{field.name}" if path else field.name))
        for field in type_
    ]

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        made = {}
        for name, member in members:
            item = value[name]
            if item is not None:
                made[name] = item if member is None else member(item)
            elif name in required:
                made[name] = None
        return made

    return convert


def _part_of(form: Form | None, at: int) -> Form | None:
    return form.parts[at] if form is not None and len(form.parts) > at else None
