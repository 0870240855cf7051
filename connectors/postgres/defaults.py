"""Column defaults as Debezium's PostgreSQL connector puts them into schemas.

Literals are used unchanged. Values that the server computes (``nextval``, ``now()``, any function call) appear as the
type's zero value, for those types whose defaults the original reads; other types have no default. Recorded from
Debezium 3.5, scenarios ``made`` and ``counted``.
"""

from __future__ import annotations

import re
from decimal import Context, Decimal
from typing import Any, Final

from connect.api import DataError, SchemaType
from connectors.postgres.column_types import ColumnType, precision_and_scale
from connectors.postgres.types import Form, literals

__all__ = ["default_value"]

_ZEROS: Final = {
    "int2": "0",
    "int4": "0",
    "int8": "0",
    "float4": "0",
    "float8": "0",
    "numeric": "0.0",
    "bool": "f",
    "text": "",
    "varchar": "",
    "bpchar": "",
    "xml": "",
    "bit": "",
    "varbit": "",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "interval": "PT0S",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "json": "{}",
    "jsonb": "{}",
}
"""The types whose defaults are read, with the server's text of the substitute for a computed value."""
_TEMPORAL: Final = frozenset(["date", "time", "timestamp", "timestamptz", "interval"])
_TEXT: Final = frozenset(["text", "varchar", "bpchar", "xml", "json", "jsonb", "uuid"])

_WIDE: Final = Context(prec=1100)
"""Enough digits for any numeric."""

_CALL: Final = re.compile(r"\(?[A-Za-z0-9_.]+\(.*\)")
_QUOTED: Final = re.compile(r"'((?:[^']|'')*)'", re.DOTALL)
_NUMBER: Final = re.compile(r"\(?(-?\d+(?:\.\d+)?)\)?(?:::[\w \"().,]+)?")


def default_value(expression: str, column: ColumnType, form: Form) -> Any:
    """The Python form of a default, from the expression that ``pg_get_expr`` prints; None where there is none."""
    if column.declared or column.element is not None or (column.name not in _ZEROS and not column.labels):
        return None
    if form.schema.type is SchemaType.STRUCT:  # a numeric without a fixed scale
        return None
    try:
        text = _text(expression, column)
        if text is not None and column.name == "numeric":
            text = _scaled(text, column.modifier)
        return None if text is None else literals(form, [text])[0]
    except (DataError, ValueError, ArithmeticError):
        return None


def _text(expression: str, column: ColumnType) -> str | None:
    """The default as the server's text."""
    if _CALL.match(expression):
        return _ZEROS.get(column.name)
    if quoted := _QUOTED.search(expression):
        return quoted[1].replace("''", "'")
    if column.name in _TEMPORAL:  # CURRENT_TIMESTAMP and similar
        return _ZEROS[column.name]
    if column.name in _TEXT:
        return expression
    if column.name == "bool":
        return "t" if expression.lower() == "true" else "f"
    number = _NUMBER.fullmatch(expression)
    return number[1] if number is not None else None


def _scaled(text: str, modifier: int) -> str | None:
    """A number with as many digits after the point as its column has; None for NaN and infinity."""
    number = Decimal(text)
    if not number.is_finite():
        return None
    declared = precision_and_scale(modifier)
    if declared is None or number.as_tuple().exponent == -declared[1]:
        return text
    return f"{number.quantize(Decimal(1).scaleb(-declared[1]), context=_WIDE):f}"
