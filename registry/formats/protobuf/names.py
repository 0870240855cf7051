"""Resolves names of a ``.proto`` file: from the innermost scope outwards, in this file and its dependencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from registry.formats.protobuf.elements import Enum, Extend, Field, Message, ProtoFile
from registry.formats.protobuf.known import KNOWN_FILES, known_file

__all__ = ["SCALARS", "KnownType", "Names", "map_parts"]

_SCALARS: Final = (
    "bool bytes double float fixed32 fixed64 int32 int64 sfixed32 sfixed64 sint32 sint64 string uint32 uint64"
)
SCALARS: Final = frozenset(_SCALARS.split())


@dataclass(frozen=True, slots=True)
class KnownType:
    """A message or enum with its location. ``file`` is None for the schema itself."""

    type: Message | Enum
    package: str
    file: str | None

    @property
    def map_type(self) -> str | None:
        """The field type to write, if the type represents a map."""
        if not isinstance(self.type, Message) or not self.type.is_map_entry:
            return None
        parts = {field.name: field.type for field in self.type.fields}
        return f"map<{parts.get('key')}, {parts.get('value')}>"


def map_parts(type_: str) -> tuple[str, str] | None:
    """Key and value type of ``map<key, value>``."""
    if not (type_.startswith("map<") and type_.endswith(">")):
        return None
    key, _, value = type_[4:-1].partition(",")
    return key.strip(), value.strip()


class Names:
    """``types`` and ``extensions`` (settable options) of a file and its ``dependencies``, by full name."""

    def __init__(self, file: ProtoFile, dependencies: Mapping[str, ProtoFile]) -> None:
        self.package = file.package or ""
        self._types: dict[str, KnownType] = {}
        self._extensions: dict[str, Field] = {}
        for path, dependency in dependencies.items():
            self._add(dependency, path)
        self._add(file, None)

    def _add(self, file: ProtoFile, path: str | None) -> None:
        self._types.update(_types(file, path))
        self._extensions.update(_extensions(file))

    def type(self, full_name: str) -> KnownType | None:
        name = full_name.removeprefix(".")
        if (type_ := self._types.get(name)) is not None:
            return type_
        return _known_types().get(name) if name.startswith(("google.", "confluent.")) else None

    def extension(self, full_name: str) -> Field | None:
        name = full_name.removeprefix(".")
        if (extension := self._extensions.get(name)) is not None:
            return extension
        return _known_extensions().get(name) if name.startswith(("google.", "confluent.")) else None

    def resolve(self, name: str, scope: tuple[str, ...] = (), package: str | None = None) -> str | None:
        """The full name of ``name`` inside ``scope`` (names of messages, outermost first); None if it is unknown.

        ``package`` is the package of the scope, by default this file's.
        """
        return next(
            (candidate for candidate in self._candidates(name, scope, package) if self.type(candidate) is not None),
            None,
        )

    def resolve_extension(self, name: str, scope: tuple[str, ...] = ()) -> str | None:
        return next(
            (candidate for candidate in self._candidates(name, scope, None) if self.extension(candidate) is not None),
            None,
        )

    def _candidates(self, name: str, scope: tuple[str, ...], package: str | None) -> Iterator[str]:
        if name.startswith("."):
            yield name[1:]
            return
        space = self.package if package is None else package
        prefix = [*(space.split(".") if space else ()), *scope]
        while prefix:
            yield f"{'.'.join(prefix)}.{name}"
            prefix.pop()
        yield name


def _types(file: ProtoFile, path: str | None) -> Iterator[tuple[str, KnownType]]:
    package = file.package or ""
    pending: list[tuple[str, Message | Enum]] = [(f"{package}.{t.name}" if package else t.name, t) for t in file.types]
    while pending:
        name, type_ = pending.pop()
        yield name, KnownType(type_, package, path)
        if isinstance(type_, Message):
            pending += [(f"{name}.{inner.name}", inner) for inner in type_.types]


def _extensions(file: ProtoFile) -> Iterator[tuple[str, Field]]:
    prefix = f"{file.package}." if file.package else ""
    pending: list[tuple[str, list[Extend], list[Message]]] = [(prefix, file.extends, file.messages)]
    while pending:
        scope, extends, messages = pending.pop()
        for extend in extends:
            yield from ((scope + field.name, field) for field in extend.fields)
        for message in messages:
            inner = [type_ for type_ in message.types if isinstance(type_, Message)]
            pending.append((f"{scope}{message.name}.", message.extends, inner))


@cache
def _known_types() -> dict[str, KnownType]:
    return {name: type_ for path in KNOWN_FILES for name, type_ in _types(known_file(path), path)}


@cache
def _known_extensions() -> dict[str, Field]:
    return {name: field for path in KNOWN_FILES for name, field in _extensions(known_file(path))}
