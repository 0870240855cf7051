"""Compares two Protobuf schemas by the rules of Confluent's ``SchemaDiff`` (8.5).

Fields are compared by number regardless of position, messages and enums by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from registry.formats.protobuf.changes import COMPATIBLE, Change
from registry.formats.protobuf.elements import Enum, Field, Label, Message, OneOf, ProtoFile
from registry.formats.protobuf.names import SCALARS, KnownType, Names, map_parts

__all__ = ["Side", "changes"]

_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool"), "number"),
    **dict.fromkeys(("sint32", "sint64"), "signed"),
    **dict.fromkeys(("string", "bytes"), "text"),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed32"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed64"),
    "float": "float",
    "double": "double",
}
"""Types whose bytes are mutually readable; an enum counts as a number."""


class Side:
    """One of the two schemas: its file, its names, and the texts of its references by path."""

    def __init__(self, file: ProtoFile, names: Names, references: Mapping[str, str]) -> None:
        self.file = file
        self.names = names
        self.references = references

    def origin(self, known: KnownType) -> str | None:
        """A key by which two types have the same origin; None if it is unknown."""
        return "" if known.file is None else self.references.get(known.file)


def changes(original: Side, update: Side) -> list[Change]:
    """All changes, compatible or not."""
    context = _Context(original, update)
    if original.file.package != update.file.package:
        context.add("PACKAGE_CHANGED")
    _types(context, original.file.types, update.file.types)
    return context.changes


class _Context:
    """The position of the comparison: ``path`` for results, ``scope`` and packages for resolving names."""

    def __init__(self, original: Side, update: Side) -> None:
        self.original, self.update = original, update
        self.packages = (original.names.package, update.names.package)
        self.path: tuple[str, ...] = ()
        self.scope: tuple[str, ...] = ()
        self.changes: list[Change] = []
        self.under_way: set[int] = set()
        self.compared: dict[tuple[int, int], list[Change]] = {}

    @contextmanager
    def at(self, *path: str, named: bool = False) -> Iterator[None]:
        outer = self.path, self.scope
        self.path = (*self.path, *path)
        if named:
            self.scope = (*self.scope, *path)
        try:
            yield
        finally:
            self.path, self.scope = outer

    def add(self, kind: str) -> None:
        self.changes.append(Change(kind, "#/" + "/".join(self.path)))

    def inside(self, local_name: str, packages: tuple[str, str]) -> _Context:
        """A context for a message elsewhere that has the same name in both."""
        made = _Context(self.original, self.update)
        made.packages = packages
        made.path = made.scope = tuple(local_name.split("."))
        made.under_way = set(self.under_way)
        made.compared = self.compared
        return made

    def before(self, name: str) -> KnownType | None:
        full_name = self.original.names.resolve(name, self.scope, self.packages[0])
        return None if full_name is None else self.original.names.type(full_name)

    def after(self, name: str) -> KnownType | None:
        full_name = self.update.names.resolve(name, self.scope, self.packages[1])
        return None if full_name is None else self.update.names.type(full_name)


def _types(context: _Context, original: Sequence[Message | Enum], update: Sequence[Message | Enum]) -> None:
    before, after = (
        {type_.name: type_ for type_ in types if isinstance(type_, Message)} for types in (original, update)
    )
    indexes = [{name: index for index, name in enumerate(side)} for side in (before, after)]
    for name in {**before, **after}:
        with context.at(name, named=True):
            old, new = before.get(name), after.get(name)
            if old is not None and new is not None:
                _messages(context, old, new)
                if indexes[0][name] != indexes[1][name]:
                    context.add("MESSAGE_MOVED")
            else:
                known = context.before(name) if new is None else context.after(name)
                if known is not None and known.map_type is None:
                    context.add("MESSAGE_REMOVED" if new is None else "MESSAGE_ADDED")
    enums = [{type_.name: type_ for type_ in types if isinstance(type_, Enum)} for types in (original, update)]
    for name in {**enums[0], **enums[1]}:
        with context.at(name, named=True):
            if name not in enums[1]:
                context.add("ENUM_REMOVED")
            elif name not in enums[0]:
                context.add("ENUM_ADDED")
            else:
                _enums(context, enums[0][name], enums[1][name])


def _enums(context: _Context, original: Enum, update: Enum) -> None:
    before, after = ({constant.tag: constant.name for constant in enum.constants} for enum in (original, update))
    for tag in {**before, **after}:
        if tag not in after:
            change = "REMOVED"
        elif tag not in before:
            change = "ADDED"
        elif before[tag] != after[tag]:
            change = "CHANGED"
        else:
            continue
        with context.at(str(tag)):
            context.add(f"ENUM_CONST_{change}")


class _Fields:
    """The fields of a message by number, each with its oneof."""

    def __init__(self, message: Message) -> None:
        self.by_tag: dict[int, Field] = {field.tag: field for field in message.fields}
        self.oneof_of: dict[int, str] = {}
        self.oneofs: dict[str, OneOf] = {}
        for oneof in message.oneofs:
            self.oneofs[oneof.name] = oneof
            for field in oneof.fields:
                self.by_tag[field.tag] = field
                self.oneof_of[field.tag] = oneof.name


def _messages(context: _Context, original: Message, update: Message) -> None:
    if id(original) not in context.under_way:
        context.under_way.add(id(original))
        before, after = _Fields(original), _Fields(update)
        _exclusions(context, before, update)
        for name in sorted({*before.oneofs, *after.oneofs}):
            with context.at(name):
                if name not in after.oneofs:
                    context.add("ONEOF_REMOVED")
                elif name not in before.oneofs:
                    context.add("ONEOF_ADDED")
        gone = {
            name
            for name, oneof in before.oneofs.items()
            if name not in after.oneofs and not any(field.tag in after.by_tag for field in oneof.fields)
        }
        for tag in sorted({*before.by_tag, *after.by_tag}):
            _field(context, tag, before, after, gone)
        context.under_way.discard(id(original))
    _types(context, original.types, update.types)


def _exclusions(context: _Context, before: _Fields, update: Message) -> None:
    """Find fields that could be set together before and can't be now."""
    for oneof in update.oneofs:
        groups: set[str | int] = set()
        moved = 0
        for field in oneof.fields:
            if (known := before.oneof_of.get(field.tag)) is not None:
                groups.add(known)
            elif field.tag in before.by_tag:
                groups.add(field.tag)
                moved += 1
        if len(groups) > 1:
            with context.at(oneof.name):
                context.add("MULTIPLE_FIELDS_MOVED_TO_ONEOF" if moved > 1 else "FIELD_MOVED_TO_EXISTING_ONEOF")


def _field(context: _Context, tag: int, before: _Fields, after: _Fields, gone: set[str]) -> None:
    """Compare one number. ``gone`` are oneofs without remaining fields, which is harmless."""
    old, new = before.by_tag.get(tag), after.by_tag.get(tag)
    oneof_before, oneof_after = before.oneof_of.get(tag), after.oneof_of.get(tag)
    if new is None:
        assert old is not None
        if oneof_before is None:
            with context.at(str(tag)):
                context.add("REQUIRED_FIELD_REMOVED" if old.label == "required" else "FIELD_REMOVED")
        elif oneof_before not in gone:
            with context.at(oneof_before, str(tag)):
                context.add("ONEOF_FIELD_REMOVED")
    elif old is None:
        with context.at(*([oneof_after] if oneof_after else []), str(tag)):
            if oneof_after is not None:
                context.add("ONEOF_FIELD_ADDED")
            else:
                context.add("REQUIRED_FIELD_ADDED" if new.label == "required" else "FIELD_ADDED")
    else:
        if oneof_before is not None and oneof_after is None:
            with context.at(str(tag)):
                context.add("ONEOF_FIELD_MOVED_TO_TOP_LEVEL")
        with context.at(*([oneof_after] if oneof_after else []), str(tag)):
            if old.name != new.name:
                context.add("FIELD_NAME_CHANGED")
            _field_types(context, old.label, new.label, old.type, new.type)


def _field_types(
    context: _Context, label_before: Label | None, label_after: Label | None, before: str, after: str
) -> None:
    known_before, known_after = context.before(before), context.after(after)
    if known_before is not None and known_before.map_type is not None:
        before = known_before.map_type
    if known_after is not None and known_after.map_type is not None:
        after = known_after.map_type
    kinds = _kind(before, known_before), _kind(after, known_after)
    if kinds[0] != kinds[1]:
        context.add("FIELD_KIND_CHANGED")
    elif kinds[0] == "scalar":
        _scalars(context, label_before, label_after, _KINDS.get(before, "number"), _KINDS.get(after, "number"))
    elif kinds[0] == "map":
        key_before, value_before = map_parts(before) or ("", "")
        key_after, value_after = map_parts(after) or ("", "")
        _field_types(context, None, None, key_before, key_after)
        _field_types(context, None, None, value_before, value_after)
    else:
        _named_types(context, before, after)


def _kind(type_: str, known: KnownType | None) -> str:
    if type_ in SCALARS or (known is not None and isinstance(known.type, Enum)):
        return "scalar"
    return "map" if map_parts(type_) is not None else "message"


def _scalars(context: _Context, label_before: Label | None, label_after: Label | None, before: str, after: str) -> None:
    if before != after:
        context.add("FIELD_SCALAR_KIND_CHANGED")
    elif label_before is not None and label_after is not None and label_before != label_after:
        # Repeated numbers are packed; repeated texts are not.
        context.add("FIELD_STRING_OR_BYTES_LABEL_CHANGED" if before == "text" else "FIELD_NUMERIC_LABEL_CHANGED")


def _named_types(context: _Context, before: str, after: str) -> None:
    full_before = context.original.names.resolve(before, context.scope, context.packages[0])
    full_after = context.update.names.resolve(after, context.scope, context.packages[1])
    old = None if full_before is None else context.original.names.type(full_before)
    new = None if full_after is None else context.update.names.type(full_after)
    if full_before is None or full_after is None or old is None or new is None:
        if before != after:
            context.add("FIELD_NAMED_TYPE_CHANGED")
        return
    local_before = full_before.removeprefix(f"{old.package}.")
    if local_before != full_after.removeprefix(f"{new.package}."):
        context.add("FIELD_NAMED_TYPE_CHANGED")
        return
    origins = context.original.origin(old), context.update.origin(new)
    if origins[0] is not None and origins[0] == origins[1]:
        return  # both are from this schema, where they are compared anyway, or from the same other schema
    if not isinstance(old.type, Message) or not isinstance(new.type, Message):
        return
    pair = (id(old.type), id(new.type))
    result = context.compared.get(pair)
    if result is None:
        inner = context.inside(local_before, (old.package, new.package))
        _messages(inner, old.type, new.type)
        result = context.compared[pair] = inner.changes
    context.changes += result
    if any(change.kind not in COMPATIBLE for change in result):
        context.add("FIELD_NAMED_TYPE_CHANGED")
