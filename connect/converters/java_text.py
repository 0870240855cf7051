"""Converts columns to the texts of ``Object.toString()``, which Kafka Connect's StringConverter writes.

Sources: ``Struct.toString`` of Kafka Connect (fields that are null are left out), ``AbstractMap.toString`` and
``AbstractCollection.toString``, ``Double.toString`` (Java 19 and newer: the shortest digits), ``BigDecimal.toString``,
``java.util.Date.toString`` in UTC, and ``toString`` of ``java.sql.Date``, ``Time`` and ``Timestamp``, which the JDBC
source delivers (``Schema.is_java_sql``).

Bytes differ on purpose: Java writes the identity of the array (``[B@1b6d3586``), this writes the bytes in base64.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Final

from connect.data.java.date_format import date_format
from connect.data.java.numbers import float_text
from connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType
from connect.data.text_columns import Piece, joined, joined_items

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["java_texts"]

_UTIL_DATE: Final = "EEE MMM dd HH:mm:ss 'UTC' y"
_SQL_PATTERNS: Final = {DATE: "yyyy-MM-dd", TIME: "HH:mm:ss", TIMESTAMP: "yyyy-MM-dd HH:mm:ss.SSS"}


def java_texts(schema: Schema, values: pa.Array) -> pa.Array:
    """A string column with Java's text of each value; null where the value is null."""
    import pyarrow as pa

    match schema.type:
        case _ if schema.name == DECIMAL:
            return values.cast(pa.string())
        case _ if schema.name in (DATE, TIME, TIMESTAMP):
            return _time_texts(schema, values)
        case SchemaType.STRING:
            return values.cast(pa.string())
        case SchemaType.STRUCT:
            return _struct_texts(schema, values)
        case SchemaType.ARRAY:
            assert schema.value_schema is not None
            items = _embedded(schema.value_schema, values.flatten())
            return _wrapped("[", joined_items(values, items, ", "), "]")
        case SchemaType.MAP:
            return _map_texts(schema, values)
        case SchemaType.BYTES:
            return pa.array([v and base64.b64encode(v).decode() for v in values.to_pylist()], pa.string())
        case SchemaType.FLOAT32 | SchemaType.FLOAT64:
            bits = 32 if schema.type is SchemaType.FLOAT32 else 64
            return pa.array([None if v is None else float_text(v, bits=bits) for v in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def _embedded(schema: Schema, values: pa.Array) -> pa.Array:
    """Texts within a list or a map, where Java writes ``null``."""
    import pyarrow.compute as pc

    return pc.fill_null(java_texts(schema, values), "null")


def _wrapped(before: str, texts: pa.Array, after: str) -> pa.Array:
    """The texts between two constants; null stays null."""
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(before, texts, after, "", null_handling="emit_null")


def _struct_texts(schema: Schema, values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    pieces: list[Piece] = []
    for position, member in enumerate(schema.fields):
        field = values.field(position)
        texts = java_texts(member.schema, field)
        if field.null_count:
            pieces.append(pc.fill_null(_wrapped(f",{member.name}=", texts, ""), ""))
        else:
            pieces += [f",{member.name}=", texts]
    # Each field begins with a comma; the first present one loses it.
    body = pc.utf8_slice_codeunits(joined(pieces, len(values)), 1)
    texts = _wrapped("Struct{", body, "}")
    return pc.if_else(pc.is_null(values), pa.scalar(None, pa.string()), texts) if values.null_count else texts


def _map_texts(schema: Schema, values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    assert schema.key_schema is not None and schema.value_schema is not None
    if not len(values):
        return pa.array([], pa.string())
    first, stop = values.offsets[0].as_py(), values.offsets[-1].as_py()
    keys = _embedded(schema.key_schema, values.keys.slice(first, stop - first))
    items = _embedded(schema.value_schema, values.items.slice(first, stop - first))
    return _wrapped("{", joined_items(values, pc.binary_join_element_wise(keys, items, "="), ", "), "}")


def _time_texts(schema: Schema, values: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = values.cast(schema.arrow_type)
    if schema.name == DATE:
        times = pc.multiply(values.cast(pa.int32()).cast(pa.int64()), 86_400_000)
    elif schema.name == TIME:
        times = values.cast(pa.int32()).cast(pa.int64())
    else:
        times = values.cast(pa.int64())
    if not schema.is_java_sql:
        return date_format(_UTIL_DATE).format_column(times)
    texts = date_format(_SQL_PATTERNS[str(schema.name)]).format_column(times)
    # java.sql.Timestamp omits trailing zeros of the fraction, except for the first digit.
    return pc.replace_substring_regex(texts, r"(\.\d)(\d*?)0+$", r"\1\2") if schema.name == TIMESTAMP else texts
