"""PostgreSQL's types: the schema Debezium gives each, and how columns of the server's text become Arrow columns of it.

Snapshot (COPY) and replication (pgoutput) deliver the same text, made under ``SESSION``; so one conversion serves both, and a
row looks the same whichever way it came. Whole columns are cast by Arrow; what it cannot read (years before Christ, infinity)
is read value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, Schema, SchemaType
from connectors.debezium.envelope import ENUM
from connectors.postgres import texts

__all__ = ["SESSION", "ColumnType", "Form", "Modes", "form_of", "literals", "source_parameters", "text_only", "zero_of"]

SESSION: Final = "-c datestyle=ISO -c intervalstyle=iso_8601 -c bytea_output=hex -c timezone=UTC -c extra_float_digits=3 -c lc_monetary=C"
"""Settings of every connection that values are read over, as libpq's ``options``."""

Convert: TypeAlias = Callable[[pa.Array], pa.Array]
"""A string column to a column of the schema's type."""


@dataclass(frozen=True, slots=True)
class Modes:
    """What the configuration says of values, lower case."""

    decimal: str = "precise"
    time: str = "adaptive"
    binary: str = "bytes"
    interval: str = "numeric"
    hstore: str = "json"
    include_unknown: bool = False
    unavailable: str = "__debezium_unavailable_value"


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type as the catalog has it; a domain's is that of what it restricts. ``element`` is an array's."""

    name: str
    modifier: int = -1
    labels: tuple[str, ...] = ()
    element: str | None = None
    declared: str = ""
    """The name the column was declared with: a domain's own."""


@dataclass(frozen=True, slots=True)
class Form:
    """``unavailable`` stands, in Python's form, for a large value that the log does not repeat."""

    schema: Schema
    convert: Convert
    unavailable: Any = None


def _s(kind: SchemaType, name: str | None = None, **more: Any) -> Schema:
    return Schema(kind, name=name, version=1 if name else None, **more)


def _each(read: Callable[[str], Any], arrow: pa.DataType) -> Convert:
    """Value by value, nulls kept."""
    return lambda column: pa.array([None if v is None else read(v) for v in column.to_pylist()], arrow)


def _cast(arrow: pa.DataType, slow: Callable[[str], Any] | None = None) -> Convert:
    """By Arrow; should it refuse a value, by ``slow``."""

    def convert(column: pa.Array) -> pa.Array:
        try:
            return pc.cast(column, arrow)
        except pa.ArrowInvalid as error:
            if slow is None:
                raise DataError(str(error)) from error
            return _each(slow, arrow)(column)

    return convert


def _same(column: pa.Array) -> pa.Array:
    return column


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
    """The form of a type, its schema not optional; None where it has none and unknown types are left out."""
    name = column.name
    if column.element is not None:
        return _array(column, modes)
    if name in _NUMBERS:
        kind, arrow = _NUMBERS[name]
        return Form(_s(kind), _cast(arrow))
    if name in _TEXT:
        return Form(_s(SchemaType.STRING), _same, modes.unavailable)
    if name in _NAMED_TEXT:
        return Form(_s(SchemaType.STRING, _NAMED_TEXT[name]), _same, modes.unavailable)
    if column.labels:
        return Form(
            _s(SchemaType.STRING, ENUM, parameters={"allowed": ",".join(column.labels)}), _same, modes.unavailable
        )
    makers = {
        "bool": lambda: Form(_s(SchemaType.BOOLEAN), lambda c: pc.equal(c, "t")),
        "bytea": lambda: _binary(modes),
        "bit": lambda: _bits(column.modifier),
        "varbit": lambda: _bits(column.modifier if column.modifier > 0 else 2147483647),
        "numeric": lambda: _numeric(column.modifier, modes),
        "money": lambda: _money(modes),
        "date": lambda: _date(modes),
        "time": lambda: _time(column.modifier, modes),
        "timestamp": lambda: _timestamp(column.modifier, modes),
        "timestamptz": lambda: Form(
            _s(SchemaType.STRING, "io.debezium.time.ZonedTimestamp"), _zoned, modes.unavailable
        ),
        "timetz": lambda: Form(
            _s(SchemaType.STRING, "io.debezium.time.ZonedTime"), _each(texts.zoned_time, pa.string())
        ),
        "interval": lambda: _interval(modes),
        "hstore": lambda: _hstore(modes),
        "point": _point,
    }
    if name in makers:
        return makers[name]()
    if modes.include_unknown:
        return Form(_s(SchemaType.BYTES), _cast(pa.binary()), modes.unavailable.encode())
    return None


def _binary(modes: Modes) -> Form:
    unavailable = modes.unavailable.encode()
    if modes.binary == "bytes":
        return Form(_s(SchemaType.BYTES), _each(texts.from_hex, pa.binary()), unavailable)
    if modes.binary == "hex":
        return Form(_s(SchemaType.STRING), lambda c: pc.utf8_slice_codeunits(c, 2), unavailable.hex())
    encode = texts.to_base64 if modes.binary == "base64" else texts.to_base64_url
    return Form(_s(SchemaType.STRING), _each(lambda v: encode(texts.from_hex(v)), pa.string()), encode(unavailable))


def _bits(length: int) -> Form:
    if length == 1:
        return Form(_s(SchemaType.BOOLEAN), lambda c: pc.equal(c, "1"))
    schema = _s(SchemaType.BYTES, "io.debezium.data.Bits", parameters={"length": str(length)})
    return Form(schema, _each(texts.bits, pa.binary()))


def precision_and_scale(modifier: int) -> tuple[int, int] | None:
    """Of a numeric's type modifier; None where it has none."""
    if modifier < 4:
        return None
    packed = modifier - 4
    return packed >> 16, ((packed & 0x7FF) ^ 1024) - 1024


def _numeric(modifier: int, modes: Modes) -> Form:
    if modes.decimal == "string":
        return Form(_s(SchemaType.STRING), _same)
    if modes.decimal == "double":
        return Form(_s(SchemaType.FLOAT64), _cast(pa.float64()))
    given = precision_and_scale(modifier)
    if given is None or not 0 <= given[1] <= given[0] <= 76:
        members = {"scale": _s(SchemaType.INT32), "value": _s(SchemaType.BYTES)}
        name = "io.debezium.data.VariableScaleDecimal"
        schema = Schema.struct(members, name=name, version=1, doc="Variable scaled decimal")
        return Form(schema, _each(texts.variable_decimal, schema.arrow_type))
    schema = Schema.decimal(given[1], given[0])
    return Form(schema, _cast(schema.arrow_type, texts.decimal_or_none))


def _money(modes: Modes) -> Form:
    if modes.decimal == "string":
        return Form(_s(SchemaType.STRING), _each(lambda v: f"{texts.money(v):f}", pa.string()))
    if modes.decimal == "double":
        return Form(_s(SchemaType.FLOAT64), _each(lambda v: float(texts.money(v)), pa.float64()))
    schema = Schema.decimal(2)
    return Form(schema, _each(texts.money, schema.arrow_type))


def _integer(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    return column.view(arrow)


def _date(modes: Modes) -> Form:
    days = _cast(pa.date32(), texts.days)
    if modes.time == "connect":
        return Form(Schema.date(), days)
    if modes.time == "isostring":
        return Form(_s(SchemaType.STRING, "io.debezium.time.IsoDate"), _each(texts.iso_date, pa.string()))
    return Form(_s(SchemaType.INT32, "io.debezium.time.Date"), lambda c: _integer(days(c), pa.int32()))


def _unit(modifier: int, mode: str) -> str:
    """The unit that a mode gives a time or timestamp of so many digits after the second."""
    if mode in ("connect", "microseconds", "nanoseconds"):
        return {"connect": "connect", "microseconds": "us", "nanoseconds": "ns"}[mode]
    return "ms" if 0 <= modifier <= 3 else "us"


def _scaled(micros: Convert, unit: str) -> Convert:
    """Microseconds (int64) to another unit, rounded down."""
    if unit == "ms":
        return lambda c: _divided(micros(c))
    if unit == "ns":
        return lambda c: _times_thousand(micros(c))
    return micros


def _divided(column: pa.Array) -> pa.Array:
    import numpy as np

    if column.null_count:
        return pa.array([None if v is None else v // 1000 for v in column.to_pylist()], pa.int64())
    return pa.array(np.floor_divide(column.to_numpy(zero_copy_only=False), 1000), pa.int64())


def _times_thousand(column: pa.Array) -> pa.Array:
    try:
        return pc.multiply_checked(column, 1000)
    except pa.ArrowInvalid:
        low, high = -(2**63), 2**63 - 1
        return pa.array([None if v is None else min(max(v * 1000, low), high) for v in column.to_pylist()], pa.int64())


def _time_micros(column: pa.Array) -> pa.Array:
    try:
        return pc.cast(column, pa.time64("us")).view(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _each(texts.time_micros, pa.int64())(column)


def _timestamp_micros(column: pa.Array) -> pa.Array:
    try:
        return pc.cast(column, pa.timestamp("us")).view(pa.int64())
    except pa.ArrowInvalid:
        return _each(texts.timestamp_micros, pa.int64())(column)


def _time(modifier: int, modes: Modes) -> Form:
    if modes.time == "isostring":
        return Form(
            _s(SchemaType.STRING, "io.debezium.time.IsoTime"), lambda c: pc.binary_join_element_wise(c, "Z", "")
        )
    unit = "us" if modes.time == "adaptive_time_microseconds" else _unit(modifier, modes.time)
    if unit in ("connect", "ms"):
        millis = _scaled(_time_micros, "ms")
        if unit == "connect":
            return Form(Schema.time(), lambda c: pc.cast(millis(c), pa.int32()).view(pa.time32("ms")))
        return Form(_s(SchemaType.INT32, "io.debezium.time.Time"), lambda c: pc.cast(millis(c), pa.int32()))
    name = "io.debezium.time.MicroTime" if unit == "us" else "io.debezium.time.NanoTime"
    return Form(_s(SchemaType.INT64, name), _scaled(_time_micros, unit))


def _timestamp(modifier: int, modes: Modes) -> Form:
    if modes.time == "isostring":
        return Form(_s(SchemaType.STRING, "io.debezium.time.IsoTimestamp"), _each(texts.iso_timestamp, pa.string()))
    unit = _unit(modifier, modes.time)
    if unit == "connect":
        millis = _scaled(_timestamp_micros, "ms")
        return Form(Schema.timestamp(), lambda c: millis(c).view(pa.timestamp("ms", tz="UTC")))
    names = {"ms": "Timestamp", "us": "MicroTimestamp", "ns": "NanoTimestamp"}
    return Form(_s(SchemaType.INT64, f"io.debezium.time.{names[unit]}"), _scaled(_timestamp_micros, unit))


def _zoned(column: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(column, "BC|^[0-9]{5}")).as_py():
        return _each(texts.zoned_timestamp, pa.string())(column)
    iso = pc.replace_substring(column, " ", "T", max_replacements=1)
    return pc.replace_substring_regex(iso, r"\+00$", "Z")


def _interval(modes: Modes) -> Form:
    if modes.interval == "string":
        return Form(_s(SchemaType.STRING, "io.debezium.time.Interval"), _each(texts.interval_text, pa.string()))
    return Form(_s(SchemaType.INT64, "io.debezium.time.MicroDuration"), _each(texts.interval_micros, pa.int64()))


def _hstore(modes: Modes) -> Form:
    if modes.hstore == "map":
        schema = Schema.map(_s(SchemaType.STRING), Schema(SchemaType.STRING, optional=True))
        return Form(
            schema,
            _each(lambda v: list(texts.hstore(v).items()), schema.arrow_type),
            {modes.unavailable: modes.unavailable},
        )
    return Form(
        _s(SchemaType.STRING, "io.debezium.data.Json"), _each(texts.hstore_json, pa.string()), modes.unavailable
    )


def _point() -> Form:
    members = {
        "x": _s(SchemaType.FLOAT64),
        "y": _s(SchemaType.FLOAT64),
        "wkb": Schema(SchemaType.BYTES, optional=True),
        "srid": Schema(SchemaType.INT32, optional=True),
    }
    schema = Schema.struct(members, name="io.debezium.data.geometry.Point", version=1, doc="Geometry (POINT)")
    return Form(schema, _each(texts.point, schema.arrow_type))


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


def source_parameters(name: str, column: ColumnType) -> dict[str, str]:
    """What ``column.propagate.source.type`` adds to a schema."""
    length, scale = _length_and_scale(column.element or column.name, column.modifier)
    declared = (column.declared or column.name).upper()
    made = {"__debezium.source.column.type": declared, "__debezium.source.column.length": str(length)}
    if scale is not None:
        made["__debezium.source.column.scale"] = str(scale)
    return made | {"__debezium.source.column.name": name}


_LENGTHS: Final = {
    "int2": (5, 0), "int4": (10, 0), "int8": (19, 0), "oid": (10, 0), "float4": (8, 8), "float8": (17, 17), "bool": (1, 0),
    "char": (1, 0), "date": (13, 0), "interval": (49, 6),
}  # fmt: skip
_CLOCKS: Final = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}


def _length_and_scale(name: str, modifier: int) -> tuple[int, int | None]:
    if name in _LENGTHS:
        return _LENGTHS[name]
    if name in _CLOCKS:
        digits = modifier if modifier >= 0 else 6
        return _CLOCKS[name] + (digits + 1 if digits else 0), digits
    if name == "numeric":
        return precision_and_scale(modifier) or (0, None)
    if name in ("varchar", "bpchar") and modifier > 4:
        return modifier - 4, 0
    if name in ("bit", "varbit") and modifier > 0:
        return modifier, 0
    return 2147483647, 0


def zero_of(schema: Schema) -> Any:
    """What stands in a required field for a value that the log does not have: the type's nothing, as Debezium writes it."""
    if schema.default is not None:
        return schema.default
    match schema.type:
        case SchemaType.STRING:
            return ""
        case SchemaType.BOOLEAN:
            return False
        case SchemaType.BYTES:
            return Decimal(0).scaleb(-schema.scale) if "scale" in schema.parameters else b""
        case SchemaType.ARRAY | SchemaType.MAP:
            return []
        case SchemaType.STRUCT:
            return {f.name: None if f.schema.optional else zero_of(f.schema) for f in schema.fields}
    return 0


def text_only(change: Callable[[str], str], form: Form, parameters: Mapping[str, str]) -> Form:
    """``change`` done to a form's values, where they are text; the schema tells of it by its parameters."""
    if form.schema.type is not SchemaType.STRING:
        return form
    inner = form.convert
    schema = replace(form.schema, parameters={**form.schema.parameters, **parameters})
    return Form(schema, lambda c: _each(change, pa.string())(inner(c)), form.unavailable)


def literals(form: Form, values: Sequence[str]) -> list[Any]:
    """The Python form of a few values of the server's text."""
    return list(form.convert(pa.array(values, pa.string())).to_pylist())
