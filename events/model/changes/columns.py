"""Columns of a captured table: converts columns in Debezium's format to fields of a change event.

Columns are Avro with Kafka Connect's and Debezium's names of semantic types (``connect.name``). Values that a
Salesforce field can't represent exactly become text: decimals of more than 15 digits, arrays, structs.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from events.model.changes.fields import Kind

__all__ = ["Column", "column_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS: Final = 86_400_000
_EXACT_DIGITS: Final = 15
"""Decimals of this many digits survive conversion to a double."""


class Column(NamedTuple):
    """A column: the kind of its field, and a conversion of its values, which may raise ValueError."""

    kind: Kind
    value: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def _scaled(factor: int, divisor: int = 1) -> Callable[[int], int]:
    return lambda value: value * factor // divisor


def _instant(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _variable_decimal(value: Mapping[str, Any]) -> str:
    unscaled = int.from_bytes(value["value"], signed=True)
    return f"{Decimal(unscaled).scaleb(-value['scale']):f}"


_NAMED: Final[Mapping[str, Column]] = {
    "org.apache.kafka.connect.data.Date": Column(Kind.DATE, _scaled(_DAY_MS)),
    "org.apache.kafka.connect.data.Time": Column(Kind.TIME, _same),
    "org.apache.kafka.connect.data.Timestamp": Column(Kind.DATE_TIME, _same),
    "io.debezium.time.Date": Column(Kind.DATE, _scaled(_DAY_MS)),
    "io.debezium.time.Time": Column(Kind.TIME, _same),
    "io.debezium.time.MicroTime": Column(Kind.TIME, _scaled(1, 1000)),
    "io.debezium.time.NanoTime": Column(Kind.TIME, _scaled(1, 1_000_000)),
    "io.debezium.time.Timestamp": Column(Kind.DATE_TIME, _same),
    "io.debezium.time.MicroTimestamp": Column(Kind.DATE_TIME, _scaled(1, 1000)),
    "io.debezium.time.NanoTimestamp": Column(Kind.DATE_TIME, _scaled(1, 1_000_000)),
    "io.debezium.time.ZonedTimestamp": Column(Kind.DATE_TIME, _instant),
    "io.debezium.time.IsoTimestamp": Column(Kind.DATE_TIME, _instant),
    "io.debezium.data.VariableScaleDecimal": Column(Kind.TEXT, _variable_decimal),
    "io.debezium.data.Json": Column(Kind.LONG_TEXT, _same),
    "io.debezium.data.Xml": Column(Kind.LONG_TEXT, _same),
}
_PLAIN: Final[Mapping[str, Column]] = {
    "boolean": Column(Kind.BOOLEAN, _same),
    "int": Column(Kind.INTEGER, _same),
    "long": Column(Kind.LONG, _same),
    "float": Column(Kind.DOUBLE, _same),
    "double": Column(Kind.DOUBLE, _same),
    "string": Column(Kind.TEXT, _same),
    "enum": Column(Kind.TEXT, _same),
    "bytes": Column(Kind.LONG_TEXT, lambda value: base64.b64encode(value).decode()),
    "fixed": Column(Kind.LONG_TEXT, lambda value: base64.b64encode(value).decode()),
}


def column_of(avro: Any) -> Column:
    """The column of an Avro type, alone or in a union with null."""
    if isinstance(avro, list):
        members = [member for member in avro if member != "null"]
        return column_of(members[0]) if len(members) == 1 else Column(Kind.LONG_TEXT, _json)
    if not isinstance(avro, Mapping):
        return _PLAIN.get(str(avro), Column(Kind.LONG_TEXT, _json))
    if avro.get("logicalType") == "decimal":
        if int(avro.get("precision", _EXACT_DIGITS + 1)) <= _EXACT_DIGITS:
            return Column(Kind.DOUBLE, float)
        return Column(Kind.TEXT, lambda value: f"{value:f}")
    named = _NAMED.get(str(avro.get("connect.name")))
    return named if named is not None else column_of(str(avro.get("type")))
