"""JSON Schemas as values, split by the type of value that keywords apply to.

Confluent compares schemas in this form (it is everit's): object keywords become an ObjectSchema, number keywords a
NumberSchema, and so on. A schema with several kinds of keywords, or with ``allOf``, ``anyOf``, ``oneOf``, is a
CombinedSchema. Compare with ``is``; ``described`` gives a key for equal content.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any, Final, Literal

__all__ = [
    "MISSING",
    "ArraySchema",
    "BooleanSchema",
    "CombinedSchema",
    "ConditionalSchema",
    "ConstSchema",
    "Criterion",
    "EmptySchema",
    "EnumSchema",
    "FalseSchema",
    "NotSchema",
    "NullSchema",
    "NumberSchema",
    "ObjectSchema",
    "ReferenceSchema",
    "Schema",
    "StringSchema",
    "Target",
    "TrueSchema",
    "described",
    "json_key",
]

Criterion = Literal["allOf", "anyOf", "oneOf"]
Number = int | Decimal


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The value of an absent keyword (``None`` is JSON's null)."""


@dataclass(eq=False)
class Schema:
    """Any schema. ``extra`` are the keywords that no kind of schema consumed, with their JSON."""

    id: str | None = field(default=None, kw_only=True)
    title: str | None = field(default=None, kw_only=True)
    description: str | None = field(default=None, kw_only=True)
    default: Any = field(default=MISSING, kw_only=True)
    extra: dict[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING


@dataclass(eq=False)
class EmptySchema(Schema):
    """``{}``: accepts everything."""


@dataclass(eq=False)
class TrueSchema(EmptySchema):
    pass


@dataclass(eq=False)
class FalseSchema(Schema):
    pass


@dataclass(eq=False)
class BooleanSchema(Schema):
    pass


@dataclass(eq=False)
class NullSchema(Schema):
    pass


@dataclass(eq=False)
class StringSchema(Schema):
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    required: bool = True


@dataclass(eq=False)
class NumberSchema(Schema):
    minimum: Number | None = None
    maximum: Number | None = None
    exclusive_minimum: Number | None = None
    exclusive_maximum: Number | None = None
    multiple_of: Number | None = None
    integer: bool = False
    required: bool = True


@dataclass(eq=False)
class ConstSchema(Schema):
    value: Any


@dataclass(eq=False)
class EnumSchema(Schema):
    values: list[Any]


@dataclass(eq=False)
class CombinedSchema(Schema):
    """``generated`` marks one that represents sibling keywords instead of a written ``allOf`` or ``anyOf``."""

    criterion: Criterion
    subschemas: list[Schema]
    generated: bool = False


@dataclass(eq=False)
class NotSchema(Schema):
    must_not_match: Schema


@dataclass(eq=False)
class ConditionalSchema(Schema):
    if_: Schema | None
    then: Schema | None
    else_: Schema | None


@dataclass(eq=False)
class ObjectSchema(Schema):
    """``additional`` is a schema, or whether unnamed properties are allowed at all."""

    properties: dict[str, Schema] = field(default_factory=dict)
    required_properties: list[str] = field(default_factory=list)
    additional: Schema | bool = True
    pattern_properties: dict[str, Schema] = field(default_factory=dict)
    property_names: Schema | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    property_dependencies: dict[str, list[str]] = field(default_factory=dict)
    schema_dependencies: dict[str, Schema] = field(default_factory=dict)
    unevaluated: Schema | None = None
    required: bool = True


@dataclass(eq=False)
class ArraySchema(Schema):
    """``all_items`` is the schema of every item, ``items`` has the schemas of the first ones, ``additional`` that of
    the rest.
    """

    all_items: Schema | None = None
    items: list[Schema] | None = None
    additional: Schema | bool = True
    contains: Schema | None = None
    min_contains: Number | None = None
    max_contains: Number | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique: bool = False
    unevaluated: Schema | None = None
    required: bool = True


@dataclass(eq=False, slots=True)
class Target:
    """The target of a reference, filled when it is loaded, because schemas may refer to themselves."""

    schema: Schema | None = None


@dataclass(eq=False)
class ReferenceSchema(Schema):
    """Copies of a reference share its target."""

    ref: str
    target: Target


def json_key(value: Any) -> Hashable:
    """A key that is equal for JSON values that Java considers equal: 1, 1.0 and true differ."""
    if isinstance(value, dict):
        return ("object", frozenset((name, json_key(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple(json_key(item) for item in value))
    return (type(value).__name__, str(value))


def described(schema: Schema) -> Hashable:
    """A key that is equal for schemas with equal content. A reference contributes only its name."""
    if isinstance(schema, ReferenceSchema):
        return ("ReferenceSchema", schema.ref, schema.title, schema.description)
    return (
        type(schema).__name__,
        *(_described(getattr(schema, part.name)) for part in fields(schema) if part.name != "generated"),
    )


def _described(value: Any) -> Hashable:
    if isinstance(value, Schema):
        return described(value)
    if isinstance(value, dict):
        return ("object", frozenset((name, _described(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple(_described(item) for item in value))
    return json_key(value)
