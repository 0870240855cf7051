"""JSON Schema compared with the recorded results of Confluent's own classes for 900 pairs of generated schemas, in both
directions.
"""

from __future__ import annotations

from typing import Any

from registry.errors import InvalidSchema
from registry.formats.json_schema.changes import LENIENT, STRICT
from registry.formats.json_schema.schema import JsonSchema
from tests.registry.formats.oracle.kept import read


def parsed(text: str) -> JsonSchema | None:
    try:
        return JsonSchema.parse(text)
    except InvalidSchema:
        return None


def check(entry: dict[str, Any]) -> int:
    """Compare one entry; returns how many of its pairs are incompatible."""
    schemas = [parsed(text) for text in entry["texts"]]
    for schema, said, text in zip(schemas, entry["schemas"], entry["texts"], strict=True):
        assert (schema is None) == (said is None), text
        if schema is not None:
            assert [schema.canonical, schema.normalized().canonical] == said
    incompatible = 0
    for index, other, strict, lenient, messages in entry["pairs"]:
        original, update = schemas[index], schemas[other]
        assert original is not None and update is not None
        for policy, compatible, said in (("strict", STRICT, strict), ("lenient", LENIENT, lenient)):
            mine = update.changes_from(original, lenient=policy == "lenient")
            # Which of several compatible alternatives is taken is chance in Java; what is incompatible is not.
            changes = sorted((change.kind, change.path) for change in mine if change.kind not in compatible)
            assert changes == sorted((kind, path) for kind, path in said if kind not in compatible), entry["texts"]
        assert sorted(update.reading_problems(original)) == sorted(messages)
        incompatible += bool(messages)
    return incompatible


def test_answers_are_confluents() -> None:
    entries = list(read("json"))
    assert len(entries) == 900
    assert sum(check(entry) for entry in entries) > 600
