"""What the registry asks of a schema format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["ParsedSchema", "Parser", "Reference"]


@dataclass(frozen=True, slots=True)
class Reference:
    """Another schema that this one builds on, under the name it calls it."""

    name: str
    subject: str
    version: int

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "subject": self.subject, "version": self.version}


class ParsedSchema(Protocol):
    """One schema, understood. Immutable."""

    @property
    def schema_type(self) -> str: ...

    @property
    def canonical(self) -> str:
        """The text under which the schema is stored and compared; references stay references."""

    @property
    def resolved(self) -> str:
        """The text with every reference written out."""

    def normalized(self) -> ParsedSchema:
        """The same schema with differences that mean nothing removed."""

    def reading_problems(self, writer: Any) -> list[str]:
        """Why this schema cannot read data of ``writer`` (of the same format); empty when it can.

        Each message has ``%s`` where the reader's and then the writer's name (``new``, ``old``) belong.
        """


class Parser(Protocol):
    """Makes a ParsedSchema of text; raises InvalidSchema.

    ``references`` are the texts of the referenced schemas, those they need themselves before them. ``strict`` is for
    schemas registered now; what is stored already is read without.
    """

    def __call__(self, text: str, references: Sequence[str] = (), *, strict: bool = True) -> ParsedSchema: ...
