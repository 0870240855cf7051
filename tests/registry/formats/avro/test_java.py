"""Avro compared with the recorded results of Java Avro 1.12.1, and of Confluent's classes over it, for generated
schemas.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from registry.errors import InvalidSchema
from registry.formats.avro.compatibility import AmbiguousField, incompatibilities
from registry.formats.avro.schema import AvroSchema
from tests.registry.formats.oracle import avro
from tests.registry.formats.oracle.kept import read
from tests.servers.fixtures import or_skip

KINDS = {
    "NAME_MISMATCH",
    "FIXED_SIZE_MISMATCH",
    "MISSING_ENUM_SYMBOLS",
    "READER_FIELD_MISSING_DEFAULT_VALUE",
    "TYPE_MISMATCH",
    "MISSING_UNION_BRANCH",
}


def parsed(text: str) -> AvroSchema | None:
    try:
        return AvroSchema.parse(text)
    except InvalidSchema:
        return None


def reasons(reader: AvroSchema, writer: AvroSchema) -> list[list[str]] | str:
    try:
        return [[it.kind.value, it.path, it.detail] for it in incompatibilities(reader.type, writer.type)]
    except AmbiguousField:
        return "exception"


def test_answers_are_javas() -> None:
    pairs = incompatible = refused = 0
    kinds: Counter[str] = Counter()
    for entry in read("avro"):
        schemas = [parsed(text) for text in entry["texts"]]
        assert [schema and schema.canonical for schema in schemas] == entry["schemas"], entry["texts"]
        refused += schemas.count(None)
        for reader, writer, said in entry["pairs"]:
            reader_schema, other = schemas[reader], schemas[writer]
            assert reader_schema is not None and other is not None
            assert reasons(reader_schema, other) == said, (reader_schema.canonical, other.canonical)
            pairs += 1
            incompatible += bool(said)
            kinds.update({reason[0] for reason in said if said != "exception"})
    assert pairs >= 2000 and incompatible * 3 >= pairs and refused > 300
    assert kinds.keys() == KINDS and min(kinds.values()) >= 50, kinds


def test_normalized_texts_and_messages_are_confluents() -> None:
    for entry in read("avro_confluent"):
        schemas = [parsed(text) for text in entry["texts"]]
        for schema, said in zip(schemas, entry["schemas"], strict=True):
            # It cannot normalize an empty union, and takes a type without a namespace into the one around it.
            if said is not None and '"namespace":""' not in said[0]:
                assert schema is not None and [schema.canonical, schema.normalized().canonical] == said
        for original, update, _, _, messages in entry["pairs"]:
            updated, other = schemas[update], schemas[original]
            assert updated is not None and other is not None
            assert updated.reading_problems(other) == messages


@pytest.mark.proof
@pytest.mark.servers
def test_the_recorded_answers_are_those_of_java() -> None:
    answers: list[dict[str, Any]] = or_skip(avro.entries)
    assert answers == list(read("avro"))
