"""A JSON Schema for the registry and the converters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from registry.errors import InvalidSchema
from registry.formats.json_schema import drafts, modern
from registry.formats.json_schema.changes import LENIENT, STRICT, Change, message
from registry.formats.json_schema.compare import changes
from registry.formats.json_schema.model import Schema
from registry.formats.json_schema.patterns import bounded
from registry.formats.json_schema.references import SchemaError, bridged, draft_of
from registry.formats.json_text import write_json
from registry.formats.parsed import NO_REFERENCES

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["JsonSchema"]

_PREFIX = "Invalid schema of type JSON, details: "


class JsonSchema:
    """``value`` is the schema as JSON (decimals as Decimal), ``references`` the referenced texts by name."""

    schema_type = "JSON"

    def __init__(self, value: Any, references: Mapping[str, str] = NO_REFERENCES) -> None:
        self.value = value
        self.references = references

    @classmethod
    def parse(cls, text: str, references: Mapping[str, str] = NO_REFERENCES, *, strict: bool = True) -> JsonSchema:
        """Parse schema text; raises InvalidSchema with the place and the reason.

        Without ``strict`` it is only parsed as JSON. Errors in the schema then show in a comparison, as in Confluent.
        """
        schema = cls(_read(text), references)
        if strict:
            schema.model  # noqa: B018 - raises what is wrong with it
        return schema

    @cached_property
    def model(self) -> Schema:
        """The parsed model with references resolved. Raises InvalidSchema."""
        if not isinstance(self.value, dict | bool):
            raise InvalidSchema(f"{_PREFIX}expected an object or boolean at the root, found {self.canonical[:100]}")
        draft = draft_of(self.value)
        load = modern.load if "/draft/20" in draft else drafts.load
        try:
            return load(bridged(self.value), {name: _read(text) for name, text in self.references.items()}, draft)
        except SchemaError as error:
            raise InvalidSchema(f"{_PREFIX}{error}") from error
        except RecursionError:
            raise InvalidSchema(f"{_PREFIX}nested too deep") from None

    @cached_property
    def canonical(self) -> str:
        """Raises InvalidSchema if the schema is nested too deeply to be written."""
        try:
            return write_json(self.value)
        except RecursionError:
            raise InvalidSchema(f"{_PREFIX}nested too deep") from None

    @property
    def resolved(self) -> str:
        # References stay: a document may mean something else inside this one.
        return self.canonical

    @property
    def name(self) -> str | None:
        title = self.value.get("title") if isinstance(self.value, dict) else None
        return title if isinstance(title, str) else None

    @property
    def top_level_fields(self) -> frozenset[str]:
        properties = self.value.get("properties") if isinstance(self.value, dict) else None
        return frozenset(properties) if isinstance(properties, dict) else frozenset()

    def formatted(self, form: str) -> str:
        return self.canonical

    def normalized(self) -> JsonSchema:
        try:
            return JsonSchema(_sorted(self.value), self.references)
        except RecursionError:
            raise InvalidSchema(f"{_PREFIX}nested too deep") from None

    def check_fields(self) -> None:
        for name in sorted(self.top_level_fields):
            if name.startswith("$$"):
                raise InvalidSchema(f"{_PREFIX}#/properties/{name}: Field names cannot start with $$ prefix")

    def changes_from(self, earlier: JsonSchema, *, lenient: bool = False) -> list[Change]:
        """All changes from ``earlier`` to this schema, compatible or not."""
        try:
            return changes(earlier.model, self.model, LENIENT if lenient else STRICT)
        except RecursionError:
            raise InvalidSchema("The schemas are nested too deep to be compared") from None

    def reading_problems(self, writer: JsonSchema, *, lenient: bool = False) -> list[str]:
        compatible = LENIENT if lenient else STRICT
        changes = self.changes_from(writer, lenient=lenient)
        return [message(change) for change in changes if change.kind not in compatible]

    def validator(self) -> Validator:
        """A jsonschema validator for the schema's draft that knows its references."""
        from jsonschema.validators import validator_for
        from jsonschema_specifications import REGISTRY as METASCHEMAS
        from referencing.jsonschema import specification_with

        documents = []
        for name, text in self.references.items():
            value = json.loads(text)
            documents.append((name, specification_with(draft_of(value)).create_resource(bridged(value))))
        schema = bridged(json.loads(self.canonical))
        known = METASCHEMAS.with_resources(documents)
        kind: type[Validator] = bounded(validator_for({"$schema": draft_of(self.value)}))
        return kind(schema, registry=known)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JsonSchema):
            return False
        return self.canonical == other.canonical and dict(self.references) == dict(other.references)

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __repr__(self) -> str:
        return f"JsonSchema({self.canonical})"


def _read(text: str) -> Any:
    """Parse JSON as Confluent does: exact numbers, and text after the first value ignored."""
    try:
        value, _ = json.JSONDecoder(parse_float=Decimal).raw_decode(text.lstrip("\ufeff \t\r\n"))
    except RecursionError:
        raise InvalidSchema(f"{_PREFIX}nested too deep") from None
    except (ValueError, ArithmeticError) as error:
        raise InvalidSchema(f"{_PREFIX}not valid JSON: {error}") from error
    return value


def _sorted(value: Any) -> Any:
    """Members of every object sorted by name, in Java's string order."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return {name: _sorted(value[name]) for name in names}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value
