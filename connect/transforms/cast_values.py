"""Casts one value to another type, by the rules of Java's numbers and strings."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import re
from typing import Any, Final

from connect.api import DataError, Schema, SchemaType
from connect.data.java.calendar import MS_PER_DAY
from connect.data.java.numbers import (
    INTEGER_BITS,
    decimal_text,
    float_text,
    narrowed,
    saturated,
    single,
    single_of_integer,
)
from connect.data.java.value_texts import time_text

__all__ = ["INPUTS", "cast_value", "checked_input"]

INPUTS: Final = (
    SchemaType.INT8,
    SchemaType.INT16,
    SchemaType.INT32,
    SchemaType.INT64,
    SchemaType.FLOAT32,
    SchemaType.FLOAT64,
    SchemaType.BOOLEAN,
    SchemaType.STRING,
    SchemaType.BYTES,
)
_PYTHON: Final = {
    bool: SchemaType.BOOLEAN,
    int: SchemaType.INT64,
    float: SchemaType.FLOAT64,
    str: SchemaType.STRING,
    list: SchemaType.ARRAY,
    dict: SchemaType.MAP,
}
_INTEGER: Final = re.compile(r"[+-]?\d+")
_FLOAT: Final = re.compile(
    r"[\x00-\x20]*([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?))[\x00-\x20]*"
)
_HEX_FLOAT: Final = re.compile(
    r"[\x00-\x20]*([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)[fFdD]?[\x00-\x20]*"
)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1)


def checked_input(kind: SchemaType) -> None:
    """Raises DataError for a type that can't be cast."""
    if kind not in INPUTS:
        names = ", ".join(input_type.name for input_type in INPUTS)
        raise DataError(f"Cast transformation does not support casting from {kind.name}; supported types are [{names}]")


def cast_value(schema: Schema | None, value: Any, target: SchemaType) -> Any:
    """A value in its schema's Python form (None: JSON's) as ``target``. Raises DataError."""
    if value is None:
        return None
    checked_input(_PYTHON[type(value)] if schema is None else schema.type)
    if target is SchemaType.STRING:
        return _text(schema, value)
    if isinstance(value, bytes):
        raise DataError("Unexpected type in Cast transformation: class [B")
    if isinstance(value, str):
        return _of_text(value, target)
    number = _number_of(value)
    if target is SchemaType.BOOLEAN:
        return number if isinstance(number, bool) else _long(number) != 0
    if target is SchemaType.FLOAT64:
        return float(number)
    if target is SchemaType.FLOAT32:
        return single_of_integer(number) if isinstance(number, int) else single(float(number))
    bits = INTEGER_BITS[target.value]
    return saturated(number, bits) if isinstance(number, float) else narrowed(int(number), bits)


def _number_of(value: Any) -> Any:
    """Dates, times and timestamps as their stored numbers; others unchanged."""
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) // dt.timedelta(milliseconds=1)
    if isinstance(value, dt.date):
        return (value - _EPOCH_DAY).days
    if isinstance(value, dt.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    return value


def _long(number: Any) -> int:
    return saturated(number, 64) if isinstance(number, float) else narrowed(int(number), 64)


def _text(schema: Schema | None, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime | dt.time):
        return time_text(_number_of(value))
    if isinstance(value, dt.date):
        return time_text(_number_of(value) * MS_PER_DAY)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        return float_text(value, bits=32 if schema is not None and schema.type is SchemaType.FLOAT32 else 64)
    return decimal_text(value) if isinstance(value, decimal.Decimal) else str(value)


def _of_text(text: str, target: SchemaType) -> Any:
    if target is SchemaType.BOOLEAN:
        return text.lower() == "true"
    if target in (SchemaType.FLOAT32, SchemaType.FLOAT64):
        number = _float(text)
        if number is not None:
            return number if target is SchemaType.FLOAT64 else single(number)
    elif _INTEGER.fullmatch(text) and len(text) < 40:
        whole = int(text)
        if narrowed(whole, INTEGER_BITS[target.value]) == whole:
            return whole
    raise DataError(f"Value ({text}) was out of range for requested data type")


def _float(text: str) -> float | None:
    if matched := _FLOAT.fullmatch(text):
        digits = matched[1]
        return float(digits if digits[-1] in "Ny" else digits.rstrip("fFdD"))
    if matched := _HEX_FLOAT.fullmatch(text):
        try:
            return float.fromhex(matched[1])
        except OverflowError:
            return float("-inf" if matched[1].startswith("-") else "inf")
    return None
