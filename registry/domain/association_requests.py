"""What a request asks of associations, and what it means where it says nothing."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from registry.domain.registration import NewSchema
from registry.errors import InvalidAssociation
from registry.model.associations import STRONG, TOPIC, WEAK

__all__ = ["Change", "Delete", "Request", "Wanted", "unfitting", "with_defaults"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One association to make or change. ``lifecycle`` and ``frozen`` None are "as it is"."""

    subject: str | None
    kind: str
    lifecycle: str | None
    frozen: bool | None
    schema: NewSchema | None
    normalize: bool


@dataclass(frozen=True, slots=True)
class Request:
    """Associations of one resource; ``id`` may be missing only where nothing is to be written."""

    name: str
    namespace: str
    id: str | None
    wanted: tuple[Wanted, ...]
    type: str = TOPIC

    @property
    def kinds(self) -> list[str]:
        return [each.kind for each in self.wanted]


@dataclass(frozen=True, slots=True)
class Delete:
    kind: str
    cascade: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One request of a batch: ``steps`` are lists of associations to make (True) or change (False), and deletions."""

    request: Request
    steps: tuple[tuple[bool, tuple[Wanted, ...]] | Delete, ...]


def with_defaults(wanted: Wanted, *, create: bool) -> Wanted:
    """What a new association is where nothing is said: STRONG and frozen with a schema, else WEAK."""
    if not create and wanted.schema is not None:
        raise InvalidAssociation(
            "schema",
            "cannot be provided when adding an association to an existing topic; "
            "an association with a schema must be created with the topic",
        )
    lifecycle = wanted.lifecycle or WEAK
    if wanted.schema is not None:
        if wanted.lifecycle == WEAK:
            raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
        if wanted.frozen is False:
            raise InvalidAssociation("frozen", "cannot be false when a schema is provided")
        lifecycle = STRONG
    frozen = lifecycle == STRONG
    if wanted.frozen not in (None, frozen):
        raise InvalidAssociation("frozen", unfitting(lifecycle, wanted.frozen))
    return dataclasses.replace(wanted, lifecycle=lifecycle, frozen=frozen)


def unfitting(lifecycle: str, frozen: bool | None) -> str:
    return f"association with lifecycle of {lifecycle} cannot be frozen={'true' if frozen else 'false'}"
