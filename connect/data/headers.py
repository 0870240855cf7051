"""Record headers as a column: raw bytes, or values with a schema.

``list<struct<key: string, value: binary>>`` has headers as in the log. Once a header has a schema (from a header
converter or a transformation) the struct has a third member ``schema: string``: null for raw bytes, "" for a value
without schema (``value`` is its JSON text then), else the schema in Kafka Connect's JSON, ``value`` being the payload.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.data.errors import DataError
from connect.data.schema import Schema, SchemaType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Header", "column_of", "header_lists", "is_typed"]

_KEPT: Final = 1000
_KEPT_BYTES: Final = 256
"""Most headers say the same in each record: a value that is no longer than this is converted once."""


class Header(NamedTuple):
    """A record header: bytes as in the log, or a value in its schema's Python form.

    A header converter converts between the two. A value without schema that is not bytes has JSON's form.
    """

    key: str
    value: Any
    schema: Schema | None = None


def is_typed(column: pa.Array) -> bool:
    """Whether headers of a column may have schemas."""
    return bool(column.type.value_type.num_fields == 3)


def column_of(rows: Sequence[Sequence[Header]]) -> pa.Array | None:
    """The column of the headers of each row; None when no row has one."""
    import pyarrow as pa

    if not any(rows):
        return None
    typed = any(header.schema is not None or not _raw(header.value) for headers in rows for header in headers)
    fields = [pa.field("key", pa.string()), pa.field("value", pa.binary())]
    if not typed:
        cells = [[{"key": h.key, "value": h.value} for h in headers] for headers in rows]
        return pa.array(cells, pa.list_(pa.struct(fields)))
    cells = [[_cell(header) for header in headers] for headers in rows]
    return pa.array(cells, pa.list_(pa.struct([*fields, pa.field("schema", pa.string())])))


def _raw(value: Any) -> bool:
    return value is None or isinstance(value, bytes | bytearray | memoryview)


def _cell(header: Header) -> dict[str, Any]:
    if header.schema is None and _raw(header.value):
        return {"key": header.key, "value": header.value, "schema": None}
    if header.schema is None or not _complete(header.schema):
        text = None if header.value is None else json.dumps(header.value, ensure_ascii=False).encode()
        return {"key": header.key, "value": text, "schema": ""}
    try:
        payload = _payload(header.schema, header.value)
    except (ValueError, TypeError, ArithmeticError) as error:
        if isinstance(header.value, decimal.Decimal):  # more digits than a column supports: the text stays
            return _cell(Header(header.key, str(header.value), Schema(SchemaType.STRING)))
        what = header.schema.name or header.schema.type.value
        raise DataError(f"header {header.key!r} does not fit its schema {what}: {error}") from error
    return {"key": header.key, "value": payload, "schema": _schema_text(header.schema)}


def _complete(schema: Schema) -> bool:
    """Whether a column can have the schema: an array of only nulls has no item type."""
    if schema.type is SchemaType.ARRAY:
        return schema.value_schema is not None and _complete(schema.value_schema)
    if schema.type is SchemaType.MAP:
        inner = (schema.key_schema, schema.value_schema)
        return all(inner_schema is not None and _complete(inner_schema) for inner_schema in inner)
    return True


def _payload(schema: Schema, value: Any) -> bytes | None:
    if value is None:
        return None
    # Not a double: 0.0 and -0.0 are equal.
    again = isinstance(value, int) or (isinstance(value, str) and len(value) <= _KEPT_BYTES)
    return _kept_payload(schema, value) if again else _made_payload(schema, value)


def _made_payload(schema: Schema, value: Any) -> bytes:
    import pyarrow as pa

    from connect.data.json_text import json_texts

    text: str = json_texts(schema, pa.array([value], schema.arrow_type))[0].as_py()
    return text.encode()


_kept_payload: Final = lru_cache(_KEPT, typed=True)(_made_payload)


@lru_cache(maxsize=_KEPT)
def _schema_text(schema: Schema) -> str:
    from connect.data.json_schema import schema_to_json

    return json.dumps(schema_to_json(schema), separators=(",", ":"))


@lru_cache(maxsize=_KEPT)
def _reader(text: str) -> tuple[Schema, Callable[[Any], Any]]:
    from connect.data.json_schema import schema_from_json
    from connect.data.json_values import reader_of

    schema = schema_from_json(json.loads(text))
    return schema, reader_of(schema)


def header_lists(column: pa.Array) -> list[tuple[Header, ...]]:
    """The headers of each row."""
    return [tuple(_header(cell) for cell in cells or ()) for cells in column.to_pylist()]


def _typed(value: bytes, text: str) -> tuple[Schema | None, Any]:
    if not text:
        return None, json.loads(value)
    import pyarrow as pa

    schema, read = _reader(text)
    return schema, pa.array([read(json.loads(value))], schema.arrow_type)[0].as_py(maps_as_pydicts="strict")


_kept_typed: Final = lru_cache(_KEPT)(_typed)


def _header(cell: dict[str, Any]) -> Header:
    text, value = cell.get("schema"), cell["value"]
    if text is None:
        return Header(cell["key"], value)
    if value is None:
        return Header(cell["key"], None, _reader(text)[0] if text else None)
    schema, made = (_kept_typed if len(value) <= _KEPT_BYTES else _typed)(value, text)
    return Header(cell["key"], made, schema)
