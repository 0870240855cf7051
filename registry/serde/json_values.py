"""Single Avro records as JSON values and back, for people: logical types as text, not Avro's own JSON encoding.

Decimals, dates, times and UUIDs are their text, bytes are base64. Avro's JSON form of a union (``{"string": "x"}``)
stands only where the value alone would be taken for another branch.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from registry.formats.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)
from registry.formats.avro.schema import AvroSchema
from registry.serde.checking import Budget, Malformed, block, check_of, number, smallest, span
from registry.serde.defaults import default_branch, default_value
from registry.serde.errors import CorruptRecord, UnencodableValue
from registry.serde.framing import header, schema_of, unframe
from registry.serde.logical import branch_names, decimal_of, fits_digits, logical_of, null_branch, value_branches
from registry.serde.record_resolution import reader_of
from tidegate.kit.config import nearest_name

__all__ = ["record_from_json", "record_to_json", "text_example"]

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps have no zone
_MICROSECOND: Final = timedelta(microseconds=1)
_MAP_RANK: Final = 1_000_000
_SHOWN: Final = 60


def record_to_json(data: bytes, resolve: Callable[[int], AvroSchema]) -> Any:
    """The value of a record in Confluent framing, of types that ``json`` writes.

    Raises CorruptRecord with the field; UnknownSchema for an id that ``resolve`` does not find.
    """
    schema_id, body = unframe(data)
    type_ = schema_of(schema_id, resolve).type
    record = bytes(body)
    try:
        end = check_of(type_)(record, 0, len(record), Budget())
        if end != len(record):
            raise Malformed(f"{len(record) - end} bytes are left over after the record")
        if not _has_choice(type_):
            return _shown(reader_of(type_, type_)(record, 0, end, Budget())[0])
        return _read(type_, record, 0, end, Budget())[0]
    except Malformed as error:
        raise CorruptRecord(error.reason, path=error.path) from error


def record_from_json(schema: AvroSchema, value: Any, schema_id: int) -> bytes:
    """The record of what ``record_to_json`` returns, in Confluent framing. Raises UnencodableValue with the field.

    A number that must keep its digits is a ``Decimal``, as ``json.loads(..., parse_float=Decimal)`` makes it.
    A field with a default, or of a union with null, may be missing. A field that the schema lacks is refused.
    """
    try:
        return header(schema_id) + _encoded(schema.type, value)[1]
    except Malformed as error:
        raise UnencodableValue(error.reason, path=error.path) from error
    except RecursionError:
        raise UnencodableValue("nested too deep") from None


@lru_cache(maxsize=1000)
def _has_choice(type_: AvroType) -> bool:
    """Whether a union of several types is within."""
    seen: set[int] = set()
    pending = [type_]
    while pending:
        inner = pending.pop()
        if id(inner) in seen:
            continue
        seen.add(id(inner))
        match inner:
            case UnionType():
                if len(value_branches(inner)) > 1:
                    return True
                pending += inner.branches
            case RecordType():
                pending += [field.type for field in inner.fields]
            case ArrayType():
                pending.append(inner.items)
            case MapType():
                pending.append(inner.values)
    return False


def _read(type_: AvroType, data: bytes, position: int, end: int, budget: Budget) -> tuple[Any, int]:
    """The JSON value at a position of a checked record, and its end."""
    match type_:
        case UnionType():
            branch, position = number(data, position, end)
            value, position = _read(type_.branches[branch], data, position, end, budget)
            return _as_branch(type_, branch, value), position
        case RecordType():
            values = {}
            for field in type_.fields:
                with _Within(field.name):
                    values[field.name], position = _read(field.type, data, position, end, budget)
            return values, position
        case ArrayType():
            items: list[Any] = []
            while True:
                count, position = block(data, position, end, budget, sizeless=not smallest(type_.items))
                if not count:
                    return items, position
                for _ in range(count):
                    with _Within("[]"):
                        item, position = _read(type_.items, data, position, end, budget)
                    items.append(item)
        case MapType():
            entries: dict[str, Any] = {}
            while True:
                count, position = block(data, position, end, budget, sizeless=False)
                if not count:
                    return entries, position
                for _ in range(count):
                    start, position = span(data, position, end)
                    name = str(data[start:position], "utf-8")
                    with _Within("[]"):
                        entries[name], position = _read(type_.values, data, position, end, budget)
    value, position = reader_of(type_, type_)(data, position, end, budget)
    return _shown(value), position


class _Within:
    """Names the enclosing field, list or map of what is malformed inside."""

    def __init__(self, outer: str) -> None:
        self._outer = outer

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Malformed):
            error.within(self._outer)


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _shown(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _as_branch(union: UnionType, branch: int, value: Any) -> Any:
    """The value, with the name of its branch if another would be chosen for it."""
    values = value_branches(union)
    if len(values) < 2 or union.branches[branch].kind == "null" or _chosen(union, value)[0] == branch:
        return value
    names = dict(zip((index for index, _ in values), branch_names(union), strict=True))
    return {names[branch]: value}


def _chosen(union: UnionType, value: Any) -> tuple[int, int, bytes]:
    """The index of the branch for a JSON value, its rank and the body. Raises Malformed if it fits none."""
    if value is None:
        null = null_branch(union)
        if null is None:
            raise Malformed("null, but the schema allows no null here")
        return null, 0, b""
    branches = value_branches(union)
    named = _named_branch(union, value)
    if named is not None and len(branches) > 1:
        try:
            return named, *_encoded(union.branches[named], *value.values())
        except Malformed:  # a map, or a record with a field of this name
            pass
    fitting, reasons = [], []
    for index, branch in branches:
        try:
            fitting.append((index, *_encoded(branch, value)))
        except Malformed as error:
            reasons.append(error)
    if fitting:
        return min(fitting, key=lambda choice: (choice[1], choice[0]))
    if named is not None:
        return named, *_encoded(union.branches[named], *value.values())
    if len(reasons) == 1:
        raise reasons[0]
    raise Malformed(f"{_short(value)} fits none of the types {', '.join(branch_names(union)) or 'null'}")


def _named_branch(union: UnionType, value: Any) -> int | None:
    """The branch that an object of one member names."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    (name,) = value
    for (index, branch), short in zip(value_branches(union), branch_names(union), strict=True):
        if name in (short, getattr(branch, "full_name", short)):
            return index
    return None


def _encoded(type_: AvroType, value: Any) -> tuple[int, bytes]:
    """The body of a JSON value, and how far it is from what a person means by it (0: exactly that)."""
    if isinstance(type_, UnionType):
        index, rank, body = _chosen(type_, value)
        return rank, _zigzag(index) + body
    if type_.kind == "null":
        if value is not None:
            raise Malformed(f"{_short(value)}, but the schema knows only null here")
        return 0, b""
    if value is None:
        raise Malformed("null, but the schema allows no null here")
    match type_:
        case RecordType():
            return _record(type_, value)
        case ArrayType():
            return 0, _blocks([_item(type_.items, item) for item in _of(list, value, "a list")])
        case MapType():
            entries = _of(dict, value, "an object").items()
            return _MAP_RANK, _blocks([_sized(_utf8(name)) + _item(type_.values, item) for name, item in entries])
        case EnumType():
            if value not in type_.symbols:
                raise Malformed(f"{_short(value)} is none of the symbols {', '.join(type_.symbols)}")
            return 0, _zigzag(type_.symbols.index(value))
    if (logical := logical_of(type_)) is not None and logical in _LOGICAL:
        return _logical(type_, logical, value)
    return _plain(type_, value)


def _item(type_: AvroType, value: Any) -> bytes:
    with _Within("[]"):
        return _encoded(type_, value)[1]


def _record(type_: RecordType, value: Any) -> tuple[int, bytes]:
    given = _of(dict, value, f"an object with the fields of {type_.name}")
    fields = {field.name for field in type_.fields}
    if strange := [name for name in given if name not in fields]:
        near = nearest_name(strange[0], fields)
        hint = f"; is {near} meant?" if near else f"; it has {', '.join(sorted(fields)) or 'none'}"
        raise Malformed(f"the schema {type_.full_name} has no field {strange[0]}{hint}")
    body = b""
    for field in type_.fields:
        with _Within(field.name):
            if field.name in given:
                body += _encoded(field.type, given[field.name])[1]
            elif field.has_default:
                body += _default(field.type, field.default)
            elif isinstance(field.type, UnionType) and (null := null_branch(field.type)) is not None:
                body += _zigzag(null)
            else:
                raise Malformed("it is missing, and the schema has no default for it")
    return len(fields) - len(given), body


def _default(type_: AvroType, default: Any) -> bytes:
    """The body of a default as the schema writes it: in Avro's JSON encoding, which has no names of branches."""
    match type_:
        case UnionType():
            index = default_branch(type_, default)
            return _zigzag(index) + _default(type_.branches[index], default)
        case RecordType():
            return b"".join(_default(field.type, default.get(field.name, field.default)) for field in type_.fields)
        case ArrayType():
            return _blocks([_default(type_.items, item) for item in default])
        case MapType():
            return _blocks([_sized(_utf8(name)) + _default(type_.values, item) for name, item in default.items()])
    return _encoded(type_, _shown(default_value(type_, default, columns=False)))[1]


def _plain(type_: AvroType, value: Any) -> tuple[int, bytes]:
    kind = type_.kind
    if kind == "boolean":
        return 0, b"\1" if _of(bool, value, "true or false") else b"\0"
    if kind in ("int", "long"):
        return 0, _whole(kind, value)
    if kind in ("float", "double"):
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise Malformed(f"{_short(value)} is no {kind}: give a number")
        exact = isinstance(value, float | Decimal)
        try:
            nearest = float(value)
            packed = (_FLOAT if kind == "float" else _DOUBLE).pack(nearest)
        except OverflowError as error:
            raise Malformed(f"{_short(value)} is too large for a {kind}") from error
        if isinstance(value, Decimal) and math.isinf(nearest):
            raise Malformed(f"{_short(value)} is too large for a {kind}")
        return (kind == "float") + (not exact), packed
    if kind == "string":
        return 0, _sized(_utf8(_of(str, value, "text in quotes")))
    data = _from_base64(value)
    if isinstance(type_, FixedType):
        if len(data) != type_.size:
            raise Malformed(f"{_short(value)} is {len(data)} bytes; {type_.full_name} has {type_.size}")
        return 5, data
    return 5, _sized(data)


def _logical(type_: AvroType, logical: str, value: Any) -> tuple[int, bytes]:
    if logical == "decimal":
        return 4, _decimal(type_, value)
    if type_.kind in ("int", "long") and isinstance(value, int):  # the number that Avro writes for it
        return 3, _whole(type_.kind, value)
    example, convert = _LOGICAL[logical]
    try:
        converted = convert(_of(str, value, f'a {logical} such as "{example}"'))
    except (ValueError, OverflowError) as error:
        raise Malformed(f'{_short(value)} is no {logical} such as "{example}": {error}') from error
    if isinstance(converted, str):
        return 0, _sized(_utf8(converted))
    return 3, _zigzag(converted)


def _decimal(type_: AvroType, value: Any) -> bytes:
    precision, scale = decimal_of(type_) or (0, 0)
    meant = f"a decimal of {precision} digits, {scale} of them after the point"
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise Malformed(f'{_short(value)} is no decimal: give for example "12.50"')
    try:
        # Not the value itself: a float is meant as it is written.
        sign, digits, exponent = Decimal(str(value)).as_tuple()
    except InvalidOperation as error:
        raise Malformed(f'{_short(value)} is no decimal: give for example "12.50"') from error
    if not isinstance(exponent, int):
        raise Malformed(f"{_short(value)} is no number")
    shift = exponent + scale
    unscaled = int(Decimal((0, digits, 0)))  # int of text has a limit
    if shift > precision and unscaled:
        raise Malformed(f"{_short(value)} is more than {meant}")
    dropped = 10 ** min(-shift, len(digits)) if shift < 0 else 1
    if unscaled % dropped:
        raise Malformed(f"{_short(value)} is more than {meant}")
    unscaled = unscaled // dropped if shift < 0 else unscaled * 10 ** min(shift, precision)
    unscaled = -unscaled if sign else unscaled
    if not fits_digits(unscaled, precision):
        raise Malformed(f"{_short(value)} is more than {meant}")
    if isinstance(type_, FixedType):
        return unscaled.to_bytes(type_.size, "big", signed=True)
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return _sized(unscaled.to_bytes(bits // 8 + 1, "big", signed=True))


def _since_midnight(text: str) -> timedelta:
    moment = time.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError("a time of day has no zone")
    return datetime.combine(_EPOCH.date(), moment) - _EPOCH


def _since_epoch(text: str) -> timedelta:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("it has no zone; Z at its end is UTC")
    return moment.astimezone(UTC).replace(tzinfo=None) - _EPOCH


def _local_since_epoch(text: str) -> timedelta:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError("a local timestamp has no zone")
    return moment - _EPOCH


def _days(text: str) -> int:
    return (date.fromisoformat(text) - _EPOCH.date()).days


def _counted(since: Callable[[str], timedelta], micros: int) -> Callable[[str], int]:
    """Counts in units of so many microseconds. Raises ValueError for a time that lies between two of them."""

    def convert(text: str) -> int:
        units, left = divmod(since(text) // _MICROSECOND, micros)
        if left:
            raise ValueError("the type has milliseconds")
        return units

    return convert


_LOGICAL: Final[Mapping[str, tuple[str, Callable[[str], int | str]]]] = {
    "decimal": ("12.50", str),
    "uuid": ("6f1d2c4e-0000-4000-8000-000000000000", lambda text: str(UUID(text))),
    "date": ("2026-11-25", _days),
    "time-millis": ("10:30:00.125", _counted(_since_midnight, 1000)),
    "time-micros": ("10:30:00.125", _counted(_since_midnight, 1)),
    "timestamp-millis": ("2026-11-25 10:30:00+00:00", _counted(_since_epoch, 1000)),
    "timestamp-micros": ("2026-11-25 10:30:00+00:00", _counted(_since_epoch, 1)),
    "local-timestamp-millis": ("2026-11-25 10:30:00", _counted(_local_since_epoch, 1000)),
    "local-timestamp-micros": ("2026-11-25 10:30:00", _counted(_local_since_epoch, 1)),
}
"""An example and the conversion of the text of each; others, such as nanoseconds, are numbers."""


def text_example(logical: str) -> str | None:
    """A text that ``record_from_json`` takes for a logical type; None for one whose values are numbers, and for decimals."""
    return None if logical == "decimal" or logical not in _LOGICAL else _LOGICAL[logical][0]


def _whole(kind: str, value: Any) -> bytes:
    limit = 1 << (31 if kind == "int" else 63)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed(f"{_short(value)} is no {kind}: give a whole number")
    if not -limit <= value < limit:
        raise Malformed(f"{value} is outside of the range of {kind}")
    return _zigzag(value)


def _zigzag(value: int) -> bytes:
    left = (value << 1) ^ (value >> 63)
    body = bytearray()
    while left > 0x7F:
        body.append(left & 0x7F | 0x80)
        left >>= 7
    body.append(left)
    return bytes(body)


def _sized(data: bytes) -> bytes:
    return _zigzag(len(data)) + data


def _blocks(items: list[bytes]) -> bytes:
    return (_zigzag(len(items)) + b"".join(items) if items else b"") + b"\0"


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Malformed(f"{_short(text)} is no Unicode text: {error.reason}") from error


def _from_base64(value: Any) -> bytes:
    try:
        return base64.b64decode(_of(str, value, "bytes in base64"), validate=True)
    except ValueError as error:
        raise Malformed(f"{_short(value)} is no base64, which stands for bytes: {error}") from error


def _of(kind: type[Any], value: Any, meant: str) -> Any:
    if not isinstance(value, kind):
        raise Malformed(f"{_short(value)} is not {meant}")
    return value


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
