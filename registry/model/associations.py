"""Associations, and an index of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

__all__ = ["ANY", "STRONG", "TOPIC", "WEAK", "Association", "AssociationIndex", "Resource", "default_subject"]

STRONG: Final = "STRONG"
"""The subject belongs exclusively to this resource, and can be deleted with it."""
WEAK: Final = "WEAK"
"""The resource uses the subject, and others may too."""
TOPIC: Final = "topic"
"""The only resource type."""
ANY: Final = "-"
"""As a resource's name or namespace: any."""


class Resource(NamedTuple):
    """Distinguishes the associations of a subject; ``association`` is ``key`` or ``value``."""

    name: str
    namespace: str
    type: str
    association: str


@dataclass(frozen=True, slots=True)
class Association:
    """A subject (in its normal form) and the resource it belongs to."""

    subject: str
    guid: str
    resource: Resource
    resource_id: str
    lifecycle: str
    frozen: bool
    created_ms: int | None = None
    updated_ms: int | None = None

    @property
    def kind(self) -> str:
        return self.resource.association

    def as_record(self) -> dict[str, Any]:
        """Confluent's members in Confluent's order."""
        return {
            "guid": self.guid,
            "tenant": "default",
            "resourceName": self.resource.name,
            "resourceNamespace": self.resource.namespace,
            "resourceId": self.resource_id,
            "resourceType": self.resource.type,
            "associationType": self.resource.association,
            "subject": self.subject,
            "lifecycle": self.lifecycle,
            "frozen": self.frozen,
        }

    @classmethod
    def read(
        cls,
        subject: str,
        resource: Resource,
        value: Mapping[str, Any],
        timestamp_ms: int | None,
        old: Association | None,
    ) -> Association:
        """From a record; ``old`` is the previous value of the key. Raises ValueError."""
        guid, resource_id, lifecycle = value.get("guid"), value.get("resourceId"), value.get("lifecycle")
        if not isinstance(guid, str) or not isinstance(resource_id, str) or lifecycle not in (STRONG, WEAK):
            raise ValueError("an association needs a guid, a resourceId and a lifecycle")
        created = timestamp_ms if old is None else old.created_ms
        frozen = value.get("frozen")
        return cls(
            subject,
            guid,
            resource,
            resource_id,
            lifecycle,
            frozen if isinstance(frozen, bool) else lifecycle == STRONG,
            created,
            timestamp_ms,
        )

    def as_json(self) -> dict[str, Any]:
        """As in answers: ``frozen`` only if it differs from the lifecycle's default."""
        shown: dict[str, Any] = {
            "subject": self.subject,
            "guid": self.guid,
            "resourceName": self.resource.name,
            "resourceNamespace": self.resource.namespace,
            "resourceId": self.resource_id,
            "resourceType": self.resource.type,
            "associationType": self.resource.association,
            "lifecycle": self.lifecycle,
        }
        if self.frozen is not (self.lifecycle == STRONG):
            shown["frozen"] = self.frozen
        if self.created_ms is not None:
            shown["createTs"] = self.created_ms
        if self.updated_ms is not None:
            shown["updateTs"] = self.updated_ms
        return shown


def default_subject(resource_name: str, namespace: str, kind: str) -> str:
    """The default subject of a resource by name."""
    return f":.{namespace}:{resource_name}-{kind}"


class AssociationIndex:
    """Indexes all associations for queries. Results are in the order of resources."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, Resource], Association] = {}

    def get(self, subject: str, resource: Resource) -> Association | None:
        return self._all.get((subject, resource))

    def put(self, association: Association) -> None:
        self._all[association.subject, association.resource] = association

    def remove(self, subject: str, resource: Resource) -> None:
        self._all.pop((subject, resource), None)

    def of_subject(
        self, subject: str, *, type_: str | None = None, kinds: Sequence[str] = (), lifecycle: str | None = None
    ) -> list[Association]:
        mine = (each for each in self._all.values() if each.subject == subject)
        return list(_chosen(mine, type_, kinds, lifecycle)) if self._all else []

    def of_id(
        self, resource_id: str | None, type_: str | None, kinds: Sequence[str] = (), lifecycle: str | None = None
    ) -> list[Association]:
        mine = (each for each in self._all.values() if each.resource_id == resource_id)
        return list(_chosen(mine, type_, kinds, lifecycle))

    def of_name(
        self, name: str, namespace: str, type_: str | None, kinds: Sequence[str] = (), lifecycle: str | None = None
    ) -> list[Association]:
        """``ANY`` matches every name and every namespace."""
        mine = (
            each
            for each in self._all.values()
            if name in (ANY, each.resource.name) and namespace in (ANY, each.resource.namespace)
        )
        return list(_chosen(mine, type_, kinds, lifecycle))


def _chosen(
    associations: Iterable[Association], type_: str | None, kinds: Sequence[str], lifecycle: str | None
) -> Iterator[Association]:
    chosen = (
        each
        for each in associations
        if type_ in (None, each.resource.type)
        and (not kinds or each.kind in kinds)
        and lifecycle in (None, each.lifecycle)
    )
    yield from sorted(chosen, key=lambda each: (each.resource, each.subject))
