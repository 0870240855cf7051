"""Converts JSON defaults of Avro fields to values."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from registry.formats.avro.model import ArrayType, AvroType, MapType, RecordType, UnionType
from registry.serde.logical import branch_names, decimal_of, logical_of, null_branch, value_branches

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["default_branch", "default_column", "default_value"]


def default_column(type_: AvroType, default: Any, rows: int) -> pa.Array:
    """The default from its schema's JSON, repeated."""
    import pyarrow as pa

    from registry.serde.arrow_types import type_to_arrow

    default_array = pa.array([default_value(type_, default, columns=True)], type_to_arrow(type_))
    return pa.repeat(default_array[0], rows) if rows else default_array.slice(0, 0)


def default_value(type_: AvroType, default: Any, *, columns: bool) -> Any:
    """The value of a JSON default, in the form for pyarrow or for a record."""
    match type_:
        case UnionType():
            return _union_default(type_, default, columns=columns)
        case RecordType():
            return {
                field.name: default_value(field.type, default.get(field.name, field.default), columns=columns)
                for field in type_.fields
            }
        case ArrayType():
            return [default_value(type_.items, item, columns=columns) for item in default]
        case MapType():
            entries = [(name, default_value(type_.values, item, columns=columns)) for name, item in default.items()]
            return entries if columns else dict(entries)
    if type_.kind in ("bytes", "fixed"):
        # Avro writes bytes in JSON as text, with one character of U+0000 to U+00FF per byte.
        data = default.encode("latin-1")
        if logical_of(type_) == "decimal":
            scale = (decimal_of(type_) or (0, 0))[1]
            # Not scaleb, which rounds to the context's 28 digits.
            return Decimal(f"{int.from_bytes(data, 'big', signed=True)}E-{scale}")
        return data
    if type_.kind in ("float", "double"):
        return float(default)
    if logical_of(type_) == "uuid":
        return default if columns else UUID(default)
    return _temporal(logical_of(type_), default)


def default_branch(type_: UnionType, default: Any) -> int:
    """The branch of a union's default: the first that it may be of."""
    if default is None and (null := null_branch(type_)) is not None:
        return null
    return next((index for index, branch in value_branches(type_) if _may_be(branch, default)), 0)


def _union_default(type_: UnionType, default: Any, *, columns: bool) -> Any:
    if default is None:
        return None
    branches = [branch for _, branch in value_branches(type_)]
    fitting = next((index for index, branch in enumerate(branches) if _may_be(branch, default)), 0)
    value = default_value(branches[fitting], default, columns=columns)
    return {branch_names(type_)[fitting]: value} if columns and len(branches) > 1 else value


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
}


def _may_be(type_: AvroType, default: Any) -> bool:
    if isinstance(default, bool) and type_.kind != "boolean":
        return False
    return isinstance(default, _JSON_TYPES.get(type_.kind, (str,)))


_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps have no zone


def _temporal(logical: str | None, number: Any) -> Any:
    """The value of a default that is a number of days, milliseconds or microseconds."""
    match logical:
        case "date":
            return date(1970, 1, 1) + timedelta(days=number)
        case "time-millis":
            return (_EPOCH + timedelta(milliseconds=number)).time()
        case "time-micros":
            return (_EPOCH + timedelta(microseconds=number)).time()
        case "timestamp-millis" | "local-timestamp-millis":
            moment = _EPOCH + timedelta(milliseconds=number)
        case "timestamp-micros" | "local-timestamp-micros":
            moment = _EPOCH + timedelta(microseconds=number)
        case _:
            return number
    return moment if logical.startswith("local") else moment.replace(tzinfo=UTC)
