"""JSON Schemas as values: what a schema says, taken apart by the kind of value it speaks about.

Confluent compares schemas in this form (it is everit's): keywords about objects make an ObjectSchema, those about numbers a
NumberSchema, and so on; where a schema has several kinds of keyword, or ``allOf``, ``anyOf``, ``oneOf``, it is a
CombinedSchema of them. Compare with ``is``; ``described`` tells whether two say the same.
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
"""What a keyword says that is not there (``None`` is JSON's null)."""


@dataclass(eq=False)
class Schema:
    """Any schema. ``extra`` are the keywords that no kind of schema took, with the JSON they were given."""

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
    """``{}``: everything fits."""


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
    """``generated`` marks one that stands for keywords side by side rather than for an ``allOf`` or ``anyOf`` written."""

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
    """``additional`` is a schema, or whether properties that are not named may be there at all."""

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
    """``all_items`` is the schema of every item, ``items`` the schemas of the first ones, ``additional`` of those after."""

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
    """What a reference leads to, once that is loaded: schemas may refer to themselves."""

    schema: Schema | None = None


@dataclass(eq=False)
class ReferenceSchema(Schema):
    """Copies of a reference lead to the same target."""

    ref: str
    target: Target


def json_key(value: Any) -> Hashable:
    """A key by which JSON values are equal when Java finds them so: 1, 1.0 and true are three values."""
    if isinstance(value, dict):
        return ("object", frozenset((name, json_key(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("array", tuple(json_key(item) for item in value))
    return (type(value).__name__, str(value))


def described(schema: Schema) -> Hashable:
    """A key that is equal for schemas that say the same; a reference says its name only."""
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
