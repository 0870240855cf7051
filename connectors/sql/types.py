"""Which Connect schema a database column gets, from the type that SQLAlchemy reflected.

The mapping is the JDBC source's, with these differences, each because the original loses data there: all of SQLite's
integers are int64 and its reals float64, as SQLite stores them; a PostgreSQL ``numeric`` without precision keeps 18
digits after the point (a value with more is an error) where the original rounds to whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import types
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.sql.sqltypes import _Binary

from connect.api import Schema, SchemaType

__all__ = ["UNBOUNDED_SCALE", "TypeOptions", "schema_of"]

UNBOUNDED_SCALE: Final = 18
"""Digits after the point of a number whose column declares neither precision nor scale."""


@dataclass(frozen=True, slots=True)
class TypeOptions:
    """``numeric``: none, precision_only, best_fit or best_fit_eager_double; ``timestamps``: the JDBC source's
    ``timestamp.granularity``; ``wide``: SQLite, where a declared type does not restrict values.
    """

    numeric: str = "none"
    timestamps: str = "connect_logical"
    wide: bool = False


def schema_of(kind: types.TypeEngine[Any], *, optional: bool, options: TypeOptions) -> Schema | None:
    """The schema of a column of this type; None for a type that Connect's model cannot represent."""
    if isinstance(kind, postgresql.DOMAIN):
        return schema_of(kind.data_type, optional=optional, options=options)
    if isinstance(kind, types.ARRAY):
        return _array(kind, optional, options)
    made = next((make(kind, options) for base, make in _RULES if isinstance(kind, base)), None)
    return made.as_optional(optional) if made is not None else None


def _array(kind: types.ARRAY[Any], optional: bool, options: TypeOptions) -> Schema | None:
    """Arrays of one dimension; ``timestamp.granularity`` does not apply to items, so those that are timestamps always
    have Connect's schema.
    """
    items = schema_of(kind.item_type, optional=True, options=options)
    plain = options.timestamps == "connect_logical" or not isinstance(kind.item_type, types.DateTime)
    if items is None or not plain or not isinstance(kind.item_type, _ITEMS):
        return None
    return Schema.array(items, optional=optional)


def _integer(kind: Any, options: TypeOptions) -> Schema:
    """An unsigned type uses the next larger one; there is none above BIGINT, so a value beyond int64 is an error."""
    unsigned = bool(getattr(kind, "unsigned", False))
    if options.wide or isinstance(kind, types.BigInteger):
        return Schema(SchemaType.INT64)
    if isinstance(kind, mysql.TINYINT):
        return Schema(SchemaType.INT16 if unsigned else SchemaType.INT8)
    if isinstance(kind, types.SmallInteger):
        return Schema(SchemaType.INT32 if unsigned else SchemaType.INT16)
    return Schema(SchemaType.INT64 if unsigned else SchemaType.INT32)


def _bits(kind: Any, _options: TypeOptions) -> Schema:
    """MySQL's BIT(n): the smallest integer type that holds n bits and a sign."""
    length = kind.length or 1
    for bound, made in ((7, SchemaType.INT8), (15, SchemaType.INT16), (31, SchemaType.INT32)):
        if length <= bound:
            return Schema(made)
    return Schema(SchemaType.INT64)


def _float(kind: Any, options: TypeOptions) -> Schema:
    small = isinstance(kind, types.REAL | mysql.FLOAT) and not options.wide
    return Schema(SchemaType.FLOAT32 if small else SchemaType.FLOAT64)


def _numeric(kind: Any, options: TypeOptions) -> Schema:
    precision, scale = kind.precision, kind.scale
    if precision is None:
        return Schema(SchemaType.FLOAT64) if options.wide else Schema.decimal(UNBOUNDED_SCALE)
    scale = scale or 0
    whole = scale <= 0 if options.numeric.startswith("best_fit") else scale == 0
    if options.numeric != "none" and whole and precision < 19:
        return Schema(_smallest_integer(precision))
    fits_double = precision < 19 or options.numeric == "best_fit_eager_double"
    if options.numeric.startswith("best_fit") and scale > 0 and fits_double:
        return Schema(SchemaType.FLOAT64)
    return Schema.decimal(scale, max(precision, scale, 1))


def _smallest_integer(digits: int) -> SchemaType:
    for bound, kind in ((2, SchemaType.INT8), (4, SchemaType.INT16), (9, SchemaType.INT32)):
        if digits <= bound:
            return kind
    return SchemaType.INT64


def _timestamp(_kind: Any, options: TypeOptions) -> Schema:
    if options.timestamps == "connect_logical":
        return Schema.timestamp(is_java_sql=True)
    return Schema(SchemaType.INT64 if options.timestamps.endswith("_long") else SchemaType.STRING)


def _time(kind: Any, _options: TypeOptions) -> Schema | None:
    """Connect's model cannot represent a time of day with an offset."""
    return None if kind.timezone else Schema.time(is_java_sql=True)


def _always(schema: Schema) -> Callable[[Any, TypeOptions], Schema | None]:
    return lambda _kind, _options: schema


_RULES: Final[tuple[tuple[Any, Callable[[Any, TypeOptions], Schema | None]], ...]] = (
    (types.Boolean, _always(Schema(SchemaType.BOOLEAN))),
    (types.Integer, _integer),
    (types.Float, _float),
    (types.Numeric, _numeric),
    (types.DateTime, _timestamp),
    (types.Date, _always(Schema.date(is_java_sql=True))),
    (types.Time, _time),
    ((types.String, types.Uuid, types.JSON), _always(Schema(SchemaType.STRING))),
    (_Binary, _always(Schema(SchemaType.BYTES))),
    (mysql.BIT, _bits),
    (mysql.YEAR, _always(Schema.date(is_java_sql=True))),
    (postgresql.OID, _always(Schema(SchemaType.INT64))),
    (postgresql.MONEY, _always(Schema(SchemaType.FLOAT64))),
)
"""Searched in order; the first matching class is used."""

_ITEMS: Final = (
    *(types.Boolean, types.Integer, types.Float, types.Numeric, types.String, types.Uuid, types.JSON, _Binary),
    *(types.Date, types.Time, types.DateTime),
)
