"""The interface of a part of a platform's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

__all__ = ["Document", "Part"]

Document: TypeAlias = dict[str, Any]
"""One thing that is configured, as the JSON of its file."""


class Part(Protocol):
    """All things of one kind, such as topics. Methods raise TidegateError."""

    folder: str
    """The name of the folder of its files, and of the part for users."""

    def read(self) -> dict[str, Document]:
        """The things that there are, by name."""
        ...

    def difference(self, document: Document, existing: Document | None) -> str:
        """The change that ``write`` would make, in words; empty if the thing is as in the document already."""
        ...

    def write(self, documents: Mapping[str, tuple[Document, Document | None]]) -> None:
        """Create and change things: each name with its document, and with the thing that there is, if any."""
        ...
