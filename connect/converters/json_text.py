"""Columns to JSON texts, in Kafka Connect's JSON form of its types (``json_values`` is the way back).

Writing is columnar, whatever the nesting: the texts of the parts are joined by Arrow, with no Python call per row (but
for base64: bytes and decimals in that form).
"""

from __future__ import annotations

import base64
import decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType
from connect.defaults import with_default

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["is_choice", "json_texts", "text_of"]

ONE_OF: Final = "io.confluent.connect.json.OneOf"
GENERALIZED_UNION: Final = "org.apache.kafka.connect.data.Union"


class _Style(NamedTuple):
    """How columns are written."""

    numeric: bool
    """Decimals as numbers instead of base64 of their unscaled bytes."""
    defaults: bool
    """Nulls within a value take the defaults of their schemas."""
    entries: bool
    """Maps without text keys are arrays of objects with ``key`` and ``value``, and a choice is the value chosen: the form of
    Confluent's JSON Schema converter. Otherwise pairs, and a struct like any other."""


def json_texts(
    schema: Schema,
    values: pa.Array,
    *,
    numeric_decimals: bool = False,
    defaults: bool = False,
    entries: bool = False,
) -> pa.Array:
    """A string column of JSON texts; null where the value is. Decimals are base64 of their unscaled bytes, or numbers;
    with ``defaults`` nulls within a value take the default of their schema."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _texts(schema, values, _Style(numeric_decimals, defaults, entries))
    if values.null_count == 0:
        return texts
    return pc.if_else(pc.is_null(values), pa.scalar(None, pa.string()), texts)


def _texts(schema: Schema, values: pa.Array, style: _Style) -> pa.Array:
    """Like ``json_texts`` with the text ``null`` for a null."""
    import pyarrow.compute as pc

    if schema.name in (DECIMAL, DATE, TIME, TIMESTAMP):
        texts = _logical_texts(schema, values, style)
    elif style.entries and is_choice(schema):
        texts = _choice_texts(schema, values, style)
    elif schema.type is SchemaType.STRUCT:
        texts = _struct_texts(schema, values, style)
    elif schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        items = _texts(schema.value_schema, _filled(schema.value_schema, values.flatten(), style), style)
        texts = _wrap("[", _join(values, items), "]")
    elif schema.type is SchemaType.MAP:
        texts = _map_texts(schema, values, style)
    elif schema.type is SchemaType.STRING:
        texts = _quoted(values)
    elif schema.type is SchemaType.BYTES:
        texts = _base64(values.to_pylist())
    elif schema.type in (SchemaType.FLOAT32, SchemaType.FLOAT64):
        texts = _float_texts(values)
    else:
        texts = values.cast("string")
    return pc.fill_null(texts, "null")


def _filled(schema: Schema, values: pa.Array, style: _Style) -> pa.Array:
    return with_default(schema, values) if style.defaults else values


def _wrap(before: str, texts: pa.Array, after: str) -> pa.Array:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(before, texts, after, "")


def _quoted(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    values = values.cast("string")
    if pc.any(pc.match_substring_regex(values, r'[\x00-\x1f"\\]')).as_py():
        values = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
        for code in range(32):
            if pc.any(pc.match_substring(values, chr(code))).as_py():
                values = pc.replace_substring(values, chr(code), _ESCAPES.get(code, f"\\u{code:04x}"))
    return _wrap('"', values, '"')


_ESCAPES: Final = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}


def _float_texts(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    texts = values.cast("string")
    texts = pc.if_else(pc.match_substring_regex(texts, r"^-?[0-9]+$"), _wrap("", texts, ".0"), texts)
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


def _struct_texts(schema: Schema, values: pa.Array, style: _Style) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not schema.fields:
        texts = pa.repeat(pa.scalar("{}"), len(values))
    else:
        parts: list[Any] = []
        for position, member in enumerate(schema.fields):
            parts.append(("," if position else "{") + _name_text(member.name) + ":")
            parts.append(
                _texts(member.schema, _filled(member.schema, pc.struct_field(values, [position]), style), style)
            )
        texts = pc.binary_join_element_wise(*parts, "}", "")
    return pc.if_else(pc.is_null(values), pa.scalar(None, pa.string()), texts)


def is_choice(schema: Schema) -> bool:
    """Whether a struct stands for a choice: exactly one of its fields is set (JSON Schema's ``oneOf``)."""
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


def _map_texts(schema: Schema, values: pa.Array, style: _Style) -> pa.Array:
    """An object where the keys are strings, else an array of pairs."""
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
        entries = _wrap("[", pc.binary_join_element_wise(keys, items, ","), "]")
    return _wrap(around[0], _join(values, entries), around[1])


def _join(lists: pa.Array, texts: pa.Array) -> pa.Array:
    """The texts of each list's items, joined by commas; null where the list is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(lists.cast(_as_list(lists.type))), 0)
    ends = pc.cumulative_sum(lengths.cast("int32"))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")
    return pc.if_else(pc.is_null(lists), pa.scalar(None, pa.string()), joined)


def _as_list(arrow: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_map(arrow):
        return pa.list_(pa.struct([arrow.key_field, arrow.item_field]))
    return arrow


def text_of(schema: Schema, value: Any, *, numeric_decimals: bool = False) -> str:
    """The JSON text of one value in the Python form of its schema, as Confluent's JSON Schema converter has it."""
    import pyarrow as pa

    column = pa.array([value], schema.arrow_type)
    text: str = json_texts(schema, column, numeric_decimals=numeric_decimals, entries=True)[0].as_py()
    return text
