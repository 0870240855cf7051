"""The interface of a schema format for the registry, its client and the converters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol

__all__ = ["NO_REFERENCES", "ParsedSchema", "Parser", "Reference"]

NO_REFERENCES: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that this one builds on, by the name it uses: a full name, a URI, or an import's path."""

    name: str
    subject: str
    version: int

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "subject": self.subject, "version": self.version}


class ParsedSchema(Protocol):
    """A parsed schema. Immutable. Schemas whose texts with all references inlined are equal are equal."""

    @property
    def schema_type(self) -> str:
        """``AVRO``, ``JSON`` or ``PROTOBUF``."""

    @property
    def canonical(self) -> str:
        """The text under which the schema is stored and compared; references stay references."""

    @property
    def resolved(self) -> str:
        """The text with every reference inlined, if the format supports that; otherwise ``canonical``."""

    @property
    def name(self) -> str | None:
        """The schema's own name: a record's full name, a ``title``, the full name of the first message."""

    @property
    def top_level_fields(self) -> frozenset[str]:
        """Names of the fields of the outermost type, which are checked against reserved ones (``confluent:reserved``)."""

    def formatted(self, form: str) -> str:
        """The text in a form specific to the format (the ``format`` of a request); ``canonical`` if it has no such
        form.

        AVRO: ``resolved``. PROTOBUF: ``serialized`` (the descriptor in base64), ``ignore_extensions``.
        """

    def normalized(self) -> ParsedSchema:
        """The same schema without meaningless differences."""

    def check_fields(self) -> None:
        """Raise InvalidSchema if a field has a name reserved for the registry (``validateFields``: ``$$``)."""

    def reading_problems(self, writer: Any, *, lenient: bool = False) -> list[str]:
        """Why this schema cannot read data of ``writer`` (of the same format); empty if it can.

        Messages are Confluent's, with ``%s`` for the reader's and then the writer's name (``new``, ``old``).
        ``lenient`` is the compatibility policy of that name, which allows more changes of JSON Schema.
        """


class Parser(Protocol):
    """Parses text into a ParsedSchema. Raises InvalidSchema.

    ``references`` are the texts of referenced schemas by the names used in references; their own dependencies come
    first. ``strict`` is for new schemas; stored ones are parsed without it.
    """

    def __call__(
        self, text: str, references: Mapping[str, str] = NO_REFERENCES, *, strict: bool = True
    ) -> ParsedSchema: ...
