"""The columns for records' fields: names, kinds and defaults, from Connect's schemas and Debezium's named ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from connect.api import DATE, DECIMAL, TIME, TIMESTAMP, DataError, Schema, SchemaType

__all__ = ["ColumnSpec", "spec_of"]


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """A column for a field of records.

    ``kind`` is the name of a primitive type in Connect, or decimal, date, time, timestamp, timestamptz, json, uuid,
    xml. An array has the kind of its items and ``array``. ``unit`` is the unit of a temporal column that arrives as a
    number or text.
    """

    name: str
    kind: str
    optional: bool = True
    key: bool = False
    default: Any = None
    precision: int | None = None
    scale: int = 0
    array: bool = False
    unit: str = ""


_LOGICAL: Final = {DECIMAL: "decimal", DATE: "date", TIME: "time", TIMESTAMP: "timestamp"}
_DEBEZIUM: Final = {
    "io.debezium.time.Date": ("date", "d"),
    "io.debezium.time.Time": ("time", "ms"),
    "io.debezium.time.MicroTime": ("time", "us"),
    "io.debezium.time.NanoTime": ("time", "ns"),
    "io.debezium.time.Timestamp": ("timestamp", "ms"),
    "io.debezium.time.MicroTimestamp": ("timestamp", "us"),
    "io.debezium.time.NanoTimestamp": ("timestamp", "ns"),
    "io.debezium.time.ZonedTimestamp": ("timestamptz", "text"),
    "io.debezium.data.Json": ("json", ""),
    "io.debezium.data.Uuid": ("uuid", ""),
    "io.debezium.data.Xml": ("xml", ""),
}
"""The meaning of Debezium's schema names for a number or a text (debezium.io, JDBC sink, "Data and column types")."""


def spec_of(
    name: str, schema: Schema, *, key: bool = False, debezium: bool = False, timestamp_unit: str = ""
) -> ColumnSpec:
    """The column for a field. ``debezium``: named types are recognized; ``timestamp_unit``: a number or text is an
    instant.

    Raises DataError for a type that no column can hold.
    """
    more: dict[str, Any] = {"optional": schema.optional and not key, "key": key, "default": schema.default}
    if timestamp_unit and schema.type in (SchemaType.INT64, SchemaType.STRING):
        return ColumnSpec(name, "timestamp", unit=timestamp_unit, **more)
    if debezium and schema.name in _DEBEZIUM:
        kind, unit = _DEBEZIUM[schema.name]
        return ColumnSpec(name, kind, unit=unit, **more)
    if schema.name == DECIMAL:
        precision = schema.parameters.get("connect.decimal.precision")
        return ColumnSpec(name, "decimal", precision=int(precision) if precision else None, scale=schema.scale, **more)
    if schema.name in _LOGICAL:
        return ColumnSpec(name, _LOGICAL[schema.name], **more)
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        item = spec_of(name, schema.value_schema, debezium=debezium)
        if not item.array and not item.unit:
            more["default"] = None
            return ColumnSpec(name, item.kind, precision=item.precision, scale=item.scale, array=True, **more)
    elif schema.type not in (SchemaType.STRUCT, SchemaType.MAP):
        return ColumnSpec(name, schema.type.value, **more)
    what = "an array of arrays" if schema.type is SchemaType.ARRAY else f"a {schema.type.value}"
    raise DataError(
        f"field {name!r} is {what}, which no column takes: flatten it with org.apache.kafka.connect.transforms.Flatten$Value "
        "or leave it out with fields.whitelist"
    )
