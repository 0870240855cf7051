"""Partition fields as configurations write them: ``day(at)``, ``bucket(id, 16)``, ``region``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import Transform

__all__ = ["PartitionField", "parse_partition_field", "partition_spec", "split_fields"]

_CALL: Final = re.compile(r"(\w+)\((.+)\)")
_COMMA: Final = re.compile(r",(?![^()]*\))")
_TIMES: Final = {f"{unit}{plural}": unit for unit in ("year", "month", "day", "hour") for plural in ("", "s")}
_NUMBERED: Final = ("bucket", "truncate")


class PartitionField(NamedTuple):
    """A column and how its values become partitions; ``number`` is that of bucket and truncate."""

    transform: str
    column: str
    number: int | None = None


def split_fields(text: str) -> list[str]:
    """The parts between commas that are not in parentheses."""
    return [part.strip() for part in _COMMA.split(text) if part.strip()]


def parse_partition_field(text: str) -> PartitionField:
    """Raises ValueError that says what would be right."""
    call = _CALL.fullmatch(text)
    if call is None:
        if "(" in text or ")" in text:
            raise ValueError("it should look like region, day(at) or bucket(id, 16)")
        return PartitionField("identity", text)
    name, arguments = call[1].lower(), [part.strip() for part in call[2].split(",")]
    if name in _TIMES and len(arguments) == 1:
        return PartitionField(_TIMES[name], arguments[0])
    if name in _NUMBERED and len(arguments) == 2 and arguments[1].isdigit() and int(arguments[1]) > 0:
        return PartitionField(name, arguments[0], int(arguments[1]))
    if name in _NUMBERED:
        raise ValueError(f"{name} takes a column and a positive number, as in {name}(id, 16)")
    if name in _TIMES:
        raise ValueError(f"{name} takes a column, as in {name}(at)")
    raise ValueError(f"there is no transform {name}: take {', '.join(sorted({*_TIMES.values(), *_NUMBERED}))}")


def partition_spec(schema: Schema, fields: list[PartitionField]) -> PartitionSpec:
    """The specification of a new table. Raises ValueError for a column that the schema does not have."""
    from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionSpec
    from pyiceberg.partitioning import PartitionField as IcebergField

    made = []
    for number, field in enumerate(fields):
        source = schema.find_field(field.column)
        name = field.column if field.transform == "identity" else f"{field.column}_{_suffix(field)}"
        made.append(IcebergField(source.field_id, PARTITION_FIELD_ID_START + number, _transform(field), name))
    return PartitionSpec(*made)


def _suffix(field: PartitionField) -> str:
    return "trunc" if field.transform == "truncate" else field.transform


def _transform(field: PartitionField) -> Transform[Any, Any]:
    from pyiceberg.transforms import parse_transform

    return parse_transform(field.transform if field.number is None else f"{field.transform}[{field.number}]")
