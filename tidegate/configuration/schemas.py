"""Subjects of the registry with their versions, ids and levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidegate.configuration.parts import Document

if TYPE_CHECKING:
    from registry.client import RegisteredSchema, RegistryClient

__all__ = ["Subjects"]


class Subjects:
    """Subjects keep their versions and ids, because records name their schema by its id."""

    folder = "schemas"

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    def read(self) -> dict[str, Document]:
        return {subject: self._document(subject) for subject in self._client.subjects()}

    def _document(self, subject: str) -> Document:
        versions = [self._client.version(subject, number) for number in self._client.versions(subject)]
        return {
            "subject": subject,
            "compatibility": self._client.own_compatibility(subject),
            "mode": self._client.own_mode(subject),
            "versions": [
                {
                    "version": version.version,
                    "id": version.id,
                    "type": version.schema_type,
                    "references": [reference.as_json() for reference in version.references],
                    "schema": version.text,
                }
                for version in versions
            ],
        }

    def difference(self, document: Document, existing: Document | None) -> str:
        there = {} if existing is None else {version["version"]: version for version in existing["versions"]}
        other = [v["version"] for v in document["versions"] if there.get(v["version"], v) != v]
        if other:
            return f"cannot: version {', '.join(map(str, other))} differs from what is registered"
        missing = [f"{v['version']} (id {v['id']})" for v in document["versions"] if v["version"] not in there]
        changes = [f"register version {', '.join(missing)}"] if missing else []
        before = existing or {}
        if document["compatibility"] and document["compatibility"] != before.get("compatibility"):
            changes.append(f"set its level to {document['compatibility']}")
        if document["mode"] != before.get("mode"):  # also IMPORT, which an import that was killed has left
            changes.append(f"set its mode to {document['mode']}" if document["mode"] else "take its mode back")
        return ", ".join(changes)

    def write(self, documents: Mapping[str, tuple[Document, Document | None]]) -> None:
        missing: list[RegisteredSchema] = []
        for document, existing in documents.values():
            there = set() if existing is None else {version["version"] for version in existing["versions"]}
            missing += [version for version in _versions(document) if version.version not in there]
        # In the order of ids, because a schema is registered after those that it refers to.
        self._client.restore(sorted(missing, key=lambda version: (version.id, version.subject)))
        for subject, (document, existing) in documents.items():
            if document["compatibility"]:
                self._client.set_compatibility(document["compatibility"], subject)
            if document["mode"] or (existing is not None and existing["mode"]):
                self._client.set_mode(subject, document["mode"])


def _versions(document: Document) -> list[RegisteredSchema]:
    from registry.client import Reference, RegisteredSchema

    return [
        RegisteredSchema(
            document["subject"],
            version["version"],
            version["id"],
            version["schema"],
            version["type"],
            tuple(Reference(r["name"], r["subject"], r["version"]) for r in version["references"]),
        )
        for version in document["versions"]
    ]
