"""Connectors with their configuration and target state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidegate.clients.rest import Rest
from tidegate.clients.worker import path_of
from tidegate.configuration.parts import Document

__all__ = ["Connectors", "as_document"]

_STATES: Final = ("PAUSED", "STOPPED")
"""Target states beside running."""


class Connectors:
    """A connector that is paused or stopped is created so."""

    folder = "connectors"

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def read(self) -> dict[str, Document]:
        expanded = self._rest.call("GET", "/connectors", expand=["info", "status"])
        documents = {}
        for name, entry in expanded.items():
            document = as_document(name, entry["info"]["config"])
            state = entry["status"]["connector"]["state"]
            documents[name] = document | ({"initial_state": state} if state in _STATES else {})
        return documents

    def difference(self, document: Document, existing: Document | None) -> str:
        if existing is None:
            return f"create {document['initial_state'].lower()}" if "initial_state" in document else "create"
        before, after = existing["config"], document["config"]
        changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        return f"change {', '.join(changed)}" if changed else ""

    def write(self, documents: Mapping[str, tuple[Document, Document | None]]) -> None:
        for name, (document, existing) in documents.items():
            if existing is None:
                self._rest.call("POST", "/connectors", document)
            else:
                self._rest.call("PUT", path_of(name, "/config"), {**document["config"], "name": name})


def as_document(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a connector's file: its class first, other keys in order."""
    order = sorted((key for key in config if key != "name"), key=lambda key: (key != "connector.class", key))
    return {"name": name, "config": {key: config[key] for key in order}}
