"""Decides whether data of one Avro schema can be read with another, by the rules of Java's ``SchemaCompatibility``
(avro 1.12).

It matches Java even where that is surprising: record names are compared without their namespace, unions are searched
branch by branch, and a pair of types that recurs gets the result of the first time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from registry.formats.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    MapType,
    NamedType,
    RecordType,
    UnionType,
)
from registry.formats.avro.text import write_text
from registry.formats.effort import Effort

__all__ = ["AmbiguousField", "Incompatibility", "Kind", "incompatibilities"]


class Kind(Enum):
    """The kinds of incompatibility, with the names of Java's ``SchemaIncompatibilityType``."""

    NAME_MISMATCH = "NAME_MISMATCH"
    FIXED_SIZE_MISMATCH = "FIXED_SIZE_MISMATCH"
    MISSING_ENUM_SYMBOLS = "MISSING_ENUM_SYMBOLS"
    READER_FIELD_MISSING_DEFAULT_VALUE = "READER_FIELD_MISSING_DEFAULT_VALUE"
    TYPE_MISMATCH = "TYPE_MISMATCH"
    MISSING_UNION_BRANCH = "MISSING_UNION_BRANCH"


class AmbiguousField(ValueError):
    """A reader's field matches several fields of the writer, through its name and aliases."""


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """One reason. ``path`` is a JSON pointer into the reader's schema; ``detail`` is Java's message."""

    kind: Kind
    path: str
    detail: str


def incompatibilities(reader: AvroType, writer: AvroType) -> list[Incompatibility]:
    """Every reason why ``reader`` cannot read data of ``writer``; empty if it can. Raises TooManySteps."""
    return _Checker().check("", reader, writer, [])


_MAX_REASONS: Final = 1000
_PROMOTIONS: Final = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}


class _Checker:
    def __init__(self) -> None:
        # None marks a pair whose check is in progress: a recursive schema is compatible unless proven otherwise.
        self._compared: dict[tuple[int, int], list[Incompatibility] | None] = {}
        self._effort = Effort()
        self._written: dict[int, dict[str, Field]] = {}

    def check(self, token: str, reader: AvroType, writer: AvroType, location: list[str]) -> list[Incompatibility]:
        pair = (id(reader), id(writer))
        if pair in self._compared:
            return self._compared[pair] or []
        self._effort.pair()
        self._compared[pair] = None
        location.append(token)
        # Types used twice at every level double the reasons per level; more than the limit would help no user.
        result = self._judge(reader, writer, location)[:_MAX_REASONS]
        location.pop()
        self._compared[pair] = result
        return result

    def _judge(self, reader: AvroType, writer: AvroType, location: list[str]) -> list[Incompatibility]:
        match reader, writer:
            case UnionType(), UnionType():
                return self._unions(reader, writer, location)
            case _, UnionType():
                return [
                    reason
                    for index, branch in enumerate(writer.branches)
                    for reason in self.check(str(index), reader, branch, location)
                ]
            case UnionType(), _:
                if any(not self.check("", branch, writer, []) for branch in reader.branches):
                    return []
                return [_reason(Kind.MISSING_UNION_BRANCH, location, _lacking(writer))]
            case ArrayType(), ArrayType():
                return self.check("items", reader.items, writer.items, location)
            case MapType(), MapType():
                return self.check("values", reader.values, writer.values, location)
            case FixedType(), FixedType():
                return _names(reader, writer, location) + _sizes(reader, writer, location)
            case EnumType(), EnumType():
                return _names(reader, writer, location) + _symbols(reader, writer, location)
            case RecordType(), RecordType():
                return _names(reader, writer, location) + self._fields(reader, writer, location)
        if reader.kind == writer.kind or writer.kind in _PROMOTIONS.get(reader.kind, ()):
            return []
        return [_mismatch(reader, writer, location)]

    def _unions(self, reader: UnionType, writer: UnionType, location: list[str]) -> list[Incompatibility]:
        reasons = []
        for index, branch in enumerate(writer.branches):
            if self.check("", reader, branch, []):
                reasons.append(_reason(Kind.MISSING_UNION_BRANCH, [*location, str(index)], _lacking(branch)))
        return reasons

    def _fields(self, reader: RecordType, writer: RecordType, location: list[str]) -> list[Incompatibility]:
        reasons: list[Incompatibility] = []
        self._effort.steps(len(reader.fields))
        written_fields = self._fields_by_name(writer)
        for index, field in enumerate(reader.fields):
            field_location = [*location, "fields", str(index)]
            written = _writer_field(writer, written_fields, field, index)
            if written is not None:
                reasons += self.check("type", field.type, written.type, field_location)
            elif field.has_default:
                continue
            elif isinstance(field.type, EnumType) and field.type.default is not None:
                # An enum's default does not replace a missing field, but Java compares it with the record.
                reasons += self.check("type", field.type, writer, field_location)
            else:
                reasons.append(_reason(Kind.READER_FIELD_MISSING_DEFAULT_VALUE, field_location, field.name))
        return reasons

    def _fields_by_name(self, writer: RecordType) -> dict[str, Field]:
        known = self._written.get(id(writer))
        if known is None:
            known = self._written[id(writer)] = {field.name: field for field in writer.fields}
        return known


def _writer_field(writer: RecordType, fields: dict[str, Field], field: Field, index: int) -> Field | None:
    matching = [fields[name] for name in (field.name, *field.aliases) if name in fields]
    if len(matching) > 1:
        raise AmbiguousField(
            f"Reader record field {field.name} type:{field.type.kind.upper()} pos:{index} matches multiple fields in writer "
            f"record schema {write_text(writer)}"
        )
    return matching[0] if matching else None


def _names(reader: NamedType, writer: NamedType, location: list[str]) -> list[Incompatibility]:
    if reader.name == writer.name or writer.full_name in reader.aliases:
        return []
    return [_reason(Kind.NAME_MISMATCH, [*location, "name"], f"expected: {writer.full_name}")]


def _sizes(reader: FixedType, writer: FixedType, location: list[str]) -> list[Incompatibility]:
    if reader.size == writer.size:
        return []
    detail = f"expected: {writer.size}, found: {reader.size}"
    return [_reason(Kind.FIXED_SIZE_MISMATCH, [*location, "size"], detail)]


def _symbols(reader: EnumType, writer: EnumType, location: list[str]) -> list[Incompatibility]:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if not missing or reader.default is not None:
        return []
    return [_reason(Kind.MISSING_ENUM_SYMBOLS, [*location, "symbols"], f"[{', '.join(missing)}]")]


def _mismatch(reader: AvroType, writer: AvroType, location: list[str]) -> Incompatibility:
    detail = f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}"
    return _reason(Kind.TYPE_MISMATCH, location, detail)


def _lacking(writer: AvroType) -> str:
    return f"reader union lacking writer type: {writer.kind.upper()}"


def _reason(kind: Kind, location: list[str], detail: str) -> Incompatibility:
    # The first token is the root's and is left out.
    path = "/" + "/".join(token.replace("~", "~0").replace("/", "~1") for token in location[1:])
    return Incompatibility(kind, path, detail)
