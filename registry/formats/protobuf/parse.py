"""Parses ``.proto`` text (proto2 and proto3); accepts and refuses the same as Wire's parser, which Confluent uses."""

from __future__ import annotations

from typing import Any, cast

from registry.formats.protobuf.cursor import Cursor
from registry.formats.protobuf.elements import (
    MAX_TAG,
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    Group,
    Label,
    Message,
    OneOf,
    Option,
    ProtoFile,
    Range,
    Reserved,
    Rpc,
    Service,
)
from registry.formats.protobuf.options import MAX_DEPTH, read_option, read_options

__all__ = ["parse_text"]


def parse_text(text: str) -> ProtoFile:
    """Parse the text. Raises ProtoError with line and column."""
    return _Parser(text).file()


class _Parser:
    def __init__(self, text: str) -> None:
        self._cursor = Cursor(text)
        self._file = ProtoFile()
        self._depth = 0
        self._type_names: set[str] = set()
        self._service_names: set[str] = set()

    def file(self) -> ProtoFile:
        first = True
        while not self._cursor.exhausted:
            if not self._cursor.take(";"):
                self._top(self._cursor.word(), first=first)
            first = False
        return self._file

    def _top(self, word: str, *, first: bool) -> None:
        cursor, file = self._cursor, self._file
        match word:
            case "package":
                file.package = cursor.name()
                cursor.require(";")
            case "import":
                self._import()
            case "syntax":
                self._syntax(first=first)
            case "option":
                file.options.append(self._option())
            case "message":
                self._add(file.types, self._type_names, self._message())
            case "enum":
                self._add(file.types, self._type_names, self._enum())
            case "service":
                self._add(file.services, self._service_names, self._service())
            case "extend":
                file.extends.append(self._extend())
            case "reserved":
                self._reserved()
            case "edition":
                cursor.fail("edition is not currently supported")
            case _:
                cursor.fail(f"unexpected label: {word}")

    def _add(self, declared: list[Any], names: set[str], made: Any) -> None:
        if made.name in names:
            self._cursor.fail(f"{made.name} is already defined")
        names.add(made.name)
        declared.append(made)

    def _import(self) -> None:
        cursor = self._cursor
        kind = None if cursor.peek() in "'\"" else cursor.word()
        if kind not in (None, "public", "weak"):
            cursor.fail("expected quoted string")
        path = cursor.string()
        cursor.require(";")
        if kind is None:
            self._file.imports.append(path)
        elif kind == "public":
            self._file.public_imports.append(path)

    def _syntax(self, *, first: bool) -> None:
        cursor = self._cursor
        if self._file.syntax is not None:
            cursor.fail("too many syntax definitions")
        cursor.require("=")
        if not first:
            cursor.fail("'syntax' element must be the first declaration in a file")
        syntax = cursor.string()
        if syntax not in ("proto2", "proto3"):
            cursor.fail(f"unexpected syntax: {syntax}")
        self._file.syntax = syntax
        cursor.require(";")

    def _option(self) -> Option:
        option = read_option(self._cursor, "=")
        self._cursor.require(";")
        return option

    def _message(self) -> Message:
        cursor = self._cursor
        self._depth += 1
        if self._depth > MAX_DEPTH:
            cursor.fail(f"nested too deep: more than {MAX_DEPTH} messages")
        made = Message(cursor.name())
        cursor.require("{")
        while not cursor.take("}"):
            if not cursor.take(";"):
                self._member(made, cursor.word())
        self._depth -= 1
        return made

    def _member(self, message: Message, word: str) -> None:
        match word:
            case "option":
                message.options.append(self._option())
            case "reserved":
                message.reserved.append(self._reserved())
            case "message":
                message.types.append(self._message())
            case "enum":
                message.types.append(self._enum())
            case "extend":
                message.extends.append(self._extend())
            case "oneof":
                message.oneofs.append(self._oneof())
            case "extensions":
                message.extensions.append(self._extensions())
            case _:
                made = self._field(word)
                if isinstance(made, Group):
                    message.groups.append(made)
                else:
                    message.fields.append(made)

    def _enum(self) -> Enum:
        cursor = self._cursor
        made = Enum(cursor.name())
        cursor.require("{")
        while not cursor.take("}"):
            if cursor.take(";"):
                continue
            word = cursor.identifier()
            if word == "option":
                made.options.append(self._option())
            elif word == "reserved":
                made.reserved.append(self._reserved())
            else:
                cursor.require("=")
                constant = Constant(word, cursor.integer(), read_options(cursor))
                cursor.require(";")
                made.constants.append(constant)
        return made

    def _service(self) -> Service:
        cursor = self._cursor
        made = Service(cursor.name(), [], [])
        cursor.require("{")
        while not cursor.take("}"):
            if cursor.take(";"):
                continue
            word = cursor.word()
            if word == "option":
                made.options.append(self._option())
            elif word == "rpc":
                made.rpcs.append(self._rpc())
            else:
                cursor.fail(f"unexpected label: {word}")
        return made

    def _rpc(self) -> Rpc:
        cursor = self._cursor
        name = cursor.name()
        request, request_streaming = self._streamed()
        if cursor.word() != "returns":
            cursor.fail("expected 'returns'")
        response, response_streaming = self._streamed()
        options: list[Option] = []
        if cursor.take("{"):
            while not cursor.take("}"):
                if cursor.take(";"):
                    continue
                if (word := cursor.word()) != "option":
                    cursor.fail(f"unexpected label: {word}")
                options.append(self._option())
        else:
            cursor.require(";")
        return Rpc(name, request, response, request_streaming, response_streaming, options)

    def _streamed(self) -> tuple[str, bool]:
        cursor = self._cursor
        cursor.require("(")
        word = cursor.word()
        streaming = word == "stream"
        type_name = cursor.type(None if streaming else word)
        cursor.require(")")
        return type_name, streaming

    def _extend(self) -> Extend:
        cursor = self._cursor
        made = Extend(cursor.name(), [])
        cursor.require("{")
        while not cursor.take("}"):
            if cursor.take(";"):
                continue
            field = self._field(cursor.word())
            if isinstance(field, Field):
                made.fields.append(field)
        return made

    def _field(self, word: str) -> Field | Group:
        cursor = self._cursor
        label: Label | None = None
        if word in ("required", "optional", "repeated"):
            if word == "required" and self._file.syntax == "proto3":
                cursor.fail("'required' label forbidden in proto3 field declarations")
            label = cast("Label", word)
            type_ = cursor.type()
        else:
            if self._file.syntax != "proto3" and not (word == "map" and cursor.peek() == "<"):
                cursor.fail(f"unexpected label: {word}")
            type_ = cursor.type(word)
        if type_.startswith("map<") and label is not None:
            cursor.fail("'map' type cannot have label")
        return self._group(label) if type_ == "group" else self._plain_field(label, type_)

    def _plain_field(self, label: Label | None, type_: str) -> Field:
        cursor = self._cursor
        name = cursor.identifier()
        cursor.require("=")
        made = Field(label, type_, name, cursor.integer(), read_options(cursor))
        cursor.require(";")
        for option in made.options:
            if option.name == "default":
                made.default = str(option.value)
            elif option.name == "json_name":
                made.json_name = str(option.value)
        made.options = [option for option in made.options if option.name not in ("default", "json_name")]
        return made

    def _group(self, label: Label | None) -> Group:
        cursor = self._cursor
        name = cursor.word()
        cursor.require("=")
        made = Group(label, name, cursor.integer(), [])
        cursor.require("{")
        while not cursor.take("}"):
            field = self._field(cursor.word())
            if not isinstance(field, Field):
                cursor.fail("expected field declaration, was a group")
            made.fields.append(field)
        return made

    def _oneof(self) -> OneOf:
        cursor = self._cursor
        made = OneOf(cursor.name(), [], [], [])
        cursor.require("{")
        while not cursor.take("}"):
            word = cursor.type()
            if word == "group":
                made.groups.append(self._group(None))
            elif word == "option":
                made.options.append(self._option())
            else:
                made.fields.append(self._plain_field(None, word))
        return made

    def _end_of_range(self) -> int:
        cursor = self._cursor
        if cursor.word() != "to":
            cursor.fail("expected ',', ';', or 'to'")
        text = cursor.word()
        if text == "max":
            return MAX_TAG
        if not text.isdecimal() or len(text) > 10 or int(text) >= 1 << 31:
            cursor.fail(f"expected the end of a range but was {text[:50]}")
        return int(text)

    def _reserved(self) -> Reserved:
        cursor = self._cursor
        made = Reserved([])
        while True:
            if cursor.peek() in "'\"":
                made.values.append(cursor.string())
            else:
                first = cursor.integer()
                made.values.append(first if cursor.peek() in ",;" else Range(first, self._end_of_range()))
            if not self._more():
                return made

    def _more(self) -> bool:
        char = self._cursor.char()
        if char not in ",;":
            self._cursor.fail("expected ',' or ';'")
        return char == ","

    def _extensions(self) -> Extensions:
        cursor = self._cursor
        made = Extensions([], [])
        while True:
            first = cursor.integer()
            made.values.append(first if cursor.peek() in ",;[" else Range(first, self._end_of_range()))
            if cursor.peek() == "[":
                made.options = read_options(cursor)
                cursor.require(";")
                return made
            if not self._more():
                return made
