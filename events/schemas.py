"""The registry as the catalog sees it, over its REST API."""

from __future__ import annotations

__all__ = ["RegistrySchemas"]


class RegistrySchemas:
    def __init__(self, url: str) -> None:
        self._url = url

    def subjects(self) -> list[str]:
        raise NotImplementedError

    def latest(self, subject: str) -> tuple[int, str] | None:
        raise NotImplementedError

    def by_id(self, schema_id: int) -> str | None:
        raise NotImplementedError

    def register(self, subject: str, text: str) -> int:
        raise NotImplementedError
