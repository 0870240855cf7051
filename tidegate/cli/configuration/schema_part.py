"""Subjects of the registry with their versions, ids and levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidegate.cli.configuration.parts import Document

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
        if existing is None:
            numbers = ", ".join(f"{version['version']} (id {version['id']})" for version in document["versions"])
            return f"register version {numbers}"
        known = {version["version"]: version for version in existing["versions"]}
        other = [version["version"] for version in document["versions"] if known.get(version["version"]) != version]
        if other:
            return f"cannot: version {', '.join(map(str, other))} differs from what is registered"
        level = document["compatibility"]
        return f"set its level to {level}" if level and level != existing["compatibility"] else ""

    def write(self, documents: Mapping[str, tuple[Document, Document | None]]) -> None:
        # In the order of ids, because a schema is registered after those that it refers to.
        missing: list[RegisteredSchema] = sorted(
            (
                version
                for document, existing in documents.values()
                if existing is None
                for version in _versions(document)
            ),
            key=lambda version: (version.id, version.subject),
        )
        self._client.restore(missing)
        for subject, (document, _) in documents.items():
            if document["compatibility"]:
                self._client.set_compatibility(document["compatibility"], subject)


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
