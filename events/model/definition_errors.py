"""Errors of definitions that have codes of their own; their tree is in ``events.errors``."""

from __future__ import annotations

from events.errors import InvalidDefinition, InvalidMetadata

__all__ = ["DuplicateEvent", "DuplicateField", "DuplicateName"]


class DuplicateName(InvalidMetadata):
    """Something of this name, or for the same thing, is there already."""

    code = "DUPLICATE_DEVELOPER_NAME"


class DuplicateField(InvalidDefinition):
    """Two fields of an event have one name."""

    code = "DUPLICATE_DEVELOPER_NAME"


class DuplicateEvent(InvalidDefinition):
    """There is an event of this name in other letters: names are without regard to case."""

    code = "DUPLICATE_DEVELOPER_NAME"
