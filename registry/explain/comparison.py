"""All incompatibilities between two schemas, or under a compatibility level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from registry.explain.explanation import Explanation, Sides
from registry.formats.avro.schema import AvroSchema
from registry.formats.compatibility import Level, Previous
from registry.formats.json_schema.schema import JsonSchema
from registry.formats.parsed import ParsedSchema
from registry.formats.protobuf.schema import ProtobufSchema

__all__ = ["explain", "unreadable"]


def unreadable(reader: ParsedSchema, writer: ParsedSchema, sides: Sides, *, lenient: bool = False) -> list[Explanation]:
    """Why ``reader`` cannot read data of ``writer``; empty if it can."""
    if isinstance(reader, AvroSchema) and isinstance(writer, AvroSchema):
        from registry.explain.avro import explained

        return explained(reader, writer, sides)
    if isinstance(reader, JsonSchema) and isinstance(writer, JsonSchema):
        from registry.explain.json_schema import explained as json_explained

        return json_explained(reader, writer, sides, lenient=lenient)
    if isinstance(reader, ProtobufSchema) and isinstance(writer, ProtobufSchema):
        from registry.explain.protobuf import explained as protobuf_explained

        return protobuf_explained(reader, writer, sides)
    return [
        Explanation(
            "the schema",
            f"{sides.writer} is {writer.schema_type}, {sides.reader} is {reader.schema_type}: neither reads the other",
            "keep the type of schema, or use another subject",
            "DIFFERENT_SCHEMA_TYPE",
            "",
        )
    ]


def explain(
    level: Level, new: ParsedSchema, previous: Sequence[Previous], *, lenient: bool = False
) -> list[Explanation]:
    """Why ``level`` refuses ``new`` after ``previous`` (oldest first), for every version that it compares."""
    explanations: list[Explanation] = []
    looked_at = previous if level.transitive else previous[-1:]
    for old in reversed(looked_at):
        name = f"version {old.version}"
        directions = []
        if level.backward:
            directions.append((new, old.schema, Sides("the new schema", name, forward=False)))
        if level.forward:
            directions.append((old.schema, new, Sides(name, "the new schema", forward=True)))
        for reader, writer, sides in directions:
            told = unreadable(reader, writer, sides, lenient=lenient)
            explanations += [replace(explanation, against=old.version) for explanation in told]
    return explanations
