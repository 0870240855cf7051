"""Confluent's subject name strategies: the subject under which a topic's schemas are registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from registry.formats.avro.model import NamedType
from registry.formats.avro.schema import AvroSchema
from registry.formats.parsed import ParsedSchema
from registry.serde.errors import SerializationError

__all__ = ["STRATEGIES", "Strategy", "record_name", "strategy", "subject_name", "topic_name", "topic_record_name"]

Strategy = Callable[[str, bool, ParsedSchema | None], str]
"""(topic, is the key, schema) → subject."""


def topic_name(topic: str, is_key: bool, _: ParsedSchema | None = None) -> str:
    """``orders-value``: one evolving schema per topic. The default."""
    return f"{topic}-{'key' if is_key else 'value'}"


def record_name(topic: str, is_key: bool, schema: ParsedSchema | None) -> str:
    """``shop.Order``: one subject per record type, in whatever topic."""
    return _full_name(topic, is_key, schema)


def topic_record_name(topic: str, is_key: bool, schema: ParsedSchema | None) -> str:
    """``orders-shop.Order``: one subject per record type and topic."""
    return f"{topic}-{_full_name(topic, is_key, schema)}"


def _full_name(topic: str, is_key: bool, schema: ParsedSchema | None) -> str:
    """Of a Protobuf schema its first message, of a JSON Schema its title."""
    if isinstance(schema, AvroSchema):
        name = schema.type.full_name if isinstance(schema.type, NamedType) else None
    else:
        name = None if schema is None else schema.name
    if schema is None or name is None:
        kind = "no schema"
        if schema is not None:
            kind = schema.type.kind if isinstance(schema, AvroSchema) else "a schema without a title"
        raise SerializationError(
            f"The {'key' if is_key else 'value'} of topic {topic} must be a named type for this subject name strategy, "
            f"not {kind}"
        )
    return name


STRATEGIES: Final[dict[str, Strategy]] = {
    "TopicNameStrategy": topic_name,
    "RecordNameStrategy": record_name,
    "TopicRecordNameStrategy": topic_record_name,
}


def strategy(name: str) -> Strategy:
    """A strategy by its Java class name, with or without package. Raises SerializationError."""
    strategy_class = STRATEGIES.get(name.rpartition(".")[2])
    if strategy_class is None:
        raise SerializationError(f"Unknown subject name strategy {name}: use one of {', '.join(STRATEGIES)}")
    return strategy_class


def subject_name(topic: str, *, is_key: bool, schema: ParsedSchema | None = None, by: str = "TopicNameStrategy") -> str:
    return strategy(by)(topic, is_key, schema)
