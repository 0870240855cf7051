"""Texts as values of a schema's types, a column at a time; the rows that do not fit are found and told."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from connect.api import DATE, DECIMAL, TIME, TIMESTAMP, ConnectError, Schema, SchemaType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["TimeFormats", "as_structs", "fitting", "java_format"]

_TOKEN: Final = re.compile(r"''|'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+")
_LETTERS: Final = {
    "yyyy": "%Y",
    "yy": "%y",
    "MMM": "%b",
    "MMMM": "%B",
    "HH": "%H",
    "H": "%H",
    "hh": "%I",
    "h": "%I",
} | {
    letter * width: code
    for letter, code in {"M": "%m", "d": "%d", "m": "%M", "s": "%S", "a": "%p"}.items()
    for width in (1, 2)
}
_MOST_SHOWN: Final = 60


def java_format(pattern: str) -> str:
    """A pattern of SimpleDateFormat as one of strptime. Raises ConnectError for letters that have no counterpart."""
    parts = []
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if token[1] is not None:
            if text not in _LETTERS:
                raise ConnectError(f"{text!r} in {pattern!r} is not supported: use {', '.join(sorted(set(_LETTERS)))}")
            parts.append(_LETTERS[text])
        else:
            literal = "'" if text == "''" else text.removeprefix("'").removesuffix("'").replace("''", "'")
            parts.append(literal.replace("%", "%%"))
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class TimeFormats:
    """How timestamps are written, as strptime says it, beside ISO 8601, which is always read; and the zone of those without one."""

    formats: Sequence[str] = ()
    zone: str = "UTC"


def as_structs(
    columns: Mapping[str, pa.Array], schema: Schema, times: TimeFormats
) -> tuple[pa.StructArray, dict[int, str]]:
    """The rows that fit in the schema's types, and what is wrong with the others, by row.

    Columns that the schema has not are left out, and fields without a column are null.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = len(next(iter(columns.values()))) if columns else 0
    wrong: dict[int, str] = {}
    arrays = []
    for member in schema.fields:
        column = columns.get(member.name)
        made = pa.nulls(rows, member.schema.arrow_type)
        if column is not None:
            made, misfits = _converted(column, member.schema, times)
            for row, error in misfits.items():
                wrong.setdefault(row, f"{member.name}: {error}")
        if not member.schema.optional and made.null_count:
            for row in pc.indices_nonzero(pc.is_null(made)).to_pylist():
                wrong.setdefault(row, f"{member.name} is empty, and the schema does not say that it may be")
        arrays.append(made)
    if wrong:
        kept = fitting(rows, wrong)
        arrays = [array.take(kept) for array in arrays]
    fields = [member.schema.arrow_field(member.name) for member in schema.fields]
    return pa.StructArray.from_arrays(arrays, fields=fields), wrong


def fitting(rows: int, wrong: Collection[int]) -> pa.Array:
    """The indexes of the other rows."""
    import numpy as np
    import pyarrow as pa

    return pa.array(np.delete(np.arange(rows), list(wrong)))


def _converted(column: pa.Array, schema: Schema, times: TimeFormats) -> tuple[pa.Array, dict[int, str]]:
    """A column of bytes or texts in a type; misfits are null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow = schema.arrow_type
    if schema.type is SchemaType.BYTES and schema.name != DECIMAL:
        return column.cast(pa.binary()), {}
    texts, unreadable = _cast_rows(column, lambda part: pc.cast(part, pa.string()), pa.string())
    wrong = dict.fromkeys(unreadable, "not text in the charset of the file")
    if schema.type is SchemaType.STRING:
        return texts, wrong
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    made, misfits = _cast_rows(texts, _caster(schema, arrow, times), arrow)
    kind = (schema.name or schema.type.value).rpartition(".")[2].lower()
    for row in misfits:
        shown = texts[row].as_py()
        wrong.setdefault(row, f"{shown[:_MOST_SHOWN]!r} is no {kind}")
    return made, wrong


def _caster(schema: Schema, arrow: pa.DataType, times: TimeFormats) -> Callable[[pa.Array], pa.Array]:
    import pyarrow as pa
    import pyarrow.compute as pc

    if schema.name == TIMESTAMP:
        return lambda part: _timestamps(part, arrow, times)
    if schema.name in (DATE, TIME, DECIMAL):
        return lambda part: pc.cast(part, arrow)
    if schema.type is SchemaType.BOOLEAN:
        return lambda part: pc.cast(pc.utf8_lower(part), arrow)
    if pa.types.is_nested(arrow):
        raise ConnectError(f"texts cannot be read as {schema.type.value}: only JSON has such fields")
    return lambda part: pc.cast(part, arrow)


def _timestamps(part: pa.Array, arrow: pa.DataType, times: TimeFormats) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    for pattern in times.formats:
        try:
            return pc.assume_timezone(pc.strptime(part, format=pattern, unit="ms"), times.zone).cast(arrow)
        except pa.ArrowInvalid:
            continue
    try:
        return pc.assume_timezone(pc.cast(part, pa.timestamp("us")), times.zone).cast(arrow, safe=False)
    except pa.ArrowInvalid:
        return pc.cast(pc.cast(part, pa.timestamp("us", "UTC")), arrow, safe=False)


def _cast_rows(
    column: pa.Array, cast: Callable[[pa.Array], pa.Array], arrow: pa.DataType
) -> tuple[pa.Array, list[int]]:
    """Cast a column, with null in the rows that fail, which are found by halves."""
    import pyarrow as pa

    try:
        return cast(column), []
    except pa.ArrowInvalid:
        if len(column) == 1:
            return pa.nulls(1, arrow), [0]
    middle = len(column) // 2
    left, left_rows = _cast_rows(column.slice(0, middle), cast, arrow)
    right, right_rows = _cast_rows(column.slice(middle), cast, arrow)
    return pa.concat_arrays([left, right]), [*left_rows, *(row + middle for row in right_rows)]
