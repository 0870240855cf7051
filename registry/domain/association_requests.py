"""Requests for associations, and the defaults of what they leave out."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from registry.domain.registration import NewSchema
from registry.errors import InvalidAssociation
from registry.model.associations import STRONG, TOPIC, WEAK

__all__ = ["Change", "Delete", "Request", "RequestedAssociation", "unfitting", "with_defaults"]


@dataclass(frozen=True, slots=True)
class RequestedAssociation:
    """An association to create or change. None for ``lifecycle`` or ``frozen`` means unchanged."""

    subject: str | None
    kind: str
    lifecycle: str | None
    frozen: bool | None
    schema: NewSchema | None
    normalize: bool


@dataclass(frozen=True, slots=True)
class Request:
    """Associations of one resource. ``id`` may be missing only if nothing will be written."""

    name: str
    namespace: str
    id: str | None
    associations: tuple[RequestedAssociation, ...]
    type: str = TOPIC

    @property
    def kinds(self) -> list[str]:
        return [each.kind for each in self.associations]


@dataclass(frozen=True, slots=True)
class Delete:
    kind: str
    cascade: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One request of a batch. ``steps`` are lists of associations to create (True) or change (False), and deletions."""

    request: Request
    steps: tuple[tuple[bool, tuple[RequestedAssociation, ...]] | Delete, ...]


def with_defaults(association: RequestedAssociation, *, create: bool) -> RequestedAssociation:
    """A new association with defaults: STRONG and frozen with a schema, otherwise WEAK."""
    if not create and association.schema is not None:
        raise InvalidAssociation(
            "schema",
            "cannot be provided when adding an association to an existing topic; "
            "an association with a schema must be created with the topic",
        )
    lifecycle = association.lifecycle or WEAK
    if association.schema is not None:
        if association.lifecycle == WEAK:
            raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
        if association.frozen is False:
            raise InvalidAssociation("frozen", "cannot be false when a schema is provided")
        lifecycle = STRONG
    frozen = lifecycle == STRONG
    if association.frozen not in (None, frozen):
        raise InvalidAssociation("frozen", unfitting(lifecycle, association.frozen))
    return dataclasses.replace(association, lifecycle=lifecycle, frozen=frozen)


def unfitting(lifecycle: str, frozen: bool | None) -> str:
    return f"association with lifecycle of {lifecycle} cannot be frozen={'true' if frozen else 'false'}"
