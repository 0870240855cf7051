"""Converts columns to JSON texts, in Kafka Connect's JSON form of its types; ``json_values`` does the reverse.

Writing is columnar at any nesting: Arrow joins the texts of the parts, without a Python call per row (except for
base64: bytes and decimals in that form).
"""

from __future__ import annotations

import base64
import decimal
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.data.defaults import with_default
from connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType
from connect.data.text_columns import Piece, joined, joined_items
from tidegate.kit.arrow import is_one_value

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

__all__ = ["is_choice", "json_texts", "text_of"]

ONE_OF: Final = "io.confluent.connect.json.OneOf"
_PAIRED: Final = re.compile("[\U00010000-\U0010ffff]")
_FOUR_BYTES: Final = 0xF0
"""In UTF-8 such a character begins with this byte or a higher one."""
GENERALIZED_UNION: Final = "org.apache.kafka.connect.data.Union"


class _Style(NamedTuple):
    """How columns are written."""

    numeric: bool
    """Decimals as numbers instead of base64 of their unscaled bytes."""
    defaults: bool
    """Nulls within a value are replaced by the defaults of their schemas."""
    entries: bool
    """Maps without text keys are arrays of objects with ``key`` and ``value``, and a choice is its selected value, as
    in Confluent's JSON Schema converter.

    Otherwise maps are arrays of pairs, and a choice is a plain struct.
    """


def json_texts(
    schema: Schema,
    values: pa.Array,
    *,
    numeric_decimals: bool = False,
    defaults: bool = False,
    entries: bool = False,
    around: tuple[str, str] = ("", ""),
) -> pa.Array:
    """A string column of JSON texts, each with ``around`` before and after it; null where the value is. Decimals are base64 of
    their unscaled bytes, or numbers; with ``defaults`` nulls within a value take the default of their schema."""
    import pyarrow as pa
    import pyarrow.compute as pc

    pieces = _pieces(schema, values, _Style(numeric_decimals, defaults, entries))
    texts = joined([around[0], *pieces, around[1]], len(values))
    if values.null_count == 0:
        return texts
    return pc.if_else(pc.is_null(values), pa.scalar(None, pa.string()), texts)


def _pieces(schema: Schema, values: pa.Array, style: _Style) -> list[Piece]:
    """The consecutive parts of each row's text; ``null`` for a null.

    Parts shared by all rows are created once, so that an envelope around rows costs little.
    """
    import pyarrow.compute as pc

    if not len(values):
        return []
    if values.null_count == len(values):
        return ["null"]
    if is_one_value(values):
        return ["".join(joined(_varying(schema, values.slice(0, 1), style), 1).to_pylist())]
    pieces = _varying(schema, values, style)
    if values.null_count:
        return [pc.if_else(pc.is_null(values), "null", joined(pieces, len(values)))]
    return pieces


def _varying(schema: Schema, values: pa.Array, style: _Style) -> list[Piece]:
    """Like ``_pieces``, with arbitrary text where a value is null."""
    if schema.name in (DECIMAL, DATE, TIME, TIMESTAMP):
        return [_logical_texts(schema, values, style)]
    if style.entries and is_choice(schema):
        return [_choice_texts(schema, values, style)]
    match schema.type:
        case SchemaType.STRUCT:
            return _struct_pieces(schema, values, style)
        case SchemaType.ARRAY:
            assert schema.value_schema is not None
            items = _texts(schema.value_schema, _filled(schema.value_schema, values.flatten(), style), style)
            return ["[", joined_items(values, items), "]"]
        case SchemaType.MAP:
            return _map_pieces(schema, values, style)
        case SchemaType.STRING:
            return ['"', _escaped(values), '"']
        case SchemaType.BYTES:
            return [_base64(values.to_pylist())]
        case SchemaType.FLOAT32 | SchemaType.FLOAT64:
            return [_float_texts(values)]
    return [values.cast("string")]


def _texts(schema: Schema, values: pa.Array, style: _Style) -> pa.Array:
    """Like ``json_texts`` with the text ``null`` for a null."""
    return joined(_pieces(schema, values, style), len(values))


def _filled(schema: Schema, values: pa.Array, style: _Style) -> pa.Array:
    return with_default(schema, values) if style.defaults else values


def _escaped(values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = values.cast("string")
    for character in _to_escape(values):
        values = pc.replace_substring(values, character, _ESCAPES.get(character, f"\\u{ord(character):04X}"))
    if _has_pairs(values):
        values = pa.array([None if v is None else _PAIRED.sub(_pair, v) for v in values.to_pylist()], pa.string())
    return values


def _has_pairs(values: pa.Array) -> bool:
    """Whether a column has characters that take two UTF-16 units.

    Jackson, which writes the original's JSON, escapes each unit.
    """
    import numpy as np

    used = _used_bytes(values)
    return bool(len(used) and np.max(used) >= _FOUR_BYTES)


def _pair(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be").hex().upper()
    return f"\\u{units[:4]}\\u{units[4:]}"


def _used_bytes(values: pa.Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of the texts of a column."""
    import numpy as np

    _, offsets, data = values.buffers()
    if data is None:
        return np.empty(0, np.uint8)
    first, stop = np.frombuffer(offsets, np.int32)[[values.offset, values.offset + len(values)]]
    return np.frombuffer(data, np.uint8)[first:stop]


def _to_escape(values: pa.Array) -> list[str]:
    """The control characters, quotes and backslashes that occur in a column, the backslash first."""
    import numpy as np

    used = _used_bytes(values)
    if len(used) and int(used.min()) >= 32:  # most texts have no control characters: few, fast passes
        return [character for character in '\\"' if (used == ord(character)).any()]
    there = np.zeros(256, np.bool_)
    there[used] = True
    return [chr(code) for code in (92, 34, *range(32)) if there[code]]


_ESCAPES: Final = {
    "\\": "\\\\",
    '"': '\\"',
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}


def _float_texts(values: pa.Array) -> pa.Array:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = values.cast("string")
    numbers = pc.fill_null(values, 0.5).to_numpy(zero_copy_only=False)
    whole = pa.array(np.equal(numbers, np.floor(numbers)))
    if pc.any(whole).as_py():
        chosen = texts.filter(whole)
        plain = pc.match_substring_regex(chosen, r"^-?[0-9]+$")
        pointed = pc.if_else(plain, pc.binary_join_element_wise(chosen, ".0", ""), chosen)
        texts = pc.replace_with_mask(texts, whole, pointed)
    if not np.isfinite(numbers).all():
        # JSON has no such numbers: Jackson, and so Kafka Connect, writes them as strings.
        odd = {"nan": '"NaN"', "-nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
        for arrow, text in odd.items():
            texts = pc.if_else(pc.equal(texts, arrow), text, texts)
    return texts


def _base64(values: list[bytes | None]) -> pa.Array:
    import pyarrow as pa

    return pa.array([None if v is None else f'"{base64.b64encode(v).decode()}"' for v in values], pa.string())


def _logical_texts(schema: Schema, values: pa.Array, style: _Style) -> pa.Array:
    if schema.name != DECIMAL:
        storage = "int32" if schema.name in (DATE, TIME) else "int64"
        return values.cast(schema.arrow_type).cast(storage).cast("string")
    if style.numeric:
        return values.cast("string")
    return _base64([None if v is None else _unscaled(v, schema.scale) for v in values.to_pylist()])


def _unscaled(value: decimal.Decimal, scale: int) -> bytes:
    number = int(value.scaleb(scale, decimal.Context(prec=100)))
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def _struct_pieces(schema: Schema, values: pa.Array, style: _Style) -> list[Piece]:
    pieces: list[Piece] = []
    for position, member in enumerate(schema.fields):
        pieces.append(("," if position else "{") + _name_text(member.name) + ":")
        # a member's value in a row without a struct is ignored
        pieces += _pieces(member.schema, _filled(member.schema, values.field(position), style), style)
    return [*pieces, "}"] if pieces else ["{}"]


def is_choice(schema: Schema) -> bool:
    """Whether a struct represents a choice: exactly one of its fields is set (JSON Schema's ``oneOf``)."""
    return schema.type is SchemaType.STRUCT and (schema.name == ONE_OF or GENERALIZED_UNION in schema.parameters)


def _choice_texts(schema: Schema, values: pa.Array, style: _Style) -> pa.Array:
    """The texts of the field that is set."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.nulls(len(values), pa.string())
    for position, member in enumerate(schema.fields):
        part = pc.struct_field(values, [position])
        texts = pc.coalesce(texts, pc.if_else(part.is_null(), None, _texts(member.schema, part, style)))
    return texts


def _name_text(name: str) -> str:
    import json

    return json.dumps(name, ensure_ascii=False)


def _map_pieces(schema: Schema, values: pa.Array, style: _Style) -> list[Piece]:
    """An object if the keys are strings, otherwise an array of pairs."""
    import pyarrow.compute as pc

    assert schema.key_schema is not None and schema.value_schema is not None
    first, stop = values.offsets[0].as_py(), values.offsets[-1].as_py()
    keys = _texts(schema.key_schema, values.keys.slice(first, stop - first), style)
    items = _filled(schema.value_schema, values.items.slice(first, stop - first), style)
    items = _texts(schema.value_schema, items, style)
    is_object = schema.key_schema.type is SchemaType.STRING and not schema.key_schema.optional
    around = "{}" if is_object else "[]"
    if is_object:
        entries = pc.binary_join_element_wise(keys, items, ":")
    elif style.entries:
        entries = pc.binary_join_element_wise('{"key":', keys, ',"value":', items, "}", "")
    else:
        entries = pc.binary_join_element_wise("[", keys, ",", items, "]", "")
    return [around[0], joined_items(values, entries), around[1]]


def text_of(schema: Schema, value: Any, *, numeric_decimals: bool = False) -> str:
    """The JSON text of one value in its schema's Python form, as in Confluent's JSON Schema converter."""
    import pyarrow as pa

    column = pa.array([value], schema.arrow_type)
    text: str = json_texts(schema, column, numeric_decimals=numeric_decimals, entries=True)[0].as_py()
    return text
