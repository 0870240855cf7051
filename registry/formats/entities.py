"""The taggable entities of a schema of any format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from registry.errors import InvalidSchema

__all__ = ["Entity", "Tags", "no_such_path", "retagged"]


class Entity(NamedTuple):
    """A record or message, or a field of one, by its path; ``kind`` is ``sr_record`` or ``sr_field``."""

    path: str
    kind: str


Tags = Mapping[Entity, Sequence[str]]


def retagged(entity: Entity, tags: Sequence[str], add: Tags, remove: Tags) -> list[str]:
    """The tags of an entity after adding those of ``add`` and then removing those of ``remove``."""
    gone = remove.get(entity, ())
    return [tag for tag in dict.fromkeys((*tags, *add.get(entity, ()))) if tag not in gone]


def no_such_path(entity: Entity) -> InvalidSchema:
    return InvalidSchema(f"No matching path '{entity.path}' found in the schema")
