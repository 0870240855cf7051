"""Columns to JSON texts and back, in Kafka Connect's JSON form of its types.

Writing is columnar, whatever the nesting: the texts of the parts are joined by Arrow, with no Python call per row (but
for base64: bytes and decimals in that form).
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.api.errors import DataError
from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, SchemaType
from connect.defaults import with_default

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["from_json", "json_texts", "reader_of"]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1)
_INTEGERS: Final = {
    SchemaType.INT8: 1 << 7,
    SchemaType.INT16: 1 << 15,
    SchemaType.INT32: 1 << 31,
    SchemaType.INT64: 1 << 63,
}


class _Style(NamedTuple):
    """How columns are written."""

    numeric: bool
    """Decimals as numbers instead of base64 of their unscaled bytes."""
    defaults: bool
    """Nulls within a value take the defaults of their schemas."""


def json_texts(schema: Schema, values: pa.Array, *, numeric_decimals: bool = False, defaults: bool = False) -> pa.Array:
    """A string column of JSON texts; null where the value is. Decimals are base64 of their unscaled bytes, or numbers;
    with ``defaults`` nulls within a value take the default of their schema."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = _texts(schema, values, _Style(numeric_decimals, defaults))
    if values.null_count == 0:
        return texts
    return pc.if_else(pc.is_null(values), pa.scalar(None, pa.string()), texts)


def _texts(schema: Schema, values: pa.Array, style: _Style) -> pa.Array:
    """Like ``json_texts`` with the text ``null`` for a null."""
    import pyarrow.compute as pc

    if schema.name in (DECIMAL, DATE, TIME, TIMESTAMP):
        texts = _logical_texts(schema, values, style)
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
    between, around = (":", "{}") if is_object else (",", "[]")
    entries = pc.binary_join_element_wise(keys, items, between)
    if not is_object:
        entries = _wrap("[", entries, "]")
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


def from_json(schema: Schema, payloads: list[Any], where: str, *, defaults: bool = True) -> pa.Array:
    """A column of what JSON payloads say, by a schema; None stays null. Raises DataError with the row at fault."""
    import pyarrow as pa

    read = reader_of(schema, defaults=defaults)
    values: list[Any] = []
    for row, payload in enumerate(payloads):
        if payload is None:
            values.append(None)
            continue
        try:
            values.append(read(payload))
        except (DataError, ValueError, TypeError, ArithmeticError, binascii.Error) as error:
            raise DataError(f"{where}: {error}", rows=[row]) from error
    try:
        return pa.array(values, schema.arrow_type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise DataError(f"{where}: {error}") from error


def reader_of(schema: Schema, *, defaults: bool = True) -> Callable[[Any], Any]:
    """What turns a JSON payload into the Python form of a schema, with the default for a null if asked; raises DataError."""
    read = _READERS.get((schema.type, schema.name)) or _plain_reader(schema, defaults)
    what = schema.name or schema.type.value

    def reader(payload: Any) -> Any:
        if payload is None:
            if defaults and schema.default is not None:
                return schema.default
            if not schema.optional:
                raise DataError(f"Invalid null value for required {what} field")
            return None
        return read(payload) if schema.name != DECIMAL else _decimal(payload, schema.scale)

    return reader


def _plain_reader(schema: Schema, defaults: bool) -> Callable[[Any], Any]:
    if schema.type is SchemaType.STRUCT:
        members = [(member.name, reader_of(member.schema, defaults=defaults)) for member in schema.fields]

        def read_struct(payload: Any) -> Any:
            given = _expect(payload, dict, "struct")
            return {name: read(given.get(name)) for name, read in members}

        return read_struct
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        read_item = reader_of(schema.value_schema, defaults=defaults)
        return lambda payload: [read_item(item) for item in _expect(payload, list, "array")]
    if schema.type is SchemaType.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        read_key = reader_of(schema.key_schema, defaults=defaults)
        read_value = reader_of(schema.value_schema, defaults=defaults)

        def read_map(payload: Any) -> Any:
            pairs = payload.items() if isinstance(payload, dict) else _expect(payload, list, "map")
            return [(read_key(name), read_value(value)) for name, value in pairs]

        return read_map
    if schema.type in _INTEGERS:
        return lambda payload: _integer(payload, schema.type)
    return _PLAIN[schema.type]


def _expect(payload: Any, kind: type, name: str) -> Any:
    if not isinstance(payload, kind) or (isinstance(payload, bool) and kind is not bool):
        raise DataError(f"Invalid type for {name}: {type(payload).__name__}")
    return payload


def _integer(payload: Any, kind: SchemaType) -> int:
    bound = _INTEGERS[kind]
    if isinstance(payload, bool) or not isinstance(payload, int) or not -bound <= payload < bound:
        raise DataError(f"Invalid value {str(payload)[:50]} for {kind.value}")
    return payload


def _float(payload: Any) -> float:
    if isinstance(payload, str) and payload in ("NaN", "Infinity", "-Infinity"):
        return float(payload)
    if isinstance(payload, bool) or not isinstance(payload, int | float):
        raise DataError(f"Invalid value {str(payload)[:50]} for a float")
    return float(payload)


def _decimal(payload: Any, scale: int) -> decimal.Decimal:
    if isinstance(payload, str):
        number = int.from_bytes(base64.b64decode(payload, validate=True), "big", signed=True)
        return decimal.Decimal(number).scaleb(-scale, decimal.Context(prec=100))
    if isinstance(payload, int | float) and not isinstance(payload, bool):
        return decimal.Decimal(str(payload)).quantize(
            decimal.Decimal(1).scaleb(-scale), context=decimal.Context(prec=100)
        )
    raise DataError(f"Invalid value {str(payload)[:50]} for a decimal")


_PLAIN: Final[dict[SchemaType, Callable[[Any], Any]]] = {
    SchemaType.BOOLEAN: lambda payload: _expect(payload, bool, "boolean"),
    SchemaType.STRING: lambda payload: _expect(payload, str, "string"),
    SchemaType.BYTES: lambda payload: base64.b64decode(_expect(payload, str, "bytes"), validate=True),
    SchemaType.FLOAT32: _float,
    SchemaType.FLOAT64: _float,
}
_READERS: Final[dict[tuple[SchemaType, str | None], Callable[[Any], Any]]] = {
    (SchemaType.INT32, DATE): lambda payload: _EPOCH_DAY + dt.timedelta(days=_integer(payload, SchemaType.INT32)),
    (SchemaType.INT32, TIME): lambda payload: (
        _EPOCH + dt.timedelta(milliseconds=_integer(payload, SchemaType.INT32))
    ).time(),
    (SchemaType.INT64, TIMESTAMP): lambda payload: (
        _EPOCH + dt.timedelta(milliseconds=_integer(payload, SchemaType.INT64))
    ),
    (SchemaType.BYTES, DECIMAL): lambda payload: payload,
}
