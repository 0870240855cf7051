"""Explanations for Avro: field, rule and fix."""

from __future__ import annotations

import json
from typing import Any

from registry.explain.explanation import Explanation, Sides
from registry.formats.avro.compatibility import AmbiguousField, Incompatibility, Kind, incompatibilities
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
from registry.formats.avro.schema import AvroSchema

__all__ = ["explained"]


def explained(reader: AvroSchema, writer: AvroSchema, sides: Sides) -> list[Explanation]:
    """Why ``reader`` cannot read data of ``writer``."""
    try:
        reasons = incompatibilities(reader.type, writer.type)
    except AmbiguousField as error:
        fix = "let the aliases of a field name only one field of the other schema"
        return [Explanation("the schema", str(error), fix, "AMBIGUOUS_FIELD", "")]
    return [_explanation(reader.type, writer.type, reason, sides) for reason in reasons]


class _Context:
    """Follows a path into the reader's schema: the current field, and the types on both sides, if found."""

    def __init__(self, reader: AvroType, writer: AvroType, path: str) -> None:
        self.reader: AvroType | None = reader
        self.writer: AvroType | None = writer
        self.field: Field | None = None
        self.record: RecordType | None = None
        names: list[str] = []
        tokens = [token for token in path.split("/") if token]
        while tokens:
            token = tokens.pop(0)
            if token == "fields" and tokens and isinstance(self.reader, RecordType):
                self._enter(int(tokens.pop(0)), names)
            elif token == "type" and self.field is not None:
                self.reader = self.field.type
            elif token in ("items", "values"):
                names.append("[]" if token == "items" else "{}")
                self.reader, self.writer = _inner(self.reader), _inner(self.writer)
            elif token.isdigit():
                self._branch(int(token))
        start = reader.name if isinstance(reader, NamedType) else reader.kind
        self.name = ".".join([start, *names]).replace(".[]", "[]").replace(".{}", "{}")

    def _enter(self, number: int, names: list[str]) -> None:
        assert isinstance(self.reader, RecordType)
        self.record, self.field = self.reader, self.reader.fields[number]
        names.append(self.field.name)
        written = None
        if isinstance(self.writer, RecordType):
            every = [self.writer.field(name) for name in (self.field.name, *self.field.aliases)]
            written = next((field for field in every if field is not None), None)
        self.writer = None if written is None else written.type
        self.reader = self.field.type

    def _branch(self, number: int) -> None:
        """Go to a branch of the writer's union."""
        if isinstance(self.writer, UnionType) and number < len(self.writer.branches):
            self.writer = self.writer.branches[number]


def _inner(type_: AvroType | None) -> AvroType | None:
    match type_:
        case ArrayType():
            return type_.items
        case MapType():
            return type_.values
    return None


def _shown(type_: AvroType | None) -> str:
    match type_:
        case None:
            return "something else"
        case UnionType():
            return "[" + ", ".join(_shown(branch) for branch in type_.branches) + "]"
        case NamedType():
            return f"{type_.kind} {type_.full_name}"
        case ArrayType():
            return f"array of {_shown(type_.items)}"
        case MapType():
            return f"map of {_shown(type_.values)}"
    return type_.kind


def _example(type_: AvroType) -> Any:
    """An example default for a type, for the user to improve."""
    match type_:
        case UnionType() if type_.branches:
            return _example(type_.branches[0])
        case ArrayType():
            return []
        case MapType() | RecordType():
            return {}
        case EnumType() if type_.symbols:
            return type_.symbols[0]
        case FixedType():
            return "\u0000" * type_.size
    return {"null": None, "boolean": False, "int": 0, "long": 0, "float": 0.0, "double": 0.0}.get(type_.kind, "")


def _explanation(reader: AvroType, writer: AvroType, reason: Incompatibility, sides: Sides) -> Explanation:
    context = _Context(reader, writer, reason.path)
    problem, fix = _words(context, reason, sides)
    return Explanation(context.name, problem, fix, reason.kind.value, reason.path)


def _words(context: _Context, reason: Incompatibility, sides: Sides) -> tuple[str, str]:
    match reason.kind:
        case Kind.READER_FIELD_MISSING_DEFAULT_VALUE:
            return _missing_default(context, sides)
        case Kind.TYPE_MISMATCH:
            return _types(context, sides)
        case Kind.MISSING_UNION_BRANCH:
            return _branch(context, reason, sides)
        case Kind.MISSING_ENUM_SYMBOLS:
            return _symbols(reason, sides)
        case Kind.NAME_MISMATCH:
            return _name(context, reason, sides)
    problem = f"the fixed is of another size in {sides.reader} than in {sides.writer} ({reason.detail})"
    return problem, "a fixed keeps its size for good: keep it, or add a field of a new fixed type"


def _missing_default(context: _Context, sides: Sides) -> tuple[str, str]:
    assert context.field is not None
    name = context.field.name
    if sides.forward:
        problem = f"{sides.reader} needs the field {name}, which has no default there; {sides.writer} does not write it"
        return problem, f"keep the field {name}: only a field that has a default in the old schemas may go"
    problem = f"the field {name} is new and has no default; data written with {sides.writer} does not have it"
    default = json.dumps(_example(context.field.type))
    hint = f'give it a default, for example "default": {default}'
    if not isinstance(context.field.type, UnionType):
        hint += f', or make it optional: "type": ["null", {json.dumps(context.field.type.kind)}], "default": null'
    return problem, f"{hint}; a renamed field names its old name in aliases"


def _types(context: _Context, sides: Sides) -> tuple[str, str]:
    problem = f"{sides.reader} has {_shown(context.reader)} here, {sides.writer} wrote {_shown(context.writer)}"
    if sides.forward:
        return problem, "keep the type: what old readers cannot read must go into a new field"
    widened = "a type may only be widened: int to long to float to double, string and bytes to each other"
    return problem, f"{widened}; or make it a union with the old type in it; or add a new field beside the old one"


def _branch(context: _Context, reason: Incompatibility, sides: Sides) -> tuple[str, str]:
    lacking = reason.detail.rpartition(" ")[2].lower()
    problem = f"{sides.writer} may write {_shown(context.writer) if context.writer else lacking} here ({lacking}), for which the "
    problem += f"union in {sides.reader} has no branch"
    if sides.forward:
        return problem, f"take {lacking} out of the union again: old readers do not know it"
    return problem, f"put {lacking} back into the union"


def _symbols(reason: Incompatibility, sides: Sides) -> tuple[str, str]:
    symbols = reason.detail.strip("[]")
    problem = f"{sides.writer} may write the symbols {symbols}, which {sides.reader} does not know"
    if sides.forward:
        return (
            problem,
            "old readers take unknown symbols only where their enum has a default: leave the new symbols out",
        )
    return (
        problem,
        f"keep the symbols {symbols}, or give the enum a default symbol that stands for those it does not know",
    )


def _name(context: _Context, reason: Incompatibility, sides: Sides) -> tuple[str, str]:
    old = reason.detail.removeprefix("expected: ")
    mine = context.reader.full_name if isinstance(context.reader, NamedType) else "another name"
    problem = f"the type is called {mine} in {sides.reader} and {old} in {sides.writer}"
    if sides.forward:
        return problem, f"keep the name {mine}: old readers know no other"
    return problem, f'keep the name {old}, or add "aliases": ["{old}"] to {mine}'
