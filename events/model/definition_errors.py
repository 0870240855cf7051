"""Errors of definitions that have specific codes; their tree is in ``events.errors``."""

from __future__ import annotations

from events.errors import InvalidDefinition, InvalidMetadata

__all__ = ["DuplicateEvent", "DuplicateField", "DuplicateName"]


class DuplicateName(InvalidMetadata):
    """An object of this name, or for the same target, exists already."""

    code = "DUPLICATE_DEVELOPER_NAME"


class DuplicateField(InvalidDefinition):
    """Two fields of an event have the same name."""

    code = "DUPLICATE_DEVELOPER_NAME"


class DuplicateEvent(InvalidDefinition):
    """An event of this name exists in another case; names are case-insensitive."""

    code = "DUPLICATE_DEVELOPER_NAME"
