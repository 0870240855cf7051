"""Formats values as text, as Kafka Connect writes headers; ``values`` does the reverse.

Source: the class documentation and behaviour of ``org.apache.kafka.connect.data.Values`` (Kafka 4.3). Dates are in UTC;
Kafka Connect uses its machine's time zone.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from collections.abc import Mapping
from typing import Any, Final

from connect.data.errors import DataError
from connect.data.java.calendar import MS_PER_DAY
from connect.data.java.date_format import date_format
from connect.data.java.numbers import decimal_text, float_text
from connect.data.schema import Schema, SchemaType

__all__ = ["time_text", "to_text"]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1)


def to_text(schema: Schema | None, value: Any) -> str | None:
    """The text of a value: strings unchanged, containers in JSON's style, bytes in base64, dates by their precision.

    Raises DataError for a value that has no text.
    """
    return None if value is None else _text(schema, value, embedded=False)


def _text(schema: Schema | None, value: Any, *, embedded: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return float_text(value, bits=32 if schema is not None and schema.type is SchemaType.FLOAT32 else 64)
    if isinstance(value, decimal.Decimal):
        return decimal_text(value)
    if isinstance(value, str):
        return f'"{_escaped(value)}"' if embedded else value
    if isinstance(value, bytes | bytearray | memoryview):
        coded = base64.b64encode(value).decode()
        return f'"{coded}"' if embedded else coded
    if isinstance(value, dt.date | dt.time):
        return time_text(_milliseconds(value))
    if schema is not None and schema.type is SchemaType.STRUCT:
        members = (
            f"{_text(None, member.name, embedded=True)}:{_text(member.schema, _member(member.schema, value.get(member.name)), embedded=True)}"
            for member in schema.fields
        )
        return "{" + ",".join(members) + "}"
    if isinstance(value, Mapping) or (isinstance(value, list) and schema is not None and schema.type is SchemaType.MAP):
        key_schema, value_schema = (schema.key_schema, schema.value_schema) if schema is not None else (None, None)
        pairs = value.items() if isinstance(value, Mapping) else value
        entries = (f"{_text(key_schema, k, embedded=True)}:{_text(value_schema, v, embedded=True)}" for k, v in pairs)
        return "{" + ",".join(entries) + "}"
    if isinstance(value, list | tuple):
        items = schema.value_schema if schema is not None else None
        return "[" + ",".join(_text(items, item, embedded=True) for item in value) + "]"
    raise DataError(f"Failed to serialize unexpected value type {type(value).__name__}: {value}")


def _member(schema: Schema, value: Any) -> Any:
    return schema.default if value is None else value


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _milliseconds(value: dt.date | dt.time) -> int:
    if isinstance(value, dt.datetime):
        return (value - _EPOCH) // dt.timedelta(milliseconds=1)
    if isinstance(value, dt.date):
        return (value - _EPOCH_DAY).days * MS_PER_DAY
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def time_text(ms: int) -> str:
    """A time in the shortest of Connect's three forms that represents it: time of day, date, or both."""
    if ms < MS_PER_DAY:
        return date_format("HH:mm:ss.SSS'Z'").format(ms)
    return date_format("yyyy-MM-dd" if ms % MS_PER_DAY == 0 else "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").format(ms)
