"""Parses drafts 2019-09 and 2020-12, as Confluent translates them from json-sKema's form.

Each keyword is a small schema. They are joined in the order of the text: those for the same type are merged, others
become members of a generated ``allOf``. In a list of types each type gets its keywords.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from registry.formats.json_schema.keywords import (
    MAX_DEPTH,
    TYPES,
    array,
    boolean,
    number,
    object_,
    refused,
    strings,
    text,
)
from registry.formats.json_schema.model import (
    ArraySchema,
    BooleanSchema,
    CombinedSchema,
    ConditionalSchema,
    ConstSchema,
    Criterion,
    EmptySchema,
    EnumSchema,
    FalseSchema,
    NotSchema,
    NullSchema,
    NumberSchema,
    ObjectSchema,
    Schema,
    StringSchema,
    TrueSchema,
)
from registry.formats.json_schema.references import References, SchemaError

if TYPE_CHECKING:
    from referencing._core import Resolver

__all__ = ["load"]

_MERGED: Final = (ArraySchema, NumberSchema, ObjectSchema, StringSchema)
_COUNTS: Final[Mapping[str, tuple[type[StringSchema | ArraySchema | ObjectSchema], str]]] = {
    "minLength": (StringSchema, "min_length"),
    "maxLength": (StringSchema, "max_length"),
    "minItems": (ArraySchema, "min_items"),
    "maxItems": (ArraySchema, "max_items"),
    "minProperties": (ObjectSchema, "min_properties"),
    "maxProperties": (ObjectSchema, "max_properties"),
}
_LIMITS: Final = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
}
# Keywords with a meaning that is not compared, and keywords that others read.
_NOT_EXTRA: Final = frozenset(
    {"$schema", "$id", "$anchor", "$dynamicAnchor", "$vocabulary", "$comment", "$defs", "title", "description", "default",
     "deprecated", "examples", "then", "else", "minContains", "maxContains", "contentEncoding", "contentMediaType",
     "contentSchema", "additionalItems", "$recursiveRef", "$recursiveAnchor"}
)  # fmt: skip


def load(document: Any, referenced: Mapping[str, Any], draft: str) -> Schema:
    """The schema in ``document``. Raises SchemaError. ``referenced`` are the parsed documents by name."""
    references = References(document, referenced, draft, modern=True)
    # A reference to the root leads to a copy with the same parts; one to another location to separate parts.
    root = references.target_of(document)
    made = _Loader(references).load(document, references.resolver, "#", 0)
    root.schema = _copied(made)
    return made


class _Loader:
    def __init__(self, references: References) -> None:
        self._references = references

    def load(self, value: Any, resolver: Resolver[Any], where: str, depth: int) -> Schema:
        if depth > MAX_DEPTH:
            raise SchemaError(f"{where}: the schema is nested too deep: more than {MAX_DEPTH} schemas")
        if isinstance(value, bool):
            return TrueSchema() if value else FalseSchema()
        if not isinstance(value, dict):
            refused(where, "a schema, which is an object or a boolean", value)
        if depth:
            resolver = self._references.within(resolver, value, "$id")
        return _Composite(self, value, resolver, where, depth).schema()

    def refer(self, ref: str, resolver: Resolver[Any], where: str, depth: int) -> Schema:
        return self._references.reference(
            ref, resolver, where, lambda value, inner, name: self.load(value, inner, name, depth + 1)
        )


class _Composite:
    """One object of keywords."""

    def __init__(self, loader: _Loader, value: dict[str, Any], resolver: Resolver[Any], where: str, depth: int) -> None:
        self._loader, self._value = loader, value
        self._resolver, self._where, self._depth = resolver, where, depth
        self._extra: dict[str, Any] = {}

    def schema(self) -> Schema:
        parts = [part for name, value in self._value.items() for part in self._part(name, value)]
        made = reduce(_join, parts) if parts else _nothing()
        for group in (self._properties(), self._patterns()):
            if group:
                made = _join(made, reduce(_join, group))
        made = reduce(_join, self._unevaluated(), made)
        if isinstance(made, CombinedSchema) and made.generated and made.criterion == "allOf":
            if not made.subschemas:
                made = EmptySchema()
            elif len(made.subschemas) == 1:
                made = _copied(made.subschemas[0])
        else:
            made = _copied(made)
        return self._annotated(made)

    def _annotated(self, made: Schema) -> Schema:
        # json-sKema drops ids, so a changed id is not a change.
        for keyword in ("title", "description"):
            if keyword in self._value:
                setattr(made, keyword, text(self._value[keyword], f"{self._where}/{keyword}"))
        if self._value.get("default") is not None:
            made.default = self._value["default"]
        if "$defs" in self._value:
            for name, value in object_(self._value["$defs"], f"{self._where}/$defs").items():
                self._child(value, "$defs", name)
        if self._extra or self._value.get("$defs"):
            # Confluent keeps these with the unknown keywords, and drops them if there are any unknown ones.
            made.extra = self._extra
            if isinstance(made, ArraySchema | ObjectSchema):
                made.unevaluated = None
            if isinstance(made, ArraySchema):
                made.min_contains = made.max_contains = None
        return made

    def _child(self, value: Any, *path: str | int) -> Schema:
        where = "/".join((self._where, *map(str, path)))
        return self._loader.load(value, self._resolver, where, self._depth + 1)

    def _part(self, name: str, value: Any) -> list[Schema]:
        """The schemas of one keyword; none for keywords that are read elsewhere."""
        where = f"{self._where}/{name}"
        if name in _COUNTS:
            kind, attribute = _COUNTS[name]
            made = kind(required=False)
            setattr(made, attribute, int(number(value, where)))
            return [made]
        if name in _LIMITS:
            limited = NumberSchema(required=False)
            setattr(limited, _LIMITS[name], number(value, where))
            return [limited]
        match name:
            case "properties" | "patternProperties" | "unevaluatedItems" | "unevaluatedProperties":
                return []
            case "type":
                return [self._type(value, where)]
            case "$ref" | "$dynamicRef":
                return [self._loader.refer(text(value, where), self._resolver, self._where, self._depth)]
            case "enum":
                return [EnumSchema(array(value, where))]
            case "const":
                return [ConstSchema(value)]
            case "allOf" | "anyOf" | "oneOf":
                return [self._combined(name, array(value, where))]
            case "not":
                return [NotSchema(self._child(value, name))]
            case "if":
                branches = [
                    self._child(self._value[part], part) if part in self._value else None for part in ("then", "else")
                ]
                return [ConditionalSchema(self._child(value, name), *branches)]
            case "pattern":
                return [StringSchema(pattern=text(value, where), required=False)]
            case "format":
                text(value, where)
                return [_nothing()]
            case "readOnly" | "writeOnly":
                boolean(value, where)
                return [_nothing()]
            case "required":
                return [ObjectSchema(required_properties=list(dict.fromkeys(strings(value, where))), required=False)]
            case "additionalProperties":
                return [ObjectSchema(additional=self._open(value, name), required=False)]
            case "propertyNames":
                return [ObjectSchema(property_names=self._child(value, name), required=False)]
            case "dependentRequired":
                needed = {key: strings(item, f"{where}/{key}") for key, item in object_(value, where).items()}
                return [ObjectSchema(property_dependencies={k: v for k, v in needed.items() if v}, required=False)]
            case "dependentSchemas":
                dependent = {key: self._child(item, name, key) for key, item in object_(value, where).items()}
                return [ObjectSchema(schema_dependencies=dependent, required=False)]
            case "items" | "prefixItems" | "contains" | "uniqueItems":
                return [self._array(name, value, where)]
        if name not in _NOT_EXTRA:
            self._extra[name] = value
        return []

    def _type(self, value: Any, where: str) -> Schema:
        if isinstance(value, list):
            return CombinedSchema("anyOf", [_of_type(item, where) for item in value], generated=True)
        return _of_type(value, where)

    def _combined(self, criterion: Criterion, members: list[Any]) -> Schema:
        made: Schema = CombinedSchema(criterion, [])
        for index, member in enumerate(members):
            made = _join(made, self._child(member, criterion, index), criterion)
        return made

    def _array(self, name: str, value: Any, where: str) -> ArraySchema:
        made = ArraySchema(required=False)
        match name:
            case "uniqueItems":
                made.unique = boolean(value, where)
            case "prefixItems":
                made.items = [self._child(item, name, index) for index, item in enumerate(array(value, where))]
            case "contains":
                made.contains = self._child(value, name)
                least, most = self._value.get("minContains", 1), self._value.get("maxContains")
                made.min_contains = number(least, f"{self._where}/minContains")
                made.max_contains = None if most is None else number(most, f"{self._where}/maxContains")
            case _:
                items = self._open(value, name)
                if isinstance(items, bool) or self._value.get("prefixItems"):
                    made.additional = items
                else:
                    made.all_items = items
        return made

    def _open(self, value: Any, keyword: str) -> Schema | bool:
        """Whether more values are allowed; their schema if there is one."""
        if isinstance(value, bool):
            return value
        return self._child(value, keyword)

    def _properties(self) -> list[Schema]:
        properties = object_(self._value.get("properties", {}), f"{self._where}/properties")
        return [
            ObjectSchema(properties={name: self._child(value, "properties", name)}, required=False)
            for name, value in properties.items()
        ]

    def _patterns(self) -> list[Schema]:
        patterns = object_(self._value.get("patternProperties", {}), f"{self._where}/patternProperties")
        return [
            ObjectSchema(pattern_properties={name: self._child(value, "patternProperties", name)}, required=False)
            for name, value in patterns.items()
        ]

    def _unevaluated(self) -> list[Schema]:
        schemas: list[Schema] = []
        if "unevaluatedItems" in self._value:
            inner = self._child(self._value["unevaluatedItems"], "unevaluatedItems")
            schemas.append(ArraySchema(unevaluated=inner, required=False))
        if "unevaluatedProperties" in self._value:
            inner = self._child(self._value["unevaluatedProperties"], "unevaluatedProperties")
            schemas.append(ObjectSchema(unevaluated=inner, required=False))
        return schemas


def _nothing() -> CombinedSchema:
    return CombinedSchema("allOf", [], generated=True)


def _of_type(name: Any, where: str) -> Schema:
    if not isinstance(name, str) or name not in TYPES:
        refused(where, f"one of {', '.join(sorted(TYPES))}", name)
    match name:
        case "string":
            return StringSchema()
        case "integer" | "number":
            return NumberSchema(integer=name == "integer")
        case "boolean":
            return BooleanSchema()
        case "null":
            return NullSchema()
        case "array":
            return ArraySchema()
    return ObjectSchema()


def _join(left: Schema, other: Schema, criterion: Criterion | None = None) -> Schema:
    """Join the schemas of two keywords. ``criterion`` names the combination whose members they are."""
    if type(left) is type(other) and isinstance(left, _MERGED):
        return _merged(left, other)
    for any_of, single in ((left, other), (other, left)):
        if (
            isinstance(any_of, CombinedSchema)
            and any_of.generated
            and any_of.criterion == "anyOf"
            and any(type(member) is type(single) for member in any_of.subschemas)
        ):
            return CombinedSchema("anyOf", _gathered([*any_of.subschemas, single]), generated=True)
    if criterion is not None and isinstance(left, CombinedSchema):
        return CombinedSchema(criterion, [*left.subschemas, *_flat(other)])
    return CombinedSchema("allOf", _gathered([*_flat(left), *_flat(other)]), generated=True)


def _flat(schema: Schema) -> list[Schema]:
    if isinstance(schema, CombinedSchema) and schema.generated and schema.criterion == "allOf":
        return schema.subschemas
    return [schema]


def _gathered(schemas: list[Schema]) -> list[Schema]:
    """The schemas with those of the same type merged, at the position of the first."""
    subschemas: list[Schema] = []
    for schema in schemas:
        index = next(
            (at for at, known in enumerate(subschemas) if type(known) is type(schema) and isinstance(known, _MERGED)),
            None,
        )
        if index is None:
            subschemas.append(schema)
        else:
            subschemas[index] = _merged(subschemas[index], schema)
    return subschemas


def _copied(schema: Schema) -> Schema:
    """A copy to annotate, because the schema itself may be a member of another."""
    made = copy.copy(schema)
    made.extra = dict(schema.extra)
    return made


def _merged(left: Schema, other: Schema) -> Schema:
    """Merge two schemas: the second one's values win, collections are combined."""
    made = _copied(left)
    for part in fields(other):
        mine, value = getattr(left, part.name), getattr(other, part.name)
        if isinstance(value, dict):
            setattr(made, part.name, {**mine, **value})
        elif part.name == "required_properties":
            made.required_properties = list(dict.fromkeys([*mine, *value]))  # type: ignore[attr-defined]
        elif part.name == "items" and value is not None:
            made.items = [*(mine or []), *value]  # type: ignore[attr-defined]
        elif part.name == "additional":
            if value is not True:
                made.additional = value  # type: ignore[attr-defined]
        elif isinstance(value, bool):
            # A flag of either applies to both.
            setattr(made, part.name, mine or value)
        elif part.name == "default":
            if other.has_default:
                made.default = value
        elif value is not None:
            setattr(made, part.name, value)
    if isinstance(made, ArraySchema) and made.all_items is not None and made.additional is False:
        made.additional = True  # without them the schema for all items applies to the rest too
    return made
