"""Default values in the JSON of Avro schemas: numbers, strings, bytes as Latin-1 text."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any, Final

from connect.data.errors import DataError
from connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType

__all__ = ["default_from_avro", "default_to_avro"]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1)
_MILLISECOND: Final = dt.timedelta(milliseconds=1)


def default_to_avro(schema: Schema, value: Any) -> Any:
    """A value in the Python form of its schema, as Avro's JSON."""
    if value is None:
        return None
    if schema.name == DECIMAL:
        number = int(value.scaleb(schema.scale, decimal.Context(prec=100)))
        size = (number + (number < 0)).bit_length() // 8 + 1
        return number.to_bytes(size, "big", signed=True).decode("latin-1")
    if schema.name == DATE:
        return (value - _EPOCH_DAY).days
    if schema.name == TIME:
        return (dt.datetime.combine(_EPOCH_DAY, value, dt.UTC) - _EPOCH) // _MILLISECOND
    if schema.name == TIMESTAMP:
        return (value - _EPOCH) // _MILLISECOND
    if schema.type is SchemaType.BYTES:
        return value.decode("latin-1")
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        return [default_to_avro(schema.value_schema, item) for item in value]
    if schema.type is SchemaType.MAP:
        assert schema.value_schema is not None
        pairs = value.items() if isinstance(value, dict) else value
        return {name: default_to_avro(schema.value_schema, item) for name, item in pairs}
    if schema.type is SchemaType.STRUCT:
        return {member.name: default_to_avro(member.schema, value.get(member.name)) for member in schema.fields}
    return value


def default_from_avro(schema: Schema, value: Any) -> Any:
    """The Python form of a default. Raises DataError if it does not fit the schema."""
    try:
        return _from_avro(schema, value)
    except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise DataError(
            f"default {str(value)[:50]!r} does not fit {schema.name or schema.type.value}: {error}"
        ) from error


def _from_avro(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.name == DECIMAL:
        number = int.from_bytes(value.encode("latin-1"), "big", signed=True)
        return decimal.Decimal(number).scaleb(-schema.scale, decimal.Context(prec=100))
    if schema.name == DATE:
        return _EPOCH_DAY + dt.timedelta(days=value)
    if schema.name == TIME:
        return (_EPOCH + dt.timedelta(milliseconds=value)).time()
    if schema.name == TIMESTAMP:
        return _EPOCH + dt.timedelta(milliseconds=value)
    if schema.type is SchemaType.BYTES:
        return value.encode("latin-1")
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        return [_from_avro(schema.value_schema, item) for item in value]
    if schema.type is SchemaType.MAP:
        assert schema.value_schema is not None
        return {name: _from_avro(schema.value_schema, item) for name, item in value.items()}
    if schema.type is SchemaType.STRUCT:
        return {member.name: _from_avro(member.schema, value.get(member.name)) for member in schema.fields}
    if schema.type in (SchemaType.FLOAT32, SchemaType.FLOAT64):
        return float(value)
    return value
