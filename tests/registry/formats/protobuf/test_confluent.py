"""Protobuf compared with the recorded results of Confluent's own classes for 450 pairs of generated files, in both
directions, and for hand-written files.
"""

from __future__ import annotations

from typing import Any

from registry.errors import InvalidSchema
from registry.formats.protobuf.schema import ProtobufSchema
from tests.registry.formats.oracle.kept import read


def parsed(text: str, references: dict[str, str]) -> ProtobufSchema | None:
    try:
        return ProtobufSchema.parse(text, references)
    except InvalidSchema:
        return None


def check(entry: dict[str, Any]) -> int:
    """Compare one entry; returns how many of its pairs are incompatible."""
    references = entry.get("references", {})
    schemas = [parsed(text, references) for text in entry["texts"]]
    for schema, said, text in zip(schemas, entry["schemas"], entry["texts"], strict=True):
        assert (schema is None) == (said is None), text
        if schema is not None:
            assert schema.canonical == said[0], text
            assert schema.normalized().canonical == said[1], text
            assert ProtobufSchema.parse(schema.canonical, references).canonical == schema.canonical
    incompatible = 0
    for index, other, changes, _, messages in entry["pairs"]:
        original, update = schemas[index], schemas[other]
        assert original is not None and update is not None
        mine = sorted([change.kind, change.path] for change in update.changes_from(original))
        assert mine == sorted(changes), entry["texts"]
        assert sorted(update.reading_problems(original)) == sorted(messages)
        incompatible += bool(messages)
    return incompatible


def test_answers_are_confluents() -> None:
    entries = list(read("protobuf"))
    assert len(entries) > 450
    assert sum(check(entry) for entry in entries) > 200
