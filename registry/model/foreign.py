"""Schemas in other registries' spelling: Karapace sorts the members of its Avro schemas, Java does not.

With Karapace's spelling a schema that is registered again after a migration would count as a different one, with a new
id and version. So the text is converted to Java's order when it is read from the log.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Final

from registry.errors import InvalidSchema, RegistryError
from registry.formats import parse
from registry.formats.parsed import Reference
from registry.model.records import SchemaVersion
from registry.model.subjects import within

__all__ = ["Find", "canonical", "is_foreign"]

Find = Callable[[str, int], SchemaVersion | None]
"""Looks up the version of a subject, if it is known."""

_FIRST_OBJECT: Final = re.compile(r'\{"(?!type":"map",)')
_MOST_REFERENCES: Final = 1000
_DEEPEST: Final = 200


def is_foreign(version: SchemaVersion) -> bool:
    """Whether an Avro schema is not in Java's member order, judged by its first object: if sorted, ``type`` comes late."""
    if version.schema_type != "AVRO":
        return False
    text = version.schema
    if text.startswith('{"type":"record"'):
        return False
    first = _FIRST_OBJECT.search(text)
    return first is not None and not text.startswith('type":', first.end())


def canonical(version: SchemaVersion, find: Find) -> SchemaVersion:
    """The version with its text in Java's order; unchanged if it can't be parsed."""
    texts: dict[str, str] = {}
    try:
        _collect(version, find, texts)
        text = parse("AVRO", version.schema, texts, strict=False).canonical
    except RegistryError:
        return version
    return dataclasses.replace(version, schema=text)


def _collect(version: SchemaVersion, find: Find, texts: dict[str, str], depth: int = 0) -> None:
    """Collect the texts of a version's references, dependencies first.

    Raises InvalidSchema if they are nested too deeply.
    """
    if depth > _DEEPEST:
        raise InvalidSchema(f"The references of {version.subject}, version {version.version}, are nested too deep")
    for reference in version.references:
        referenced = find(_subject(version, reference), reference.version)
        if referenced is None or reference.name in texts or len(texts) > _MOST_REFERENCES:
            continue
        _collect(referenced, find, texts, depth + 1)
        texts[reference.name] = referenced.schema


def _subject(version: SchemaVersion, reference: Reference) -> str:
    return within(version.subject, reference.subject)
