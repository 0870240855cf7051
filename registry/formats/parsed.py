"""What the registry, its client and the converters ask of a schema format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

__all__ = ["NO_REFERENCES", "ParsedSchema", "Parser", "Reference"]

NO_REFERENCES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that this one builds on, under the name it calls it: a full name, a URI, or an import's path."""

    name: str
    subject: str
    version: int

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "subject": self.subject, "version": self.version}


class ParsedSchema(Protocol):
    """One schema, understood. Immutable; equal when the texts with all references written out are."""

    @property
    def schema_type(self) -> str:
        """``AVRO``, ``JSON`` or ``PROTOBUF``."""

    @property
    def canonical(self) -> str:
        """The text under which the schema is stored and compared; references stay references."""

    @property
    def resolved(self) -> str:
        """The text with every reference written out, where the format can do that; else ``canonical``."""

    @property
    def name(self) -> str | None:
        """What the schema calls itself: a record's full name, a ``title``, the full name of the first message."""

    @property
    def top_level_fields(self) -> frozenset[str]:
        """Names of the fields of the outermost type; reserved fields (``confluent:reserved``) are held against them."""

    def formatted(self, form: str) -> str:
        """The text in a form of the format's own (the ``format`` of a request), ``canonical`` where it has no such form.

        AVRO: ``resolved``. PROTOBUF: ``serialized`` (the descriptor in base64), ``ignore_extensions``.
        """

    def normalized(self) -> ParsedSchema:
        """The same schema with differences that mean nothing removed."""

    def check_fields(self) -> None:
        """Raise InvalidSchema where a field bears a name that is kept for the registry (``validateFields``: ``$$``)."""

    def reading_problems(self, writer: Any, *, lenient: bool = False) -> list[str]:
        """Why this schema cannot read data of ``writer`` (of the same format); empty when it can.

        Each message is Confluent's, with ``%s`` where the reader's and then the writer's name (``new``, ``old``) belong.
        ``lenient`` is the compatibility policy of that name, which allows more of JSON Schema.
        """


class Parser(Protocol):
    """Makes a ParsedSchema of text; raises InvalidSchema.

    ``references`` are the texts of the referenced schemas by the names under which they are referred to, those they need
    themselves before them. ``strict`` is for schemas registered now; what is stored already is read without.
    """

    def __call__(
        self, text: str, references: Mapping[str, str] = NO_REFERENCES, *, strict: bool = True
    ) -> ParsedSchema: ...
