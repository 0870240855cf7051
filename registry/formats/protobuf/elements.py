"""The parts of a ``.proto`` file as written: names unresolved, in the order of the text.

They come from text instead of descriptors, because the canonical text keeps what descriptors lose: the written names of
types, unknown options, the order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

__all__ = [
    "MAX_TAG",
    "Constant",
    "Enum",
    "Extend",
    "Extensions",
    "Field",
    "Group",
    "Label",
    "Message",
    "OneOf",
    "Option",
    "OptionKind",
    "Primitive",
    "ProtoFile",
    "Range",
    "Reserved",
    "Rpc",
    "Service",
]

MAX_TAG = 536_870_911

Label = Literal["required", "optional", "repeated"]
OptionKind = Literal["string", "boolean", "number", "enum", "map", "list", "option"]


class Range(NamedTuple):
    first: int
    last: int


@dataclass(slots=True)
class Primitive:
    """A boolean, enum or number inside a map or list of an option; strings are plain strings."""

    kind: OptionKind
    value: str


@dataclass(slots=True)
class Option:
    """``value`` is text, a dict (``map``), a list, or the next Option of a dotted name (``option``)."""

    name: str
    kind: OptionKind
    value: Any
    parenthesized: bool = False


@dataclass(slots=True)
class Reserved:
    values: list[str | int | Range]


@dataclass(slots=True)
class Extensions:
    values: list[int | Range]
    options: list[Option]


@dataclass(slots=True)
class Field:
    """``default`` and ``json_name`` look like options in the text but are not."""

    label: Label | None
    type: str
    name: str
    tag: int
    options: list[Option]
    default: str | None = None
    json_name: str | None = None


@dataclass(slots=True)
class Group:
    label: Label | None
    name: str
    tag: int
    fields: list[Field]


@dataclass(slots=True)
class OneOf:
    name: str
    fields: list[Field]
    groups: list[Group]
    options: list[Option]


@dataclass(slots=True)
class Extend:
    name: str
    fields: list[Field]


@dataclass(slots=True)
class Constant:
    name: str
    tag: int
    options: list[Option]


@dataclass(slots=True, eq=False)
class Enum:
    name: str
    constants: list[Constant] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Message:
    name: str
    types: list[Message | Enum] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)

    @property
    def is_map_entry(self) -> bool:
        """Whether it represents a map field; protoc generates such messages."""
        map_entry = next((option for option in self.options if option.name == "map_entry"), None)
        return map_entry is not None and str(map_entry.value).lower() == "true"


@dataclass(slots=True)
class Rpc:
    name: str
    request: str
    response: str
    request_streaming: bool
    response_streaming: bool
    options: list[Option]


@dataclass(slots=True)
class Service:
    name: str
    rpcs: list[Rpc]
    options: list[Option]


@dataclass(slots=True, eq=False)
class ProtoFile:
    syntax: str | None = None
    package: str | None = None
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    types: list[Message | Enum] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)

    @property
    def messages(self) -> list[Message]:
        return [type_ for type_ in self.types if isinstance(type_, Message)]
