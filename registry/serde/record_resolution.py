"""Avro's schema resolution for single records, compiled for a pair of schemas.

fastavro resolves too, but returns defaults of logical types as plain JSON, does not round values to a reader's float,
and matches names by other rules. Columns and records must be read alike.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from registry.formats.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)
from registry.serde.checking import Budget, Malformed, block, check_of, number, smallest, span
from registry.serde.defaults import default_value
from registry.serde.logical import decimal_of, logical_of
from registry.serde.matching import field_places, matching_branch, mismatch

__all__ = ["Read", "reader_of"]

Read = Callable[[bytes, int, int, Budget], tuple[Any, int]]
"""Takes data, the position of a value, the end of its record and the remaining budget; returns the value and its end.

Values were checked before, so the only errors are values that the reader's schema can't represent.
"""

Known = dict[tuple[int, int], list[Read]]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps have no zone
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


@lru_cache(maxsize=1000)
def reader_of(writer: AvroType, reader: AvroType) -> Read:
    """A function that reads values of ``writer`` as ``reader``; types compare by identity.

    It raises Malformed for what can't be converted.
    """
    return _compiled(writer, reader, {})


def _compiled(writer: AvroType, reader: AvroType, known: Known) -> Read:
    if isinstance(writer, UnionType):
        return _from_union([_compiled(branch, reader, known) for branch in writer.branches])
    if isinstance(reader, UnionType):
        choice = matching_branch(writer, reader.branches)
        if choice is None:
            what = "null, but the reader's schema allows no null here" if writer.kind == "null" else None
            return _refusal(what or f"the reader's schema has no branch for {writer.kind}")
        return _compiled(writer, reader.branches[choice], known)
    match writer, reader:
        case RecordType(), RecordType():
            return _record(writer, reader, known)
        case ArrayType(), ArrayType():
            item = _compiled(writer.items, reader.items, known)
            return _array(item, sizeless=not smallest(writer.items))
        case MapType(), MapType():
            return _map(_compiled(writer.values, reader.values, known))
        case EnumType(), EnumType():
            return _enum(writer, reader)
    if writer.kind == "null" and reader.kind != "null":
        return _refusal("null, but the reader's schema allows no null here")
    if reason := mismatch(writer, reader):
        return _refusal(reason)
    return _scalar(writer, reader)


def _refusal(reason: str) -> Read:
    def read(_: bytes, __: int, ___: int, ____: Budget) -> tuple[Any, int]:
        raise Malformed(reason)

    return read


def _from_union(branches: list[Read]) -> Read:
    def read(data: bytes, position: int, end: int, budget: Budget) -> tuple[Any, int]:
        branch, position = number(data, position, end)
        return branches[branch](data, position, end, budget)

    return read


def _record(writer: RecordType, reader: RecordType, known: Known) -> Read:
    pair = (id(writer), id(reader))
    if pair in known:
        cell = known[pair]
        # Used recursively or again: looked up when it runs.
        return lambda data, position, end, budget: cell[0](data, position, end, budget)  # noqa: PLW0108 - not there yet
    known[pair] = []
    taken: dict[int, list[tuple[str, Read]]] = {}
    made: list[tuple[str, Callable[[], Any]]] = []
    for field, index in field_places(writer, reader):
        if index is None:
            made.append((field.name, _default(field)))
        else:
            taken.setdefault(index, []).append((field.name, _compiled(writer.fields[index].type, field.type, known)))
    # Fields that the reader lacks are skipped; a field that it has twice is read twice.
    steps = [(taken.get(index, []), check_of(field.type)) for index, field in enumerate(writer.fields)]

    def read(data: bytes, position: int, end: int, budget: Budget) -> tuple[Any, int]:
        values: dict[str, Any] = {}
        name = ""
        try:
            for targets, skip in steps:
                after = -1
                for name, target in targets:
                    values[name], after = target(data, position, end, budget)
                position = after if after >= 0 else skip(data, position, end, budget)
            for name, default in made:
                values[name] = default()
        except Malformed as error:
            error.within(name)
            raise
        return values, position

    known[pair].append(read)
    return read


def _default(field: Field) -> Callable[[], Any]:
    if not field.has_default:

        def missing() -> Any:
            raise Malformed("the writer's schema lacks the field, and the reader's has no default for it")

        return missing
    value = default_value(field.type, field.default, columns=False)
    return lambda: copy.deepcopy(value)


def _array(item: Read, *, sizeless: bool) -> Read:
    def read(data: bytes, position: int, end: int, budget: Budget) -> tuple[Any, int]:
        items: list[Any] = []
        try:
            while True:
                count, position = block(data, position, end, budget, sizeless=sizeless)
                if not count:
                    return items, position
                for _ in range(count):
                    value, position = item(data, position, end, budget)
                    items.append(value)
        except Malformed as error:
            error.within("[]")
            raise

    return read


def _map(item: Read) -> Read:
    def read(data: bytes, position: int, end: int, budget: Budget) -> tuple[Any, int]:
        items: dict[str, Any] = {}
        try:
            while True:
                count, position = block(data, position, end, budget, sizeless=False)
                if not count:
                    return items, position
                for _ in range(count):
                    start, position = span(data, position, end)
                    key = str(data[start:position], "utf-8")
                    items[key], position = item(data, position, end, budget)
        except Malformed as error:
            error.within("[]")
            raise

    return read


def _enum(writer: EnumType, reader: EnumType) -> Read:
    taken = [symbol if symbol in reader.symbols else reader.default for symbol in writer.symbols]

    def read(data: bytes, position: int, end: int, _: Budget) -> tuple[Any, int]:
        index, position = number(data, position, end)
        symbol = taken[index]
        if symbol is None:
            raise Malformed(f"'{writer.symbols[index]}' is no symbol of {reader.full_name}")
        return symbol, position

    return read


def _scalar(writer: AvroType, reader: AvroType) -> Read:
    """The writer's plain value, converted to the reader's type."""
    plain, meant = _plain(writer), _meaning(writer, reader)
    if meant is None:
        return plain

    def read(data: bytes, position: int, end: int, budget: Budget) -> tuple[Any, int]:
        value, position = plain(data, position, end, budget)
        try:
            return meant(value), position
        except (ValueError, OverflowError) as error:
            raise Malformed(f"{value!r} is no {logical_of(reader) or reader.kind}: {error}") from error

    return read


def _plain(writer: AvroType) -> Read:
    match writer.kind:
        case "null":
            return lambda data, position, end, _: (None, position)
        case "boolean":
            return lambda data, position, end, _: (data[position] == 1, position + 1)
        case "int" | "long":
            return lambda data, position, end, _: number(data, position, end)
        case "float":
            return lambda data, position, end, _: (_FLOAT.unpack_from(data, position)[0], position + 4)
        case "double":
            return lambda data, position, end, _: (_DOUBLE.unpack_from(data, position)[0], position + 8)
    size = writer.size if isinstance(writer, FixedType) else None

    def read(data: bytes, position: int, end: int, _: Budget) -> tuple[Any, int]:
        start, end = span(data, position, end) if size is None else (position, position + size)
        return bytes(data[start:end]), end

    return read


def _meaning(writer: AvroType, reader: AvroType) -> Callable[[Any], Any] | None:
    """A function that converts the written plain value to the reader's value; None if they are equal."""
    match logical_of(reader):
        case "decimal":
            scale = (decimal_of(reader) or (0, 0))[1]
            # Not scaleb, which rounds to the context's 28 digits.
            return lambda data: Decimal(f"{int.from_bytes(data, 'big', signed=True)}E-{scale}")
        case "uuid":
            return lambda data: UUID(str(data, "utf-8"))
        case "date":
            return lambda days: date(1970, 1, 1) + timedelta(days=days)
        case "time-millis":
            return lambda millis: _time_of_day(millis * 1000)
        case "time-micros":
            return _time_of_day
        case "timestamp-millis":
            return lambda millis: _EPOCH + timedelta(milliseconds=millis)
        case "timestamp-micros":
            return lambda micros: _EPOCH + timedelta(microseconds=micros)
        case "local-timestamp-millis":
            return lambda millis: _LOCAL + timedelta(milliseconds=millis)
        case "local-timestamp-micros":
            return lambda micros: _LOCAL + timedelta(microseconds=micros)
    if reader.kind == "string":
        return lambda data: str(data, "utf-8")
    if reader.kind == "float" and writer.kind != "float":
        return lambda value: _FLOAT.unpack(_FLOAT.pack(value))[0]
    return float if reader.kind == "double" and writer.kind in ("int", "long") else None


def _time_of_day(micros: int) -> Any:
    if not 0 <= micros < 86_400_000_000:
        raise ValueError("it lies outside of a day")
    return (_LOCAL + timedelta(microseconds=micros)).time()
