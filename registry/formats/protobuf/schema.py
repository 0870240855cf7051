"""A Protobuf schema for the registry and the converters."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from registry.errors import InvalidSchema
from registry.formats.parsed import NO_REFERENCES
from registry.formats.protobuf.changes import COMPATIBLE, Change, message
from registry.formats.protobuf.compare import Side, changes
from registry.formats.protobuf.cursor import ProtoError
from registry.formats.protobuf.descriptors import descriptor_of, pool_of
from registry.formats.protobuf.elements import Enum, Message, ProtoFile
from registry.formats.protobuf.known import KNOWN_FILES, known_file
from registry.formats.protobuf.names import Names
from registry.formats.protobuf.normalize import UnknownType, normalized
from registry.formats.protobuf.parse import parse_text
from registry.formats.protobuf.text import write_text
from registry.formats.protobuf.without_extensions import without_extensions

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message as ProtobufMessage

__all__ = ["ProtobufSchema"]

_PREFIX = "Invalid schema of type PROTOBUF, details: "
_PATH = "schema.proto"


class ProtobufSchema:
    """``file`` has the parsed parts, ``references`` the texts of imports by path."""

    schema_type = "PROTOBUF"

    def __init__(self, file: ProtoFile, references: Mapping[str, str] = NO_REFERENCES) -> None:
        self.file = file
        self.references = references

    @classmethod
    def parse(cls, text: str, references: Mapping[str, str] = NO_REFERENCES, *, strict: bool = True) -> ProtobufSchema:
        """Parse the text of a file, or its descriptor in base64; raises InvalidSchema with line, column and reason.

        With ``strict`` every named type must exist.
        """
        schema = cls(_read(text), references)
        if strict:
            schema.normalized()
        return schema

    @cached_property
    def _dependencies(self) -> dict[str, ProtoFile]:
        return {path: _read(text) for path, text in self.references.items()}

    @cached_property
    def _names(self) -> Names:
        return Names(self.file, self._dependencies)

    @cached_property
    def canonical(self) -> str:
        return write_text(self.file)

    @property
    def resolved(self) -> str:
        return self.canonical

    @property
    def _effective(self) -> ProtoFile:
        """The file with the relevant messages: if this file only re-exports another (``import public``), that one."""
        file = self.file
        if file.types or file.imports or len(file.public_imports) != 1:
            return file
        (path,) = file.public_imports
        passed_on = self._dependencies.get(path) or (known_file(path) if path in KNOWN_FILES else None)
        return passed_on if passed_on is not None and passed_on.types else file

    @property
    def name(self) -> str | None:
        file = self._effective
        names = [type_.name for kind in (Message, Enum) for type_ in file.types if isinstance(type_, kind)]
        return _in_package(file, names[0]) if names else None

    @property
    def top_level_fields(self) -> frozenset[str]:
        return frozenset(field.name for message in self._effective.messages for field in message.fields)

    def formatted(self, form: str) -> str:
        if form == "serialized":
            try:
                described = descriptor_of("default", self.file, self._names)
            except UnknownType as error:
                raise InvalidSchema(f"{_PREFIX}{error}") from error
            return base64.b64encode(described.SerializeToString(deterministic=True)).decode()
        if form == "ignore_extensions":
            return write_text(without_extensions(self.file))
        return self.canonical

    def normalized(self) -> ProtobufSchema:
        try:
            text = write_text(normalized(self.file, self._names))
            made = ProtobufSchema(parse_text(text), self.references)
        except (UnknownType, ProtoError) as error:
            raise InvalidSchema(f"{_PREFIX}{error}") from error
        except RecursionError:
            raise InvalidSchema(f"{_PREFIX}nested too deep") from None
        # Not written again, because that would put defaults and JSON names after the other options.
        made.__dict__["canonical"] = text
        return made

    def check_fields(self) -> None:
        """Confluent builds descriptors here, which reveals duplicate names and numbers."""
        try:
            self._pool.FindFileByName(_PATH)
        except TypeError as error:
            raise InvalidSchema(f"{_PREFIX}{error}") from error

    # -- messages

    def message_indexes(self, full_name: str) -> list[int]:
        """The index path of a message: its index among the messages of the file, of the outer message, and so on.

        Raises KeyError if the file has no such message.
        """
        file = self._effective
        prefix = f"{file.package}." if file.package else ""
        indexes: list[int] = []
        messages = file.messages
        for part in full_name.removeprefix(prefix).split("."):
            index = next((index for index, message in enumerate(messages) if message.name == part), None)
            if index is None:
                raise KeyError(full_name)
            indexes.append(index)
            messages = _inner(messages[index])
        return indexes

    def message_at(self, indexes: Sequence[int]) -> str:
        """The full name of the message at an index path. An empty list is the first message. Raises IndexError."""
        names = []
        messages = self._effective.messages
        for index in indexes or [0]:
            if not 0 <= index < len(messages):
                raise IndexError(f"the schema has no message at {list(indexes)}")
            names.append(messages[index].name)
            messages = _inner(messages[index])
        return _in_package(self._effective, ".".join(names))

    @cached_property
    def _pool(self) -> DescriptorPool:
        try:
            return pool_of(_PATH, self.file, self._dependencies)
        except (UnknownType, TypeError) as error:
            raise InvalidSchema(f"{_PREFIX}{error}") from error

    def message_descriptor(self, full_name: str | None = None) -> Descriptor:
        """The descriptor of a message, by default of the first. Raises InvalidSchema if it can't be built."""
        name = full_name or self.message_at([])
        try:
            return self._pool.FindMessageTypeByName(name)
        except KeyError as error:
            raise InvalidSchema(f"{_PREFIX}the schema has no message {name}") from error
        except TypeError as error:
            raise InvalidSchema(f"{_PREFIX}{error}") from error

    def message_class(self, full_name: str | None = None) -> type[ProtobufMessage]:
        """A class that encodes and decodes a message, by default the first one. Raises InvalidSchema."""
        from google.protobuf.message_factory import GetMessageClass

        return GetMessageClass(self.message_descriptor(full_name))

    # -- compatibility

    @cached_property
    def _side(self) -> Side:
        return Side(self.file, self._names, self.references)

    def changes_from(self, earlier: ProtobufSchema) -> list[Change]:
        """All changes from ``earlier`` to this schema, compatible or not."""
        try:
            return changes(earlier._side, self._side)
        except RecursionError:
            raise InvalidSchema("The schemas are nested too deep to be compared") from None

    def reading_problems(self, writer: ProtobufSchema, *, lenient: bool = False) -> list[str]:
        return [message(change) for change in self.changes_from(writer) if change.kind not in COMPATIBLE]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProtobufSchema):
            return False
        return self.canonical == other.canonical and dict(self.references) == dict(other.references)

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __repr__(self) -> str:
        return f"ProtobufSchema({self.canonical!r})"


def _inner(message: Message) -> list[Message]:
    return [type_ for type_ in message.types if isinstance(type_, Message)]


def _in_package(file: ProtoFile, name: str) -> str:
    return f"{file.package}.{name}" if file.package else name


def _read(text: str) -> ProtoFile:
    try:
        return parse_text(text)
    except RecursionError:
        raise InvalidSchema(f"{_PREFIX}nested too deep") from None
    except ProtoError as error:
        described = _from_descriptor(text)
        if described is None:
            raise InvalidSchema(f"{_PREFIX}Could not parse Protobuf - {error}") from error
        return described


def _from_descriptor(text: str) -> ProtoFile | None:
    """A file sent as its descriptor in base64, as some clients do."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    from registry.formats.protobuf.described import file_of

    try:
        data = base64.b64decode(text, validate=True)
        if not data:
            return None
        return file_of(FileDescriptorProto.FromString(data))
    except (binascii.Error, ValueError, DecodeError):
        return None
