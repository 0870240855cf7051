"""An Avro schema for the registry and the codecs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from registry.errors import InvalidSchema
from registry.formats.avro.compatibility import AmbiguousField, Incompatibility, Kind, incompatibilities
from registry.formats.avro.model import AvroType, NamedType, RecordType
from registry.formats.avro.parse import SchemaParseError, parse_text
from registry.formats.avro.text import normalized, write_text
from registry.formats.parsed import NO_REFERENCES

__all__ = ["AvroSchema"]


class AvroSchema:
    """A parsed schema with the root ``type``. Schemas with equal canonical text are equal."""

    schema_type = "AVRO"

    def __init__(self, type: AvroType, referenced: frozenset[str] = frozenset()) -> None:  # noqa: A002
        """``referenced`` are full names defined in references; the canonical text only names them."""
        self.type = type
        self._referenced = referenced

    @classmethod
    def parse(cls, text: str, references: Mapping[str, str] = NO_REFERENCES, *, strict: bool = True) -> AvroSchema:
        """Parse schema text; raises InvalidSchema with the place and the reason."""
        names: dict[str, NamedType] = {}
        try:
            for reference in dict.fromkeys(references.values()):
                parse_text(reference, names, strict=False)
            referenced = frozenset(names)
            return cls(parse_text(text, names, strict=strict), referenced)
        except SchemaParseError as error:
            raise InvalidSchema(f"Invalid schema of type AVRO, details: {error}") from error
        except RecursionError:
            raise InvalidSchema("Invalid schema of type AVRO, details: nested too deep") from None

    @cached_property
    def canonical(self) -> str:
        return write_text(self.type, self._referenced)

    @cached_property
    def resolved(self) -> str:
        return write_text(self.type) if self._referenced else self.canonical

    def normalized(self) -> AvroSchema:
        return AvroSchema(normalized(self.type), self._referenced)

    @property
    def name(self) -> str | None:
        return self.type.full_name if isinstance(self.type, NamedType) else self.type.kind

    @property
    def top_level_fields(self) -> frozenset[str]:
        return frozenset(field.name for field in self.type.fields) if isinstance(self.type, RecordType) else frozenset()

    def formatted(self, form: str) -> str:
        return self.resolved if form == "resolved" else self.canonical

    def check_fields(self) -> None:
        for name in sorted(self.top_level_fields):
            if name.startswith("$$"):
                raise InvalidSchema(f"Field names cannot start with $$ prefix: {name}")

    def reading_problems(self, writer: AvroSchema, *, lenient: bool = False) -> list[str]:
        try:
            return [_message(reason) for reason in incompatibilities(self.type, writer.type)]
        except AmbiguousField as error:
            return [f"Unexpected exception during compatibility check: {error}"]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and self.resolved == other.resolved

    def __hash__(self) -> int:
        return hash(self.resolved)

    def __repr__(self) -> str:
        return f"AvroSchema({self.resolved})"


def _message(reason: Incompatibility) -> str:
    """Confluent's message. A ``%`` in a name is doubled, because the message is a format string."""
    path, detail = reason.path.replace("%", "%%"), reason.detail.replace("%", "%%")
    match reason.kind:
        case Kind.FIXED_SIZE_MISMATCH:
            text = f"The size of FIXED type field at path '{path}' in the %s schema does not match with the %s schema"
        case Kind.TYPE_MISMATCH:
            text = f"The type (path '{path}') of a field in the %s schema does not match with the %s schema"
        case Kind.NAME_MISMATCH:
            text = f"The name of the schema has changed (path '{path}')"
        case Kind.MISSING_ENUM_SYMBOLS:
            text = f"The %s schema is missing enum symbols '{detail}' at path '{path}' in the %s schema"
        case Kind.MISSING_UNION_BRANCH:
            text = f"The %s schema is missing a type inside a union field at path '{path}' in the %s schema"
        case Kind.READER_FIELD_MISSING_DEFAULT_VALUE:
            text = (
                f"The field '{detail}' at path '{path}' in the %s schema has no default value "
                "and is missing in the %s schema"
            )
    return f"{{errorType:'{reason.kind.value}', description:'{text}', additionalInfo:'{detail}'}}"
