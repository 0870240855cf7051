"""The schema for a declared type, and the conversion of SQLite's values to its column.

A declared type does not restrict values in SQLite (sqlite.org, "Datatypes In SQLite"): a value with any storage class
is accepted where it can be converted without loss, and otherwise rejected with an error that names it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, Schema, SchemaType
from connectors.debezium.values import in_unit
from connectors.sql.columns import epoch_micros

__all__ = ["Form", "Modes", "form_of", "source_parameters"]

Convert = Callable[[Sequence[Any]], pa.Array]


@dataclass(frozen=True, slots=True)
class Modes:
    """``decimal.handling.mode``, ``time.precision.mode`` and ``binary.handling.mode``, in lower case."""

    decimal: str = "precise"
    time: str = "adaptive"
    binary: str = "bytes"


@dataclass(frozen=True, slots=True)
class Form:
    """A column's non-optional schema, and the conversion of a list of SQLite's values to a column of it.

    ``convert`` raises DataError for a value that the schema cannot represent.
    """

    schema: Schema
    convert: Convert


_DECLARED: Final = re.compile(r"\s*([^(]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*", re.DOTALL)
_NOISE: Final = Decimal("1e-12")
"""The error that arithmetic of doubles leaves, as in 0.1 + 0.2, by their size. SQLite has no other fractions."""
_TIMES: Final = frozenset(["date", "datetime", "timestamp", "time"])


def form_of(declared: str, modes: Modes) -> Form:
    """The form of a declared type: by its name where that is specific, else by SQLite's affinity rules."""
    match = _DECLARED.fullmatch(declared)
    name, first, second = match.groups() if match else (declared, None, None)
    word = name.lower().split(" ")[0] if name else ""
    if word in ("bool", "boolean"):
        return Form(Schema(SchemaType.BOOLEAN), _booleans)
    if word in _TIMES:
        return {"date": _date, "time": _time}.get(word, _timestamp)(modes)
    upper = name.upper()
    if "INT" in upper:
        return Form(Schema(SchemaType.INT64), _integers)
    if any(part in upper for part in ("CHAR", "CLOB", "TEXT", "JSON", "UUID")):
        return Form(Schema(SchemaType.STRING), _texts)
    if "BLOB" in upper or "BINARY" in upper:
        return _binary(modes)
    if any(part in upper for part in ("REAL", "FLOA", "DOUB")):
        return Form(Schema(SchemaType.FLOAT64), _doubles)
    if not name:
        return Form(Schema(SchemaType.STRING), _texts)
    return _numeric(int(first) if first else None, int(second or 0), modes)


def _refused(value: Any, expected: str) -> DataError:
    shown = repr(value) if len(repr(value)) < 40 else f"{type(value).__name__} of length {len(value)}"
    return DataError(f"{shown} is no {expected}")


def _each(read: Callable[[Any], Any], arrow: pa.DataType) -> Convert:
    return lambda values: pa.array([None if v is None else read(v) for v in values], arrow)


def _quick(arrow: pa.DataType, read: Callable[[Any], Any]) -> Convert:
    """Converts all values at once where every value has the expected class; else each with ``read``."""
    slow = _each(read, arrow)

    def convert(values: Sequence[Any]) -> pa.Array:
        try:
            return pa.array(values, arrow)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError):
            return slow(values)

    return convert


def _integer(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+\s*", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    raise _refused(value, "integer")


def _double(value: Any) -> float:
    if isinstance(value, int | float) and float(value) == value:
        return float(value)
    try:
        return float(value) if isinstance(value, str) else float(_integer(value))
    except (ValueError, DataError):
        raise _refused(value, "number") from None


def _text(value: Any) -> str:
    """Texts unchanged, numbers as SQLite prints them; bytes only where they are UTF-8."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise _refused(value, "text") from None
    return str(value)


def _truth(value: Any) -> bool:
    if isinstance(value, str) and value.strip().lower() in ("true", "false", "t", "f", "yes", "no", "y", "n"):
        return value.strip().lower()[0] in "ty"
    return _double(value) != 0


_integers: Final = _quick(pa.int64(), _integer)
_doubles: Final = _quick(pa.float64(), _double)
_texts: Final = _quick(pa.string(), _text)
_booleans: Final = _each(_truth, pa.bool_())


def _raw(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _binary(modes: Modes) -> Form:
    if modes.binary == "bytes":
        return Form(Schema(SchemaType.BYTES), _each(_raw, pa.binary()))
    encode: Callable[[bytes], str] = {
        "hex": bytes.hex,
        "base64": lambda raw: base64.b64encode(raw).decode(),
        "base64-url-safe": lambda raw: base64.urlsafe_b64encode(raw).decode(),
    }[modes.binary]
    return Form(Schema(SchemaType.STRING), _each(lambda value: encode(_raw(value)), pa.string()))


def _decimal(value: Any) -> Decimal:
    """A double becomes the shortest decimal number that converts back to it."""
    try:
        made = Decimal(repr(value) if isinstance(value, float) else str(value).strip())
    except ArithmeticError:
        raise _refused(value, "number") from None
    if isinstance(value, bytes) or not made.is_finite():
        raise _refused(value, "number")
    return made


def _numeric(precision: int | None, scale: int, modes: Modes) -> Form:
    if modes.decimal == "string":
        return Form(Schema(SchemaType.STRING), _each(lambda v: f"{_decimal(v):f}", pa.string()))
    if modes.decimal == "double":
        return Form(Schema(SchemaType.FLOAT64), _doubles)
    if precision is None or not 0 <= scale <= precision <= 76 or not precision:
        members = {"scale": Schema(SchemaType.INT32), "value": Schema(SchemaType.BYTES)}
        name = "io.debezium.data.VariableScaleDecimal"
        schema = Schema.struct(members, name=name, version=1, doc="Variable scaled decimal")
        return Form(schema, _each(lambda v: _scaled(_decimal(v)), schema.arrow_type))
    schema = Schema.decimal(scale, precision)

    unit = Decimal(1).scaleb(-scale)

    def exact(value: Any) -> Decimal:
        made = _decimal(value)
        fitting = made.quantize(unit) if made.adjusted() < precision else made
        if isinstance(value, float) and abs(fitting - made) <= min(unit / 100, abs(made) * _NOISE):
            made = fitting
        if fitting != made or fitting.adjusted() >= precision - scale:
            raise _refused(value, f"number of {precision} digits, {scale} of them after the point")
        return fitting

    return Form(schema, _each(exact, schema.arrow_type))


def _scaled(value: Decimal) -> dict[str, Any]:
    """The unscaled number in as few bytes as possible, including the sign, and the number of digits after the point."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)))
    scale = -int(exponent)
    if scale < 0:
        number, scale = number * 10**-scale, 0
    number = -number if sign else number
    return {"scale": scale, "value": number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)}


def _moment(value: Any) -> str:
    """A text for ``epoch_micros``: integers are milliseconds since 1970, doubles are SQLite's Julian days."""
    if isinstance(value, float):
        return str(round((value - 2440587.5) * 86_400_000))
    return _text(value)


def _micros(values: Sequence[Any]) -> pa.Array:
    texts = pa.array([None if v is None else _moment(v) for v in values], pa.string())
    try:
        return epoch_micros(texts, "UTC").cast(pa.int64())
    except (pa.ArrowInvalid, ValueError) as error:
        raise DataError(f"a value is no date and time: {str(error).splitlines()[0]}") from error


def _named(kind: SchemaType, name: str) -> Schema:
    return Schema(kind, name=f"io.debezium.time.{name}", version=1)


def _iso(micros: pa.Array, pattern: str) -> pa.Array:
    """Text in Java's format: digits after the second in groups of three, as many as needed."""
    text = pc.strftime(micros.cast(pa.timestamp("us")), format=pattern)
    return pc.binary_join_element_wise(pc.replace_substring_regex(text, r"\.?(000)+$", ""), "Z", "")


def _timestamp(modes: Modes) -> Form:
    if modes.time == "isostring":
        return Form(_named(SchemaType.STRING, "IsoTimestamp"), lambda v: _iso(_micros(v), "%Y-%m-%dT%H:%M:%S"))
    if modes.time == "connect":
        schema = Schema.timestamp()
        return Form(schema, lambda v: in_unit(_micros(v), "ms").cast(pa.timestamp("ms")).cast(schema.arrow_type))
    if modes.time == "nanoseconds":
        return Form(_named(SchemaType.INT64, "NanoTimestamp"), lambda v: in_unit(_micros(v), "ns"))
    return Form(_named(SchemaType.INT64, "MicroTimestamp"), _micros)


def _date(modes: Modes) -> Form:
    def days(values: Sequence[Any]) -> pa.Array:
        return pc.floor_temporal(_micros(values).cast(pa.timestamp("us")), unit="day").cast(pa.date32())

    if modes.time == "isostring":
        return Form(
            _named(SchemaType.STRING, "IsoDate"),
            lambda v: pc.binary_join_element_wise(days(v).cast(pa.string()), "Z", ""),
        )
    if modes.time == "connect":
        return Form(Schema.date(), days)
    return Form(_named(SchemaType.INT32, "Date"), lambda v: days(v).cast(pa.int32()))


def _clock(values: Sequence[Any]) -> pa.Array:
    """Microseconds after midnight."""
    texts = [None if v is None else f"1970-01-01 {_text(v)}" for v in values]
    return _micros([t + ":00" if t is not None and t.count(":") == 1 else t for t in texts])


def _time(modes: Modes) -> Form:
    if modes.time == "isostring":
        return Form(_named(SchemaType.STRING, "IsoTime"), lambda v: _iso(_clock(v), "%H:%M:%S"))
    if modes.time == "connect":
        return Form(Schema.time(), lambda v: in_unit(_clock(v), "ms").cast(pa.int32()).cast(pa.time32("ms")))
    if modes.time == "nanoseconds":
        return Form(_named(SchemaType.INT64, "NanoTime"), lambda v: in_unit(_clock(v), "ns"))
    return Form(_named(SchemaType.INT64, "MicroTime"), _clock)


def source_parameters(name: str, declared: str) -> dict[str, str]:
    """The schema parameters that ``column.propagate.source.type`` adds."""
    match = _DECLARED.fullmatch(declared)
    kind, length, scale = match.groups() if match else (declared, None, None)
    made = {"type": kind.upper(), "length": length, "scale": scale, "name": name}
    return {f"__debezium.source.column.{part}": value for part, value in made.items() if value is not None}
