"""Converts JSON payloads to values and columns of a schema, in Kafka Connect's JSON form of its types."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from connect.data.errors import DataError
from connect.data.json_text import is_choice
from connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["from_json", "reader_of"]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1)
_INTEGERS: Final = {
    SchemaType.INT8: 1 << 7,
    SchemaType.INT16: 1 << 15,
    SchemaType.INT32: 1 << 31,
    SchemaType.INT64: 1 << 63,
}


def from_json(
    schema: Schema, payloads: list[Any], where: str, *, defaults: bool = True, entries: bool = False
) -> pa.Array:
    """A column from JSON payloads, by a schema; None stays null. Raises DataError with the invalid row."""
    import pyarrow as pa

    read = reader_of(schema, defaults=defaults, entries=entries)
    values: list[Any] = []
    for row, payload in enumerate(payloads):
        if payload is None:
            values.append(None)
            continue
        try:
            values.append(read(payload))
        except (DataError, ValueError, TypeError, ArithmeticError, binascii.Error) as error:
            raise DataError(f"{where}: {error}", rows=[row]) from error
    try:
        return pa.array(values, schema.arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(f"{where}: {error}") from error


def reader_of(schema: Schema, *, defaults: bool = True, entries: bool = False) -> Callable[[Any], Any]:
    """A function that converts a JSON payload to the Python form of a schema, with ``defaults`` for nulls. It raises
    DataError.

    ``entries``: in the form of Confluent's JSON Schema converter (see ``json_text``).
    """
    read = _READERS.get((schema.type, schema.name)) or _plain_reader(schema, defaults, entries)
    what = schema.name or schema.type.value

    def reader(payload: Any) -> Any:
        if payload is None:
            if defaults and schema.default is not None:
                return schema.default
            if not schema.optional:
                raise DataError(f"Invalid null value for required {what} field")
            return None
        return read(payload) if schema.name != DECIMAL else _decimal(payload, schema.scale)

    return reader


def _plain_reader(schema: Schema, defaults: bool, entries: bool) -> Callable[[Any], Any]:
    if entries and is_choice(schema):
        return _choice_reader(schema, defaults)
    if schema.type is SchemaType.STRUCT:
        members = [
            (member.name, reader_of(member.schema, defaults=defaults, entries=entries)) for member in schema.fields
        ]

        def read_struct(payload: Any) -> Any:
            form = _expect(payload, dict, "struct")
            return {name: read(form.get(name)) for name, read in members}

        return read_struct
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        read_item = reader_of(schema.value_schema, defaults=defaults, entries=entries)
        return lambda payload: [read_item(item) for item in _expect(payload, list, "array")]
    if schema.type is SchemaType.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        read_key = reader_of(schema.key_schema, defaults=defaults, entries=entries)
        read_value = reader_of(schema.value_schema, defaults=defaults, entries=entries)

        def read_map(payload: Any) -> Any:
            pairs = payload.items() if isinstance(payload, dict) else _expect(payload, list, "map")
            if entries and isinstance(payload, list):
                pairs = [(_expect(entry, dict, "entry of a map").get("key"), entry.get("value")) for entry in payload]
            return [(read_key(name), read_value(value)) for name, value in pairs]

        return read_map
    if schema.type in _INTEGERS:
        return lambda payload: _integer(payload, schema.type)
    return _PLAIN[schema.type]


def _choice_reader(schema: Schema, defaults: bool) -> Callable[[Any], Any]:
    """The first field that the payload fits; among structs the one that shares the most names with it."""
    members = [(m, reader_of(m.schema, defaults=defaults, entries=True)) for m in schema.fields]

    def shared(member: Any, payload: Any) -> int:
        inner = member.schema
        if inner.type is not SchemaType.STRUCT or is_choice(inner) or not isinstance(payload, dict):
            return 0
        return len(set(inner.field_names) & set(payload))

    def read_choice(payload: Any) -> Any:
        for member, read in sorted(members, key=lambda pair: -shared(pair[0], payload)):
            try:
                return {m.name: read(payload) if m is member else None for m, _ in members}
            except (DataError, ValueError, TypeError, ArithmeticError):
                continue
        raise DataError("Did not find matching oneof field for data")

    return read_choice


def _expect(payload: Any, kind: type, name: str) -> Any:
    if not isinstance(payload, kind) or (isinstance(payload, bool) and kind is not bool):
        raise DataError(f"Invalid type for {name}: {type(payload).__name__}")
    return payload


def _integer(payload: Any, kind: SchemaType) -> int:
    bound = _INTEGERS[kind]
    if isinstance(payload, bool) or not isinstance(payload, int) or not -bound <= payload < bound:
        raise DataError(f"Invalid value {str(payload)[:50]} for {kind.value}")
    return payload


def _float(payload: Any) -> float:
    if isinstance(payload, str) and payload in ("NaN", "Infinity", "-Infinity"):
        return float(payload)
    if isinstance(payload, bool) or not isinstance(payload, int | float):
        raise DataError(f"Invalid value {str(payload)[:50]} for a float")
    return float(payload)


def _decimal(payload: Any, scale: int) -> decimal.Decimal:
    if isinstance(payload, str):
        number = int.from_bytes(base64.b64decode(payload, validate=True), "big", signed=True)
        return decimal.Decimal(number).scaleb(-scale, decimal.Context(prec=100))
    if isinstance(payload, int | float) and not isinstance(payload, bool):
        return decimal.Decimal(str(payload)).quantize(
            decimal.Decimal(1).scaleb(-scale), context=decimal.Context(prec=100)
        )
    raise DataError(f"Invalid value {str(payload)[:50]} for a decimal")


_PLAIN: Final[dict[SchemaType, Callable[[Any], Any]]] = {
    SchemaType.BOOLEAN: lambda payload: _expect(payload, bool, "boolean"),
    SchemaType.STRING: lambda payload: _expect(payload, str, "string"),
    SchemaType.BYTES: lambda payload: base64.b64decode(_expect(payload, str, "bytes"), validate=True),
    SchemaType.FLOAT32: _float,
    SchemaType.FLOAT64: _float,
}
_READERS: Final[dict[tuple[SchemaType, str | None], Callable[[Any], Any]]] = {
    (SchemaType.INT32, DATE): lambda payload: _EPOCH_DAY + dt.timedelta(days=_integer(payload, SchemaType.INT32)),
    (SchemaType.INT32, TIME): lambda payload: (
        _EPOCH + dt.timedelta(milliseconds=_integer(payload, SchemaType.INT32))
    ).time(),
    (SchemaType.INT64, TIMESTAMP): lambda payload: (
        _EPOCH + dt.timedelta(milliseconds=_integer(payload, SchemaType.INT64))
    ),
    (SchemaType.BYTES, DECIMAL): lambda payload: payload,
}
