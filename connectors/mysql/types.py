"""Column types: the schema that Debezium uses for each, and the conversion of values to Arrow columns.

A snapshot returns texts, the binary log packed bytes. Each form converts both to the same plain column (``text``,
``log``): whole numbers, decimals, texts, days or microseconds. ``finish`` converts that to the type in the schema. So a
row looks the same whether it came from a snapshot or from the log.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, Schema, SchemaType
from connectors.debezium.envelope import ENUM
from connectors.mysql import temporal
from connectors.mysql.binlog import values
from connectors.mysql.binlog.json import json_text
from connectors.mysql.charsets import decoded
from connectors.mysql.forms import Form, LogColumn, Modes, cast, each, number, same, schema_of
from connectors.mysql.structure import Column

__all__ = ["form_of", "is_text", "words_of"]


def words_of(column: Column) -> tuple[str, bool]:
    """A type's first word, and whether it is unsigned."""
    words = column.type.split(" ")
    return words[0], "UNSIGNED" in words


def is_text(column: Column) -> bool:
    """Whether its values are texts, or labels of an ENUM or SET."""
    return words_of(column)[0] in _TEXTS | {"ENUM", "SET"}


_SIZES: Final = {
    "TINYINT": 1, "INT1": 1, "SMALLINT": 2, "INT2": 2, "MEDIUMINT": 3, "INT3": 3, "MIDDLEINT": 3, "INT": 4, "INTEGER": 4, "INT4": 4,
    "BIGINT": 8, "INT8": 8, "BOOL": 1, "BOOLEAN": 1,
}  # fmt: skip
_TEXTS: Final = frozenset(
    [
        "CHAR",
        "CHARACTER",
        "VARCHAR",
        "TINYTEXT",
        "TEXT",
        "MEDIUMTEXT",
        "LONGTEXT",
        "NCHAR",
        "NVARCHAR",
        "NATIONAL",
        "LONG",
    ]
)
_LARGE: Final = frozenset(["TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "LONG"])
_BINARIES: Final = frozenset(["BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"])
_GEOMETRIES: Final = frozenset(
    [
        "GEOMETRY",
        "LINESTRING",
        "POLYGON",
        "MULTIPOINT",
        "MULTILINESTRING",
        "MULTIPOLYGON",
        "GEOMETRYCOLLECTION",
        "GEOMCOLLECTION",
    ]
)


def form_of(column: Column, modes: Modes) -> Form | None:
    """The form of a column with a non-optional schema; None where the type is unknown and unknown types are left out."""
    word, unsigned = words_of(column)
    if word in _SIZES:
        return _integer(word, unsigned, modes)
    if word in ("FLOAT", "FLOAT4", "DOUBLE", "FLOAT8", "REAL"):
        return _float(column, word)
    if word in ("DECIMAL", "DEC", "FIXED", "NUMERIC"):
        return _decimal(column, modes)
    if column.type == "LONG VARBINARY" or word in _BINARIES or (word in _TEXTS and column.charset == "binary"):
        return _binary(column, modes)
    if word in _TEXTS:
        return _text(column)
    if word in _GEOMETRIES:
        return _geometry("Geometry", "Geometry")
    if word in ("DATE", "TIME", "DATETIME", "TIMESTAMP"):
        return _temporal(column, word, modes)
    makers: dict[str, Callable[[], Form]] = {
        "ENUM": lambda: _enum(column),
        "SET": lambda: _set(column),
        "BIT": lambda: _bit(column),
        "YEAR": _year,
        "JSON": _json,
        "POINT": lambda: _geometry("Point", "Geometry (POINT)"),
    }
    if word in makers:
        return makers[word]()
    if modes.include_unknown:
        return Form(schema_of(SchemaType.BYTES), same, _blob, same)
    return None


def _blob(column: LogColumn) -> pa.Array:
    if column.physical.prefix:
        return values.blobs(column.data, column.cells)
    raise DataError(f"the binary log holds a value of type {column.physical.code} where bytes were expected")


def _integer(word: str, unsigned: bool, modes: Modes) -> Form:
    size = _SIZES[word]

    def log(column: LogColumn) -> pa.Array:
        if column.physical.size not in (1, 2, 3, 4, 8) or column.physical.prefix:
            raise DataError(f"the binary log holds a value of type {column.physical.code} where a number was expected")
        return values.integers(column.numbers, column.cells, column.physical.size, unsigned=unsigned)

    if word in ("BOOL", "BOOLEAN"):
        return Form(schema_of(SchemaType.BOOLEAN), number(pa.int64()), log, lambda c: pc.not_equal(c, 0))
    if size == 8 and unsigned:
        if modes.bigint_unsigned == "precise":
            schema = Schema.decimal(0, 20)
            return Form(
                schema, number(pa.uint64()), log, lambda c: c.cast(pa.decimal128(20, 0)).cast(schema.arrow_type)
            )
        return Form(schema_of(SchemaType.INT64), number(pa.uint64()), log, lambda c: c.view(pa.int64()))
    kinds = {1: SchemaType.INT16, 2: SchemaType.INT16, 3: SchemaType.INT32, 4: SchemaType.INT32, 8: SchemaType.INT64}
    kind = kinds[size]
    if unsigned:
        kind = {2: SchemaType.INT32, 4: SchemaType.INT64}.get(size, kind)
    schema = schema_of(kind)
    return Form(schema, number(pa.int64()), log, cast(schema.arrow_type))


def _float(column: Column, word: str) -> Form:
    def log(column: LogColumn) -> pa.Array:
        if column.physical.size not in (4, 8):
            raise DataError(f"the binary log holds a value of type {column.physical.code} where a float was expected")
        return values.floats(column.numbers, column.cells, column.physical.size)

    if word == "FLOAT" and column.scale is None and (column.length or 0) <= 24:
        return Form(schema_of(SchemaType.FLOAT32), number(pa.float32()), log, cast(pa.float32()))
    if word == "REAL":
        return Form(
            schema_of(SchemaType.FLOAT32), number(pa.float64()), log, lambda c: pc.cast(c, pa.float32(), safe=False)
        )
    plain = (
        pa.float32() if word.startswith("FLOAT") and word != "FLOAT8" and (column.length or 0) <= 24 else pa.float64()
    )
    return Form(schema_of(SchemaType.FLOAT64), number(plain), log, cast(pa.float64()))


def _decimal(column: Column, modes: Modes) -> Form:
    precision, scale = column.length or 10, column.scale or 0
    plain = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)

    def log(column: LogColumn) -> pa.Array:
        if column.physical.code != 246:
            raise DataError(f"the binary log holds a value of type {column.physical.code} where a decimal was expected")
        return values.decimals(column.numbers, column.cells, column.physical)

    if modes.decimal == "string":
        return Form(schema_of(SchemaType.STRING), number(plain), log, each(lambda v: f"{v:f}", pa.string()))
    if modes.decimal == "double":
        return Form(schema_of(SchemaType.FLOAT64), number(plain), log, cast(pa.float64()))
    schema = Schema.decimal(scale, precision)
    return Form(schema, number(plain), log, cast(schema.arrow_type))


def _text(column: Column) -> Form:
    word = words_of(column)[0]

    def log(log_column: LogColumn) -> pa.Array:
        if log_column.physical.code == 245:
            return _json_of_log(log_column)
        return decoded(_blob(log_column), column.charset)

    return Form(schema_of(SchemaType.STRING), cast(pa.string()), log, same, large=word in _LARGE)


def _binary(column: Column, modes: Modes) -> Form:
    length = column.length if column.type == "BINARY" else None

    def log(column: LogColumn) -> pa.Array:
        made = _blob(column)
        if length:  # the log omits trailing zeros
            return pa.array([None if v is None else v.ljust(length, b"\0") for v in made.to_pylist()], pa.binary())
        return made

    large = column.type.endswith("BLOB") or column.type.startswith("LONG")
    if modes.binary == "bytes":
        return Form(schema_of(SchemaType.BYTES), same, log, same, large)
    texts: dict[str, Callable[[bytes], str]] = {
        "hex": bytes.hex,
        "base64": lambda v: base64.b64encode(v).decode(),
        "base64-url-safe": lambda v: base64.urlsafe_b64encode(v).decode(),
    }
    return Form(schema_of(SchemaType.STRING), same, log, each(texts[modes.binary], pa.string()), large)


def _enum(column: Column) -> Form:
    labels = np.array(["", *column.labels], object)

    def log(column: LogColumn) -> pa.Array:
        if column.physical.code != 247:
            raise DataError(f"the binary log holds a value of type {column.physical.code} where an ENUM was expected")
        numbers = values.integers(column.numbers, column.cells, column.physical.size, unsigned=True)
        at = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
        made = labels[np.where(at < len(labels), at, 0)]
        return pa.array(made, pa.string(), mask=column.cells.null if column.cells.null.any() else None)

    schema = schema_of(SchemaType.STRING, ENUM, parameters={"allowed": ",".join(column.labels)})
    return Form(schema, cast(pa.string()), log, same)


def _set(column: Column) -> Form:
    def chosen(number: int) -> str:
        return ",".join(label for i, label in enumerate(column.labels) if number >> i & 1)

    def log(column: LogColumn) -> pa.Array:
        if column.physical.code != 248:
            raise DataError(f"the binary log holds a value of type {column.physical.code} where a SET was expected")
        numbers = values.integers(column.numbers, column.cells, column.physical.size, unsigned=True)
        return each(chosen, pa.string())(numbers)

    schema = schema_of(SchemaType.STRING, "io.debezium.data.EnumSet", parameters={"allowed": ",".join(column.labels)})
    return Form(schema, cast(pa.string()), log, same)


def _bit(column: Column) -> Form:
    length = column.length or 1
    size = (length + 7) // 8

    def log(column: LogColumn) -> pa.Array:
        if column.physical.code != 16:
            raise DataError(f"the binary log holds a value of type {column.physical.code} where bits were expected")
        return values.bits_of(column.numbers, column.cells, column.physical.size)

    def text(column: pa.Array) -> pa.Array:
        if pa.types.is_string(column.type):  # a default: digits
            return each(lambda v: int(v, 2), pa.uint64())(column)
        return each(lambda v: int.from_bytes(v, "big"), pa.uint64())(column)

    if length == 1:
        return Form(schema_of(SchemaType.BOOLEAN), text, log, lambda c: pc.not_equal(c, pa.scalar(0, pa.uint64())))
    schema = schema_of(SchemaType.BYTES, "io.debezium.data.Bits", parameters={"length": str(length)})
    return Form(schema, text, log, each(lambda v: v.to_bytes(size, "little"), pa.binary()))


def _year() -> Form:
    def log(column: LogColumn) -> pa.Array:
        return values.years(column.numbers, column.cells)

    return Form(schema_of(SchemaType.INT32, "io.debezium.time.Year"), number(pa.int64()), log, cast(pa.int32()))


def _json_of_log(column: LogColumn) -> pa.Array:
    blobs = values.blobs(column.data, column.cells)
    return each(json_text, pa.string())(blobs)


def _json() -> Form:
    def log(column: LogColumn) -> pa.Array:
        if column.physical.code == 245:  # MySQL's own form; MariaDB has it as text
            return _json_of_log(column)
        return decoded(_blob(column), "utf8mb4")

    return Form(schema_of(SchemaType.STRING, "io.debezium.data.Json"), cast(pa.string()), log, same, large=True)


def _geometry(name: str, doc: str) -> Form:
    wkb = schema_of(SchemaType.BYTES)
    srid = schema_of(SchemaType.INT32, optional=True)
    members: dict[str, Schema] = {"wkb": wkb, "srid": srid}
    if name == "Point":
        coordinate = schema_of(SchemaType.FLOAT64)
        members = {"x": coordinate, "y": coordinate, "wkb": wkb.as_optional(), "srid": srid}
    schema = Schema.struct(members, name=f"io.debezium.data.geometry.{name}", version=1, doc=doc)

    def read(raw: bytes) -> dict[str, Any]:
        if len(raw) < 9:
            raise DataError("a geometry ends in the middle of its head")
        number = int.from_bytes(raw[:4], "little")
        made: dict[str, Any] = {"wkb": raw[4:], "srid": number or None}
        if name == "Point":
            if len(raw) < 25:
                raise DataError("a point ends in the middle of its coordinates")
            order = "little" if raw[4] else "big"
            pair = np.frombuffer(raw[9:25], "<f8" if order == "little" else ">f8")
            made |= {"x": float(pair[0]), "y": float(pair[1])}
        return made

    return Form(schema, same, _blob, each(read, schema.arrow_type), large=True)


def _temporal(column: Column, word: str, modes: Modes) -> Form:
    """``length`` of such a column is the number of digits after the second."""
    digits = column.length or 0

    def expected(column: LogColumn, *codes: int) -> None:
        if column.physical.code not in codes:
            raise DataError(f"the binary log holds a value of type {column.physical.code} where a {word} was expected")

    if word == "DATE":

        def date(column: LogColumn) -> pa.Array:
            expected(column, 10, 14)
            return values.dates(column.numbers, column.cells)

        schema, finish = temporal.date_form(modes.time)
        return Form(schema, temporal.days_of_text, date, temporal.with_years(finish, temporal.DAY, modes.adjust_years))
    if word == "TIME":

        def time(column: LogColumn) -> pa.Array:
            expected(column, 11, 19)
            return values.times(column.numbers, column.cells, column.physical)

        schema, finish = temporal.time_form(modes.time)
        return Form(schema, temporal.clock_of_text, time, finish)
    if word == "DATETIME":

        def datetime(column: LogColumn) -> pa.Array:
            expected(column, 12, 18)
            return values.datetimes(column.numbers, column.cells, column.physical)

        schema, finish = temporal.datetime_form(digits, modes.time)
        return Form(
            schema, temporal.micros_of_text, datetime, temporal.with_years(finish, temporal.MICRO, modes.adjust_years)
        )

    def timestamp(column: LogColumn) -> pa.Array:
        expected(column, 7, 17)
        return values.timestamps(column.numbers, column.cells, column.physical)

    schema, finish = temporal.timestamp_form(digits)
    return Form(schema, temporal.micros_of_text, timestamp, finish)
