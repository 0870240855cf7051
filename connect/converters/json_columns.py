"""Converts JSON documents of one schema to columns, all rows at once.

Arrow's reader is used where it gives the same result as ``json_text.reader_of``. Everything else (a number instead of
text, a missing required field, NaN, maps) is left to that, which names the invalid row. So this is only a faster path.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from connect.data.defaults import with_default
from connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["common_envelope", "read_columns"]

_PAYLOAD: Final = b'"payload":'
_END: Final = b"}"
_LINE_FEED, _CARRIAGE_RETURN, _BACKSLASH = b"\n\r\\"
_SUSPECT_ESCAPES: Final = (rb"\ud", rb"\uD", rb"\u0000")
"""Readers differ on lone surrogates and NUL."""


def common_envelope(data: pa.Array) -> bytes | None:
    """The common beginning of all rows up to their payload, if they all begin and end alike; None if they do not, or
    may not.
    """
    import pyarrow.compute as pc

    first = data[0].as_py()
    if first is None or data.null_count:
        return None
    at = first.rfind(_PAYLOAD + b"{") if first.startswith(b'{"schema":{') else -1
    # The payload may contain such bytes itself: then the first occurrence is the envelope's, and the last one is not.
    if at < 0 or first.find(_PAYLOAD) != at:
        return None
    prefix = bytes(first[: at + len(_PAYLOAD)])
    alike = pc.and_(pc.starts_with(data, prefix + b"{"), pc.ends_with(data, b"}}"))
    return prefix if pc.all(alike).as_py() else None


def read_columns(schema: Schema, rows: pa.Array, *, defaults: bool = True) -> pa.Array | None:
    """The column from JSON objects; None if they must be read one by one. ``rows`` are bytes without nulls."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import json

    if not _readable(schema):
        return None
    objects = pc.and_(pc.starts_with(rows, b"{"), pc.ends_with(rows, _END))
    if not len(rows) or not pc.all(objects).as_py():
        return None
    text = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows), b"\n")[0].as_buffer()
    view = np.frombuffer(text, np.uint8)
    if np.count_nonzero(view == _LINE_FEED) != len(rows) - 1 or (view == _CARRIAGE_RETURN).any():
        return None  # a line break would end a row early
    if (view == _BACKSLASH).any() and any(escape in text.to_pybytes() for escape in _SUSPECT_ESCAPES):
        return None
    explicit = pa.schema([pa.field(member.name, _storage(member.schema)) for member in schema.fields])
    options = json.ParseOptions(explicit_schema=explicit, unexpected_field_behavior="ignore")
    try:
        table = json.read_json(
            pa.BufferReader(text), json.ReadOptions(use_threads=False, block_size=max(len(view) + 1, 1024)), options
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if len(table) != len(rows):
        return None
    parts = []
    for member in schema.fields:
        made = _made(member.schema, table.column(member.name).combine_chunks(), defaults)
        if made is None or (made.null_count and not member.schema.optional):
            return None
        parts.append(made)
    return pa.StructArray.from_arrays(parts, fields=list(schema.arrow_type))


def _readable(schema: Schema) -> bool:
    if schema.type is not SchemaType.STRUCT or not schema.fields:
        return False
    return all(_readable_member(member.schema) for member in schema.fields)


def _readable_member(schema: Schema) -> bool:
    if schema.type is SchemaType.STRUCT:
        return _readable(schema)
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        return _readable_member(schema.value_schema)
    return schema.type is not SchemaType.MAP


_STORAGES: Final = {
    SchemaType.INT8: "int8",
    SchemaType.INT16: "int16",
    SchemaType.INT32: "int32",
    SchemaType.INT64: "int64",
    # A float32 is the nearest to the float64 of the text, as in the other reader.
    SchemaType.FLOAT32: "float64",
    SchemaType.FLOAT64: "float64",
    SchemaType.BOOLEAN: "bool",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "string",
}


def _storage(schema: Schema) -> pa.DataType:
    """The type a field is read as before it is converted to its own type."""
    import pyarrow as pa

    if schema.type is SchemaType.STRUCT:
        return pa.struct([pa.field(member.name, _storage(member.schema)) for member in schema.fields])
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        return pa.list_(pa.field("item", _storage(schema.value_schema)))
    return pa.type_for_alias(_STORAGES[schema.type])


def _made(schema: Schema, column: pa.Array, defaults: bool) -> pa.Array | None:
    """The column in its schema's type; None if a value does not fit, or a required one is missing."""
    made = _typed(schema, column, defaults)
    return with_default(schema, made) if defaults and made is not None else made


def _typed(schema: Schema, column: pa.Array, defaults: bool) -> pa.Array | None:
    import pyarrow as pa

    arrow_type = schema.arrow_type
    if schema.name in (DATE, TIME, TIMESTAMP):
        return column.cast(arrow_type)
    if schema.type is SchemaType.BYTES:
        return _bytes(schema, column)
    if schema.type is SchemaType.FLOAT32:
        return column.cast(arrow_type, safe=False)
    if schema.type is SchemaType.STRUCT:
        parts = []
        for index, member in enumerate(schema.fields):
            part = _made(member.schema, column.field(index), defaults)
            if part is None or (not member.schema.optional and _missing(part, column)):
                return None
            parts.append(part)
        valid = column.is_valid().buffers()[1] if column.null_count else None
        return pa.Array.from_buffers(arrow_type, len(column), [valid], children=parts)
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        items = _made(schema.value_schema, column.values, defaults)
        if items is None or (items.null_count and not schema.value_schema.optional):
            return None
        return pa.Array.from_buffers(
            arrow_type, len(column), column.buffers()[:2], offset=column.offset, children=[items]
        )
    return column


def _missing(part: pa.Array, struct: pa.Array) -> bool:
    """Whether a value is missing in a struct that is present."""
    import pyarrow.compute as pc

    return bool(part.null_count and pc.any(pc.and_(part.is_null(), struct.is_valid())).as_py())


def _bytes(schema: Schema, column: pa.Array) -> pa.Array | None:
    import pyarrow as pa

    try:
        raw: list[Any] = [
            None if text is None else base64.b64decode(text, validate=True) for text in column.to_pylist()
        ]
        if schema.name != DECIMAL:
            return pa.array(raw, pa.binary())
        return _decimals(schema, raw)
    except (binascii.Error, ValueError, pa.ArrowInvalid):
        return None


def _decimals(schema: Schema, raw: list[bytes | None]) -> pa.Array | None:
    """Decimals of 128 bits from their unscaled big-endian bytes."""
    import pyarrow as pa

    arrow = schema.arrow_type
    if arrow.bit_width != 128 or any(text is not None and (len(text) > 15 or not text) for text in raw):
        return None
    words = b"".join(
        bytes(16) if text is None else int.from_bytes(text, "big", signed=True).to_bytes(16, "little", signed=True)
        for text in raw
    )
    valid = pa.array([text is not None for text in raw], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(arrow, len(raw), [valid, pa.py_buffer(words)])
