"""Parses drafts 4, 6 and 7 by the rules of everit, which Confluent uses.

Keywords are consumed in groups, in this order: ``enum``; ``allOf``, ``anyOf``, ``oneOf``; ``not``; ``const``; ``type``
with the keywords for that type; then keywords for types that ``type`` does not name. Later groups do not see consumed
keywords. Siblings of ``$ref`` are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from registry.formats.json_schema.keywords import (
    MAX_DEPTH,
    TYPES,
    array,
    boolean,
    count,
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

_NUMBERS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRINGS: Final = ("minLength", "maxLength", "pattern", "format")
_CONDITIONS: Final = ("if", "then", "else")
_CRITERIA: Final[tuple[Criterion, ...]] = ("allOf", "anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class _Draft:
    number: int

    @property
    def id_keyword(self) -> str:
        return "id" if self.number == 4 else "$id"

    @property
    def arrays(self) -> tuple[str, ...]:
        known = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems")
        return known if self.number == 4 else (*known, "contains")

    @property
    def objects(self) -> tuple[str, ...]:
        known = ("properties", "required", "minProperties", "maxProperties", "dependencies", "patternProperties",
                 "additionalProperties")  # fmt: skip
        return known if self.number == 4 else (*known, "propertyNames")


def load(document: Any, referenced: Mapping[str, Any], draft: str) -> Schema:
    """The schema in ``document``. Raises SchemaError. ``referenced`` are the parsed documents by name."""
    version = _Draft(4 if "draft-04" in draft else 6 if "draft-06" in draft else 7)
    references = References(document, referenced, draft, modern=False)
    return _Loader(version, references).load(document, references.resolver, "#", 0)


class _Loader:
    def __init__(self, draft: _Draft, references: References) -> None:
        self._draft = draft
        self._references = references

    def load(self, value: Any, resolver: Resolver[Any], where: str, depth: int) -> Schema:
        if depth > MAX_DEPTH:
            raise SchemaError(f"{where}: the schema is nested too deep: more than {MAX_DEPTH} schemas")
        if isinstance(value, bool):
            return TrueSchema() if value else FalseSchema()
        if not isinstance(value, dict):
            refused(where, "a schema, which is an object or a boolean", value)
        if depth:
            resolver = self._references.within(resolver, value, self._draft.id_keyword)
        return _Extraction(self, self._draft, value, resolver, where, depth).schema()

    def refer(self, ref: str, resolver: Resolver[Any], where: str, depth: int) -> Schema:
        return self._references.reference(
            ref, resolver, where, lambda value, inner, name: self.load(value, inner, name, depth + 1)
        )


class _Extraction:
    """One object of keywords; ``left`` are those not consumed yet."""

    def __init__(
        self, loader: _Loader, draft: _Draft, value: dict[str, Any], resolver: Resolver[Any], where: str, depth: int
    ) -> None:
        self._loader, self._draft, self._value = loader, draft, value
        self._resolver, self._where, self._depth = resolver, where, depth
        self._left = dict(value)

    def schema(self) -> Schema:
        if "$ref" in self._value:
            ref = text(self._left.pop("$ref"), f"{self._where}/$ref")
            schemas: list[Schema] = [self._loader.refer(ref, self._resolver, self._where, self._depth)]
        else:
            schemas = [*self._enum(), *self._combined(), *self._not(), *self._const(), *self._typed(), *self._untyped()]
        if not schemas:
            made: Schema = EmptySchema()
        elif len(schemas) == 1:
            made = schemas[0]
        else:
            made = CombinedSchema("allOf", schemas)
        self._annotate(made)
        return made

    def _annotate(self, made: Schema) -> None:
        for keyword, attribute in ((self._draft.id_keyword, "id"), ("title", "title"), ("description", "description")):
            if keyword in self._left:
                setattr(made, attribute, text(self._left.pop(keyword), f"{self._where}/{keyword}"))
        if "default" in self._left:
            made.default = self._left.pop("default")
        if isinstance(made, ArraySchema):
            for keyword, attribute in (("minContains", "min_contains"), ("maxContains", "max_contains")):
                value = self._left.get(keyword)
                if not isinstance(value, bool | str | list | dict):
                    setattr(made, attribute, value)
        made.extra = self._left

    def _child(self, value: Any, *path: str | int) -> Schema:
        where = "/".join((self._where, *map(str, path)))
        return self._loader.load(value, self._resolver, where, self._depth + 1)

    def _take(self, *keywords: str) -> dict[str, Any]:
        return {keyword: self._left.pop(keyword) for keyword in keywords if keyword in self._left}

    def _enum(self) -> list[Schema]:
        return [EnumSchema(array(values, f"{self._where}/{keyword}")) for keyword, values in self._take("enum").items()]

    def _combined(self) -> list[Schema]:
        schemas: list[Schema] = []
        for criterion in _CRITERIA:
            if criterion in self._left:
                members = array(self._left.pop(criterion), f"{self._where}/{criterion}")
                subschemas = [self._child(member, criterion, index) for index, member in enumerate(members)]
                schemas.append(CombinedSchema(criterion, subschemas))
        return schemas

    def _not(self) -> list[Schema]:
        return [NotSchema(self._child(value, keyword)) for keyword, value in self._take("not").items()]

    def _const(self) -> list[Schema]:
        return [] if self._draft.number == 4 else [ConstSchema(value) for value in self._take("const").values()]

    def _typed(self) -> list[Schema]:
        if "type" not in self._left:
            return []
        types = self._left.pop("type")
        if isinstance(types, list):
            # Each type of the list sees its keywords.
            return [CombinedSchema("anyOf", [self._of_type(item) for item in types])]
        return [self._of_type(types)]

    def _of_type(self, name: Any) -> Schema:
        if not isinstance(name, str) or name not in TYPES:
            refused(f"{self._where}/type", f"one of {', '.join(sorted(TYPES))}", name)
        match name:
            case "string":
                return self._string()
            case "integer" | "number":
                return self._number(integer=name == "integer")
            case "boolean":
                return BooleanSchema()
            case "null":
                return NullSchema()
            case "array":
                return self._array()
        return self._object()

    def _untyped(self) -> list[Schema]:
        schemas: list[Schema] = []
        if any(keyword in self._left for keyword in self._draft.arrays):
            schemas.append(self._array(required=False))
        if any(keyword in self._left for keyword in self._draft.objects):
            schemas.append(self._object(required=False))
        if any(keyword in self._left for keyword in _NUMBERS):
            schemas.append(self._number(required=False))
        if any(keyword in self._left for keyword in _STRINGS):
            schemas.append(self._string(required=False))
        if self._draft.number == 7 and any(keyword in self._left for keyword in _CONDITIONS):
            taken = {keyword: self._child(value, keyword) for keyword, value in self._take(*_CONDITIONS).items()}
            schemas.append(ConditionalSchema(*(taken.get(keyword) for keyword in _CONDITIONS)))
        return schemas

    # Keywords of a type are read from the whole object, because each type of a list sees them.

    def _get(self, keyword: str) -> Any:
        self._left.pop(keyword, None)
        return self._value.get(keyword)

    def _count(self, keyword: str) -> int | None:
        self._left.pop(keyword, None)
        return count(self._value[keyword], f"{self._where}/{keyword}") if keyword in self._value else None

    def _string(self, *, required: bool = True) -> StringSchema:
        lengths = self._count("minLength"), self._count("maxLength")
        for keyword in ("pattern", "format"):
            self._left.pop(keyword, None)
            if keyword in self._value:
                text(self._value[keyword], f"{self._where}/{keyword}")
        return StringSchema(*lengths, self._value.get("pattern"), required)

    def _number(self, *, integer: bool = False, required: bool = True) -> NumberSchema:
        made = NumberSchema(integer=integer, required=required)
        for keyword, attribute in (("minimum", "minimum"), ("maximum", "maximum"), ("multipleOf", "multiple_of")):
            self._left.pop(keyword, None)
            if keyword in self._value:
                setattr(made, attribute, number(self._value[keyword], f"{self._where}/{keyword}"))
        for keyword, exclusive in (
            ("exclusiveMinimum", "exclusive_minimum"),
            ("exclusiveMaximum", "exclusive_maximum"),
        ):
            self._left.pop(keyword, None)
            if keyword not in self._value:
                continue
            value, where = self._value[keyword], f"{self._where}/{keyword}"
            if self._draft.number == 4:
                # In draft 4 it makes the limit exclusive; Confluent compares only the limits.
                boolean(value, where)
            else:
                setattr(made, exclusive, number(value, where))
        return made

    def _array(self, *, required: bool = True) -> ArraySchema:
        made = ArraySchema(required=required)
        made.min_items, made.max_items = self._count("minItems"), self._count("maxItems")
        where = self._where
        if (unique := self._get("uniqueItems")) is not None:
            made.unique = boolean(unique, f"{where}/uniqueItems")
        if (additional := self._get("additionalItems")) is not None:
            made.additional = self._open(additional, "additionalItems")
        self._left.pop("items", None)
        if "items" in self._value:
            items = self._value["items"]
            if isinstance(items, list):
                made.items = [self._child(item, "items", index) for index, item in enumerate(items)]
            else:
                made.all_items = self._child(items, "items")
            if made.all_items is not None and made.additional is False:
                made.additional = True  # without them the schema for all items applies to the rest too
        if self._draft.number != 4 and "contains" in self._value:
            self._left.pop("contains", None)
            made.contains = self._child(self._value["contains"], "contains")
        return made

    def _object(self, *, required: bool = True) -> ObjectSchema:
        made = ObjectSchema(required=required)
        where = self._where
        made.min_properties, made.max_properties = self._count("minProperties"), self._count("maxProperties")
        if (properties := self._get("properties")) is not None:
            for name, value in object_(properties, f"{where}/properties").items():
                # A string under the id keyword is a misplaced id.
                if name != self._draft.id_keyword or isinstance(value, dict):
                    made.properties[name] = self._child(value, "properties", name)
        if (additional := self._get("additionalProperties")) is not None:
            made.additional = self._open(additional, "additionalProperties")
        if (names := self._get("required")) is not None:
            made.required_properties = list(dict.fromkeys(strings(names, f"{where}/required")))
        if (patterns := self._get("patternProperties")) is not None:
            for pattern, value in object_(patterns, f"{where}/patternProperties").items():
                made.pattern_properties[pattern] = self._child(value, "patternProperties", pattern)
        if (dependencies := self._get("dependencies")) is not None:
            for name, value in object_(dependencies, f"{where}/dependencies").items():
                if isinstance(value, list):
                    made.property_dependencies[name] = strings(value, f"{where}/dependencies/{name}")
                else:
                    made.schema_dependencies[name] = self._child(value, "dependencies", name)
        if self._draft.number != 4 and (naming := self._get("propertyNames")) is not None:
            made.property_names = self._child(naming, "propertyNames")
        return made

    def _open(self, value: Any, keyword: str) -> Schema | bool:
        if isinstance(value, bool):
            return value
        return self._child(object_(value, f"{self._where}/{keyword}"), keyword)
