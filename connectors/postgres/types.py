"""PostgreSQL's types: the schema that Debezium uses for each, and the conversion of the server's text to Arrow columns.

Replication returns text, under the settings in ``SESSION``. A snapshot returns the same text (see ``selected``), except
for types that the driver converts to Arrow without loss. One conversion serves both, so a row looks the same whether it
came from a snapshot or from the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import Schema, SchemaType
from connectors.debezium.envelope import ENUM
from connectors.debezium.values import in_unit
from connectors.postgres import casts, texts
from connectors.postgres.casts import Convert
from connectors.postgres.column_types import ColumnType, precision_and_scale

__all__ = ["SESSION", "Form", "Modes", "form_of", "literals", "selected"]

SESSION: Final = "-c datestyle=ISO -c intervalstyle=iso_8601 -c bytea_output=hex -c timezone=UTC -c extra_float_digits=3 -c lc_monetary=C"
"""Settings of every connection that reads values, as libpq's ``options``."""


@dataclass(frozen=True, slots=True)
class Modes:
    """The configuration's settings for values, in lower case."""

    decimal: str = "precise"
    time: str = "adaptive"
    binary: str = "bytes"
    interval: str = "numeric"
    hstore: str = "json"
    include_unknown: bool = False
    unavailable: str = "__debezium_unavailable_value"


@dataclass(frozen=True, slots=True)
class Form:
    """``unavailable`` is the substitute, in Python's form, for a large value that the log omits."""

    schema: Schema
    convert: Convert
    """Converts a string column, or one as ``selected`` returns it."""
    unavailable: Any = None


def _s(kind: SchemaType, name: str | None = None, **more: Any) -> Schema:
    return Schema(kind, name=name, version=1 if name else None, **more)


_TEXT: Final = frozenset(
    [
        "text",
        "varchar",
        "bpchar",
        "char",
        "name",
        "citext",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
        "int4range",
        "int8range",
        "numrange",
        "tsrange",
        "tstzrange",
        "daterange",
        "int4multirange",
        "int8multirange",
        "nummultirange",
        "tsmultirange",
        "tstzmultirange",
        "datemultirange",
        "pg_lsn",
    ]
)
_NAMED_TEXT: Final = {
    "uuid": "io.debezium.data.Uuid",
    "json": "io.debezium.data.Json",
    "jsonb": "io.debezium.data.Json",
    "xml": "io.debezium.data.Xml",
    "ltree": "io.debezium.data.Ltree",
    "tsvector": "io.debezium.data.Tsvector",
}
_NUMBERS: Final = {
    "int2": (SchemaType.INT16, pa.int16()),
    "int4": (SchemaType.INT32, pa.int32()),
    "int8": (SchemaType.INT64, pa.int64()),
    "oid": (SchemaType.INT64, pa.int64()),
    "float4": (SchemaType.FLOAT32, pa.float32()),
    "float8": (SchemaType.FLOAT64, pa.float64()),
}


def form_of(column: ColumnType, modes: Modes) -> Form | None:
    """The form of a type with a non-optional schema; None where the type is unknown and unknown types are left out."""
    name = column.name
    if column.element is not None:
        return _array(column, modes)
    if name in _NUMBERS:
        kind, arrow = _NUMBERS[name]
        return Form(_s(kind), casts.cast(arrow))
    if name in _TEXT:
        return Form(_s(SchemaType.STRING), casts.same, modes.unavailable)
    if name in _NAMED_TEXT:
        return Form(_s(SchemaType.STRING, _NAMED_TEXT[name]), casts.same, modes.unavailable)
    if column.labels:
        return Form(
            _s(SchemaType.STRING, ENUM, parameters={"allowed": ",".join(column.labels)}), casts.same, modes.unavailable
        )
    makers = {
        "bool": lambda: Form(_s(SchemaType.BOOLEAN), casts.boolean("t")),
        "bytea": lambda: _binary(modes),
        "bit": lambda: _bits(column.modifier),
        "varbit": lambda: _bits(column.modifier if column.modifier > 0 else 2147483647),
        "numeric": lambda: _numeric(column.modifier, modes),
        "money": lambda: _money(modes),
        "date": lambda: _date(modes),
        "time": lambda: _time(column.modifier, modes),
        "timestamp": lambda: _timestamp(column.modifier, modes),
        "timestamptz": lambda: Form(
            _s(SchemaType.STRING, "io.debezium.time.ZonedTimestamp"),
            casts.zoned(column.modifier if column.modifier >= 0 else 6),
            modes.unavailable,
        ),
        "timetz": lambda: Form(
            _s(SchemaType.STRING, "io.debezium.time.ZonedTime"), casts.each(texts.zoned_time, pa.string())
        ),
        "interval": lambda: _interval(modes),
        "hstore": lambda: _hstore(modes),
        "point": _point,
    }
    if name in makers:
        return makers[name]()
    if modes.include_unknown:
        return Form(_s(SchemaType.BYTES), casts.cast(pa.binary()), modes.unavailable.encode())
    return None


def _binary(modes: Modes) -> Form:
    unavailable = modes.unavailable.encode()
    if modes.binary == "bytes":
        return Form(_s(SchemaType.BYTES), casts.binary, unavailable)
    if modes.binary == "hex":
        return Form(_s(SchemaType.STRING), lambda c: pc.utf8_slice_codeunits(c, 2), unavailable.hex())
    encode = texts.to_base64 if modes.binary == "base64" else texts.to_base64_url
    return Form(
        _s(SchemaType.STRING), casts.each(lambda v: encode(texts.from_hex(v)), pa.string()), encode(unavailable)
    )


def _bits(length: int) -> Form:
    if length == 1:
        return Form(_s(SchemaType.BOOLEAN), casts.boolean("1"))
    schema = _s(SchemaType.BYTES, "io.debezium.data.Bits", parameters={"length": str(length)})
    return Form(schema, casts.each(texts.bits, pa.binary()))


def _numeric(modifier: int, modes: Modes) -> Form:
    if modes.decimal == "string":
        return Form(_s(SchemaType.STRING), casts.decimal_text)
    if modes.decimal == "double":
        return Form(_s(SchemaType.FLOAT64), casts.cast(pa.float64()))
    precision = precision_and_scale(modifier)
    if precision is None or not 0 <= precision[1] <= precision[0] <= 76:
        members = {"scale": _s(SchemaType.INT32), "value": _s(SchemaType.BYTES)}
        name = "io.debezium.data.VariableScaleDecimal"
        schema = Schema.struct(members, name=name, version=1, doc="Variable scaled decimal")
        return Form(schema, casts.each(texts.variable_decimal, schema.arrow_type))
    schema = Schema.decimal(precision[1], precision[0])
    return Form(schema, casts.cast(schema.arrow_type, texts.decimal_or_none))


def _money(modes: Modes) -> Form:
    if modes.decimal == "string":
        return Form(_s(SchemaType.STRING), casts.each(lambda v: f"{texts.money(v):f}", pa.string()))
    if modes.decimal == "double":
        return Form(_s(SchemaType.FLOAT64), casts.each(lambda v: float(texts.money(v)), pa.float64()))
    schema = Schema.decimal(2)
    return Form(schema, casts.each(texts.money, schema.arrow_type))


def _date(modes: Modes) -> Form:
    if modes.time == "connect":
        return Form(Schema.date(), lambda c: casts.days(c).view(pa.date32()))
    if modes.time == "isostring":
        return Form(_s(SchemaType.STRING, "io.debezium.time.IsoDate"), casts.each(texts.iso_date, pa.string()))
    return Form(_s(SchemaType.INT32, "io.debezium.time.Date"), casts.days)


def _unit(modifier: int, mode: str) -> str:
    """The unit that a mode uses for a time or timestamp with this many digits after the second."""
    if mode in ("connect", "microseconds", "nanoseconds"):
        return {"connect": "connect", "microseconds": "us", "nanoseconds": "ns"}[mode]
    return "ms" if 0 <= modifier <= 3 else "us"


def _time(modifier: int, modes: Modes) -> Form:
    if modes.time == "isostring":
        return Form(
            _s(SchemaType.STRING, "io.debezium.time.IsoTime"), lambda c: pc.binary_join_element_wise(c, "Z", "")
        )
    unit = "us" if modes.time == "adaptive_time_microseconds" else _unit(modifier, modes.time)
    if unit in ("connect", "ms"):

        def millis(column: pa.Array) -> pa.Array:
            return in_unit(casts.time_micros(column), "ms").cast(pa.int32())

        if unit == "connect":
            return Form(Schema.time(), lambda c: millis(c).view(pa.time32("ms")))
        return Form(_s(SchemaType.INT32, "io.debezium.time.Time"), millis)
    name = "io.debezium.time.MicroTime" if unit == "us" else "io.debezium.time.NanoTime"
    return Form(_s(SchemaType.INT64, name), lambda c: in_unit(casts.time_micros(c), unit))


def _timestamp(modifier: int, modes: Modes) -> Form:
    if modes.time == "isostring":
        return Form(
            _s(SchemaType.STRING, "io.debezium.time.IsoTimestamp"), casts.each(texts.iso_timestamp, pa.string())
        )
    unit = _unit(modifier, modes.time)
    if unit == "connect":
        return Form(
            Schema.timestamp(), lambda c: in_unit(casts.timestamp_micros(c), "ms").view(pa.timestamp("ms", tz="UTC"))
        )
    names = {"ms": "Timestamp", "us": "MicroTimestamp", "ns": "NanoTimestamp"}
    schema = _s(SchemaType.INT64, f"io.debezium.time.{names[unit]}")
    return Form(schema, lambda c: in_unit(casts.timestamp_micros(c), unit))


def _interval(modes: Modes) -> Form:
    if modes.interval == "string":
        return Form(_s(SchemaType.STRING, "io.debezium.time.Interval"), casts.each(texts.interval_text, pa.string()))
    return Form(_s(SchemaType.INT64, "io.debezium.time.MicroDuration"), casts.each(texts.interval_micros, pa.int64()))


def _hstore(modes: Modes) -> Form:
    if modes.hstore == "map":
        schema = Schema.map(_s(SchemaType.STRING), Schema(SchemaType.STRING, optional=True))
        return Form(
            schema,
            casts.each(lambda v: list(texts.hstore(v).items()), schema.arrow_type),
            {modes.unavailable: modes.unavailable},
        )
    return Form(
        _s(SchemaType.STRING, "io.debezium.data.Json"), casts.each(texts.hstore_json, pa.string()), modes.unavailable
    )


def _point() -> Form:
    members = {
        "x": _s(SchemaType.FLOAT64),
        "y": _s(SchemaType.FLOAT64),
        "wkb": Schema(SchemaType.BYTES, optional=True),
        "srid": Schema(SchemaType.INT32, optional=True),
    }
    schema = Schema.struct(members, name="io.debezium.data.geometry.Point", version=1, doc="Geometry (POINT)")
    return Form(schema, casts.each(texts.point, schema.arrow_type))


def _array(column: ColumnType, modes: Modes) -> Form | None:
    assert column.element is not None
    inner = form_of(ColumnType(column.element, column.modifier, column.labels), modes)
    if inner is None:
        return None
    item = inner.schema.as_optional()
    schema = Schema.array(item)

    def convert(values: pa.Array) -> pa.Array:
        offsets: list[int | None] = []
        flat: list[str | None] = []
        for value in values.to_pylist():
            offsets.append(None if value is None else len(flat))
            if value is not None:
                flat += texts.array(value)
        offsets.append(len(flat))
        items = inner.convert(pa.array(flat, pa.string()))
        made = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
        return made.cast(schema.arrow_type)

    return Form(schema, convert, None if inner.unavailable is None else [inner.unavailable])


def literals(form: Form, values: Sequence[str]) -> list[Any]:
    """The Python form of a few values given as the server's text."""
    return list(form.convert(pa.array(values, pa.string())).to_pylist())


_AS_THEY_ARE: Final = frozenset(
    ["bool", "bpchar", "bytea", "date", "float4", "float8", "int2", "int4", "int8", "text", "timestamp", "varchar"]
)
"""Types that the driver converts to Arrow without loss."""
_BY_CAST: Final = frozenset(["interval", "json", "jsonb", "numeric", "time", "timestamptz", "timetz", "uuid"])
"""Types whose cast to text gives the server's output format; that is not so for inet and some others."""


def selected(name: str, column: ColumnType, form: Form) -> str:
    """The expression to select for a column: the column itself, or its text in the server's output format."""
    quoted = '"' + name.replace('"', '""') + '"'
    as_text = form.schema.type is SchemaType.STRING or column.element is not None
    if column.name in _AS_THEY_ARE and (not as_text or column.name in _TEXT):
        return (
            f"{quoted}::{column.name} AS {quoted}"  # no cast at all, but where the rows come from a query of one's own
        )
    if column.name in _BY_CAST:
        return f"{quoted}::text AS {quoted}"
    return f"CASE WHEN {quoted} IS NOT NULL THEN format('%s', {quoted}) END AS {quoted}"
