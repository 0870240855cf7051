"""Explanations for Protobuf: field, rule and fix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.explain.explanation import Explanation, Sides
from registry.formats.protobuf.changes import COMPATIBLE
from registry.formats.protobuf.elements import Message
from registry.formats.protobuf.schema import ProtobufSchema

__all__ = ["explained"]

_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "PACKAGE_CHANGED": (
        "the package is not the same in {reader} and {writer}",
        "keep the package: it is part of every name",
    ),
    "MESSAGE_REMOVED": (
        "{writer} has the message {where}, {reader} does not",
        "keep the message, even if nothing uses it any more",
    ),
    "FIELD_KIND_CHANGED": (
        "the field is of another kind (scalar, message or map) in {reader} than in {writer}",
        "keep the field's type and add a new field with a number of its own; reserve the old number when it goes",
    ),
    "FIELD_SCALAR_KIND_CHANGED": (
        "the field's bytes mean another thing in {reader} than in {writer}",
        (
            "change only within a family: int32, int64, uint32, uint64, bool and enums; sint32 and sint64; string and bytes; fixed32 and "
            "sfixed32; fixed64 and sfixed64. Else add a new field with a number of its own"
        ),
    ),
    "FIELD_NAMED_TYPE_CHANGED": (
        "the field is of another message in {reader} than in {writer}, or of one that changed incompatibly",
        "keep the message the field is of, or add a new field with a number of its own",
    ),
    "FIELD_NUMERIC_LABEL_CHANGED": (
        "the field is repeated on one side and single on the other, and numbers side by side are packed",
        "keep the label, or add a new field with a number of its own",
    ),
    "REQUIRED_FIELD_ADDED": (
        "{reader} requires the field, which {writer} does not write",
        "make it optional: required fields can never be added or removed",
    ),
    "REQUIRED_FIELD_REMOVED": (
        "{writer} has a required field that {reader} does not have",
        "keep the field: required fields can never be added or removed",
    ),
    "ONEOF_FIELD_REMOVED": (
        "{writer} may set this member of the oneof, which {reader} does not have: it would see the oneof unset",
        "keep the member, or remove the whole oneof",
    ),
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": (
        "{writer} could set several of these fields at once; in {reader} only one counts",
        "move at most one field into a oneof, and into a new one",
    ),
    "FIELD_MOVED_TO_EXISTING_ONEOF": (
        "{writer} could set this field beside members of the oneof; in {reader} only one counts",
        "leave the field outside the oneof, or move it into a new one",
    ),
}


def explained(reader: ProtobufSchema, writer: ProtobufSchema, sides: Sides) -> list[Explanation]:
    """Why ``reader`` misreads data of ``writer``."""
    explanations = []
    for change in reader.changes_from(writer):
        if change.kind in COMPATIBLE:
            continue
        where = (
            _where(reader, change.path) or _where(writer, change.path) or change.path.removeprefix("#/") or "the file"
        )
        words = {"reader": sides.reader, "writer": sides.writer, "where": where}
        problem, fix = _WORDS[change.kind]
        explanations.append(Explanation(where, problem.format(**words), fix, change.kind, change.path))
    return explanations


def _where(schema: ProtobufSchema, path: str) -> str | None:
    """``#/Order/choice/3`` as ``Order.card (3)``; None if the schema has no such field."""
    names = [part for part in path.removeprefix("#/").split("/") if part]
    messages = schema.file.messages
    innermost: Message | None = None
    told: list[str] = []
    for part in names:
        inner = next((message for message in messages if message.name == part), None)
        if inner is not None:
            innermost, messages = inner, [type_ for type_ in inner.types if isinstance(type_, Message)]
            told.append(part)
        elif part.isdigit() and innermost is not None:
            every = [*innermost.fields, *(field for oneof in innermost.oneofs for field in oneof.fields)]
            name = next((field.name for field in every if field.tag == int(part)), None)
            return None if name is None else f"{'.'.join(told)}.{name} ({part})"
        elif innermost is None or part not in {oneof.name for oneof in innermost.oneofs}:
            return None
    return ".".join([*told, *([names[-1]] if names and told and names[-1] != told[-1] else [])]) or None
