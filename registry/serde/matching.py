"""Matches parts of a reader's schema with the writer's; shared by records and columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from registry.formats.avro.compatibility import incompatibilities
from registry.formats.avro.model import AvroType, Field, FixedType, NamedType, RecordType
from registry.serde.logical import decimal_of, logical_of

__all__ = ["field_places", "matching_branch", "mismatch"]


def matching_branch(writer: AvroType, readers: Sequence[AvroType]) -> int | None:
    """The reader's branch for a writer's type: the same type first, then the first that can read it."""
    for index, reader in enumerate(readers):
        if reader.kind == writer.kind and not isinstance(reader, NamedType):
            return index
        if isinstance(reader, NamedType) and isinstance(writer, NamedType) and reader.full_name == writer.full_name:
            return index
    return next((p for p, reader in enumerate(readers) if not incompatibilities(reader, writer)), None)


def field_places(writer: RecordType, reader: RecordType) -> list[tuple[Field, int | None]]:
    """Each field of the reader with the index of the writer's field it is read from, by name or alias; None without
    one.
    """
    indexes = {field.name: index for index, field in enumerate(writer.fields)}
    return [
        (field, next((indexes[name] for name in (field.name, *field.aliases) if name in indexes), None))
        for field in reader.fields
    ]


def mismatch(writer: AvroType, reader: AvroType) -> str | None:
    """Why values of a type without fields, items or branches can't be read as another; None if they can."""
    if isinstance(writer, FixedType) and isinstance(reader, FixedType) and writer.size != reader.size:
        return f"a fixed of {writer.size} bytes cannot be read as one of {reader.size}"
    if incompatibilities(reader, dataclasses.replace(writer)):
        return f"{writer.kind} cannot be read as {reader.kind}"
    if _digits(writer) != _digits(reader):
        return f"a {_shown(writer)} cannot be read as a {_shown(reader)}: precision and scale must be the same"
    return None


def _digits(type_: AvroType) -> tuple[int, int] | None:
    return decimal_of(type_) if logical_of(type_) == "decimal" else None


def _shown(type_: AvroType) -> str:
    digits = _digits(type_)
    return type_.kind if digits is None else f"decimal({digits[0]}, {digits[1]})"
