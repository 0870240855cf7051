"""A registry client that writes nothing: it reads from the registry, and keeps would-be registrations in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from registry.client import (
    Incompatible,
    NotFound,
    ParsedSchema,
    Reference,
    RegistryClient,
    Unavailable,
)

__all__ = ["Rehearsal", "RehearsingClient"]

_LAST_ID: Final = 2**31 - 1
"""Invented ids count down from here, far from those that a registry assigns."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A call of ``register``. ``schema_id`` is the registry's id if it has the schema already, otherwise None."""

    subject: str
    text: str
    schema_id: int | None


class RehearsingClient(RegistryClient):
    """For previews. An unreachable registry counts as empty. ``rehearsed`` lists the registrations."""

    @classmethod
    def over(cls, client: RegistryClient, rehearsed: list[Rehearsal]) -> Self:
        """A rehearsing client for the same registry with the same settings. Don't use the original client any more."""
        made = cls.__new__(cls)
        made._open(client._transport.impatient())
        made.rehearsed = rehearsed
        made._made_up = {}
        return made

    rehearsed: list[Rehearsal]
    _made_up: dict[int, ParsedSchema]

    def register(
        self,
        subject: str,
        schema: ParsedSchema | str,
        *,
        references: Sequence[Reference] = (),
        normalize: bool = False,
        schema_type: str = "AVRO",
    ) -> int:
        """The registry's id if it has the schema, otherwise an invented one.

        Raises Incompatible as the registry would.
        """
        more: dict[str, Any] = {"references": references, "schema_type": schema_type}
        text = schema if isinstance(schema, str) else schema.canonical
        try:
            known = super().id_of(subject, schema, normalize=normalize, **more)
        except (NotFound, Unavailable):
            pass
        else:
            self.rehearsed.append(Rehearsal(subject, text, known))
            return known
        try:
            problems = super().problems(subject, schema, version=None, **more)
        except (NotFound, Unavailable):
            problems = []
        if problems:
            raise Incompatible(f"Schema being registered is incompatible with an earlier schema: {problems}", 409)
        parsed = self._parsed(schema_type, schema, references) if isinstance(schema, str) else schema
        schema_id = next((i for i, known_schema in self._made_up.items() if known_schema == parsed), None)
        if schema_id is None:
            schema_id = _LAST_ID - len(self._made_up)
            self._made_up[schema_id] = parsed
        self.rehearsed.append(Rehearsal(subject, text, None))
        return schema_id

    def any_schema(self, schema_id: int, subject: str | None = None) -> ParsedSchema:
        if schema_id in self._made_up:
            return self._made_up[schema_id]
        return super().any_schema(schema_id, subject)
