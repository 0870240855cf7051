"""Random schemas and values for them, in the form for Arrow and in the form for fastavro."""

from __future__ import annotations

import io
import json
import string
import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import strategies as st

from registry.client import AvroSchema
from registry.formats.avro.model import ArrayType, AvroType, MapType, RecordType, UnionType
from registry.serde import arrow_type
from registry.serde.logical import branch_names, logical_of, value_branches

Typed = tuple[Any, st.SearchStrategy[Any]]
"""An Avro type and a strategy for its values, as pyarrow takes them; ``as_record`` makes them fastavro's."""


class Chosen(dict[str, Any]):
    """A value of a union of several types: the name of its branch, and the value."""


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
names = st.integers(0, 10**9).map(lambda n: f"N{uuid.UUID(int=n).hex[-9:]}")


def _moments(unit: timedelta) -> st.SearchStrategy[datetime]:
    return st.integers(-(10**10), 10**10).map(lambda n: EPOCH + n * unit)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    # fastavro writes a byte too many for -128, -32768 ...; Java and we write the fewest.
    numbers = st.integers(-(10**precision) + 1, 10**precision - 1)
    return numbers.filter(lambda n: n >= 0 or (-n) & (-n - 1) != 0).map(lambda n: Decimal(f"{n}E-{scale}"))


def logical(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


SCALARS: list[Typed] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("string", st.text(max_size=40)),
    ("bytes", st.binary(max_size=40)),
    (logical("int", "date"), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    (logical("int", "time-millis"), st.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))),
    (logical("long", "time-micros"), st.times()),
    (logical("long", "timestamp-millis"), _moments(timedelta(milliseconds=1))),
    (logical("long", "timestamp-micros"), _moments(timedelta(microseconds=1))),
    (
        logical("long", "local-timestamp-micros"),
        _moments(timedelta(microseconds=1)).map(lambda t: t.replace(tzinfo=None)),
    ),
    (logical("bytes", "decimal", precision=9, scale=2), _decimals(9, 2)),
    (logical("bytes", "decimal", precision=38, scale=10), _decimals(38, 10)),
    (logical("bytes", "decimal", precision=60, scale=0), _decimals(60, 0)),
    (logical("long", "timestamp-nanos"), st.integers(-(2**60), 2**60)),
    (logical("string", "uuid"), st.uuids().map(str)),
    (logical("string", "made-up"), st.text(max_size=3)),
]


@st.composite
def _named(draw: st.DrawFn) -> Typed:
    name = draw(names)
    if draw(st.booleans()):
        symbols = draw(st.lists(st.sampled_from(string.ascii_uppercase), min_size=1, max_size=5, unique=True))
        return {"type": "enum", "name": f"E{name}", "symbols": symbols}, st.sampled_from(symbols)
    if draw(st.booleans()):
        size, precision = draw(st.sampled_from([(4, 9), (8, 18), (12, 20), (20, 45), (40, 70)]))
        described = logical("fixed", "decimal", precision=precision, scale=3, name=f"D{name}", size=size)
        return described, _decimals(precision, 3)
    size = draw(st.sampled_from([0, 1, 3, 7, 8, 12, 16, 20, 70]))
    return {"type": "fixed", "name": f"F{name}", "size": size}, st.binary(min_size=size, max_size=size)


@st.composite
def _record(draw: st.DrawFn, inner: st.SearchStrategy[Typed]) -> Typed:
    fields = draw(st.lists(inner, min_size=1, max_size=4))
    described = [{"name": f"f{n}", "type": type_} for n, (type_, _) in enumerate(fields)]
    values = st.fixed_dictionaries({f"f{n}": values for n, (_, values) in enumerate(fields)})
    return {"type": "record", "name": f"R{draw(names)}", "fields": described}, values


def _optional(typed: Typed) -> st.SearchStrategy[Typed]:
    type_, values = typed
    if isinstance(type_, list):
        return st.just(typed)
    union = st.sampled_from([["null", type_], [type_, "null"]])
    return union.map(lambda u: (u, st.none() | values))


@st.composite
def _union(draw: st.DrawFn, inner: st.SearchStrategy[Typed]) -> Typed:
    """A union of several types, with or without null."""
    branches: dict[str, Typed] = {}
    seen: set[str] = set()
    for _ in range(draw(st.integers(2, 4))):
        type_, values = draw(inner)
        if isinstance(type_, list) or (isinstance(type_, dict) and "logicalType" in type_):
            continue  # fastavro cannot be told which branch a value of a logical type is for
        name = type_ if isinstance(type_, str) else type_.get("name", type_["type"])
        # fastavro takes no name for an enum or a fixed within another union: the value must tell (bytes may be an array).
        told = (
            {"enum": "string", "fixed": "bytes", "array": "bytes"}.get(type_["type"], name)
            if isinstance(type_, dict)
            else name
        )
        if told not in seen:
            seen.add(told)
            branches[name] = (type_, values)
    types: list[Any] = [type_ for type_, _ in branches.values()]
    if len(types) < 2:
        return draw(inner)
    chosen = [values.map(lambda v, n=name: Chosen({n: v})) for name, (_, values) in branches.items()]
    if draw(st.booleans()):
        types.insert(draw(st.integers(0, len(types))), "null")
        chosen.append(st.none())
    return types, st.one_of(chosen)


def _array(typed: Typed) -> Typed:
    type_, values = typed
    return {"type": "array", "items": type_}, st.lists(values, max_size=4)


def _map(typed: Typed) -> Typed:
    type_, values = typed
    return {"type": "map", "values": type_}, st.dictionaries(st.text(max_size=4), values, max_size=3)


flat = st.one_of(st.sampled_from(SCALARS), _named())
nested = st.recursive(
    flat,
    lambda inner: st.one_of(
        _record(inner), inner.flatmap(_optional), _union(inner), inner.map(_array), inner.map(_map)
    ),
    max_leaves=6,
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[AvroSchema, list[Any]]:
    type_, values = draw(_record(nested))
    try:
        schema = AvroSchema.parse(json.dumps(type_))
    except Exception as error:  # two random names were the same
        assert "Can't redefine" in str(error)
        type_, values = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}]}, st.just({"x": 1})
        schema = AvroSchema.parse(json.dumps(type_))
    return schema, draw(st.lists(values, max_size=6))


def written_by_fastavro(schema: AvroSchema, row: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema.resolved)), as_record(row))
    return b"\0\0\0\0\7" + out.getvalue()


def read_by_fastavro(message: bytes, writer: AvroSchema, reader: AvroSchema | None = None) -> Any:
    schemas = [
        None if schema is None else fastavro.parse_schema(json.loads(schema.resolved)) for schema in (writer, reader)
    ]
    return fastavro.schemaless_reader(io.BytesIO(message[5:]), *schemas)


def as_record(row: Any) -> Any:
    """A drawn value as fastavro takes it: a value of a union with the name of its branch."""
    if isinstance(row, Chosen):
        ((name, value),) = row.items()
        return value if name[0] in "EF" else (name, as_record(value))
    if isinstance(row, dict):
        return {name: as_record(value) for name, value in row.items()}
    return [as_record(value) for value in row] if isinstance(row, list) else row


Table = tuple[AvroSchema, list[Any]]


def arrow_column(schema: AvroSchema, rows: list[Any]) -> pa.Array:
    return pa.array(rows, arrow_type(schema))


def from_column(type_: AvroType, column: pa.Array) -> Any:
    """The value of a column of one row, as a record read by itself has it."""
    return _from_column(type_, column[0].as_py(maps_as_pydicts="lossy"))


def _from_column(type_: AvroType, value: Any) -> Any:
    match type_:
        case UnionType():
            branches = [branch for _, branch in value_branches(type_)]
            if value is None or not branches:
                return None
            if len(branches) == 1:
                return _from_column(branches[0], value)
            named = zip(branch_names(type_), branches, strict=True)
            return next(_from_column(branch, value[name]) for name, branch in named if value[name] is not None)
        case RecordType():
            return {field.name: _from_column(field.type, value[field.name]) for field in type_.fields}
        case ArrayType():
            return [_from_column(type_.items, item) for item in value]
        case MapType():
            return {name: _from_column(type_.values, item) for name, item in value.items()}
    match logical_of(type_):
        case "uuid":
            return uuid.UUID(value)
        case "timestamp-nanos" | "local-timestamp-nanos":
            return value.value  # fastavro knows no nanoseconds: a number
    return value
