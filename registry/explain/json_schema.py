"""Explanations for JSON Schema: part, rule and fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from registry.explain.explanation import Explanation, Sides
from registry.formats.json_schema.changes import LENIENT, STRICT, Change
from registry.formats.json_schema.schema import JsonSchema

__all__ = ["explained"]

# Rule, problem, fix while the reader can still be changed, fix while only the writer can.
_WORDS: Final[Sequence[tuple[str, str, str, str]]] = (
    (
        (
            "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL "
            "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
        ),
        "{reader} says what {name} must be; {writer} lets anything stand under that name, since its objects are open",
        (
            'close the objects ("additionalProperties": false) before properties are added; or set the compatibility policy '
            "LENIENT, which trusts that nothing unnamed was sent"
        ),
        'name {name} in the new schema too, as it was, or close its objects ("additionalProperties": false)',
    ),
    (
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL REQUIRED_ATTRIBUTE_ADDED",
        "{reader} requires {name}, which {writer} need not write",
        "take {name} out of required, or give it a default",
        "keep {name} among the required properties of the new schema",
    ),
    (
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "{writer} may write {name}, which {reader} refuses, since its objects are closed",
        "keep the property {name}",
        "leave {name} out of the new schema: old readers refuse it",
    ),
    (
        (
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL "
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        ),
        "what {name} may be in {writer} does not fit what {reader} says of it (there, or for properties it does not name)",
        "let the property and the schema for unnamed properties agree",
        "let the property and the schema for unnamed properties agree",
    ),
    (
        (
            "ADDITIONAL_PROPERTIES_REMOVED ADDITIONAL_PROPERTIES_NARROWED UNEVALUATED_PROPERTIES_REMOVED "
            "UNEVALUATED_PROPERTIES_NARROWED ADDITIONAL_ITEMS_REMOVED ADDITIONAL_ITEMS_NARROWED UNEVALUATED_ITEMS_REMOVED "
            "UNEVALUATED_ITEMS_NARROWED"
        ),
        "{reader} allows less beside what is named than {writer} did",
        "leave {keyword} as open as it was",
        "make {keyword} no more open than old readers know it",
    ),
    (
        (
            "ITEM_ADDED_TO_OPEN_CONTENT_MODEL ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL "
            "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        ),
        "{reader} and {writer} do not agree on what stands at {name} of the array",
        "keep the items as they were; new ones may only come where nothing could stand before",
        "keep the items as they were; new ones may only come where nothing could stand before",
    ),
    (
        "TYPE_CHANGED TYPE_NARROWED SCHEMA_ADDED",
        "{reader} wants another type of {name} than {writer} wrote",
        'a type may only get wider: integer to number, or a list with the old type in it ("type": ["string", "null"])',
        "keep the type: old readers refuse a wider one",
    ),
    (
        "ENUM_ARRAY_NARROWED ENUM_ARRAY_CHANGED",
        "{reader} does not allow all the values of {name} that {writer} did",
        "keep the values that were allowed; more may be added",
        "add no values that old readers do not know",
    ),
    (
        "SUM_TYPE_NARROWED PRODUCT_TYPE_EXTENDED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED NOT_TYPE_EXTENDED",
        "the alternatives of {name} in {reader} do not take all that those in {writer} did",
        "keep every alternative of anyOf and oneOf, and add none to allOf; each must take what it took",
        "add no alternatives that old readers do not know",
    ),
    (
        "DEPENDENCY_ARRAY_ADDED DEPENDENCY_ARRAY_EXTENDED DEPENDENCY_ARRAY_CHANGED DEPENDENCY_SCHEMA_ADDED",
        "{reader} asks more of objects that have {name} than {writer} did",
        "leave the dependency as it was",
        "keep the dependency: old readers count on it",
    ),
)
_LIMIT: Final = (
    "{reader} sets a limit at {keyword} that {writer} did not have, or not as tight",
    "leave {keyword} as it was, or loosen it",
    "keep {keyword} as tight as old readers have it",
)


def explained(reader: JsonSchema, writer: JsonSchema, sides: Sides, *, lenient: bool) -> list[Explanation]:
    """Why ``reader`` refuses values that ``writer`` allowed."""
    compatible = LENIENT if lenient else STRICT
    changes = reader.changes_from(writer, lenient=lenient)
    return [_explanation(change, sides) for change in changes if change.kind not in compatible]


def _explanation(change: Change, sides: Sides) -> Explanation:
    problem, backward, forward = next(
        ((problem, *fixes) for kinds, problem, *fixes in _WORDS if change.kind in kinds.split()), _LIMIT
    )
    where = _where(change.path)
    keyword = change.path.rpartition("/")[2] or "the schema"
    words = {"reader": sides.reader, "writer": sides.writer, "name": where, "keyword": keyword}
    fix = forward if sides.forward else backward
    return Explanation(where, problem.format(**words), fix.format(**words), change.kind, change.path)


def _where(path: str) -> str:
    """``#/properties/a/items/properties/b`` as ``a[].b``, without the keyword of a limit."""
    names: list[str] = []
    tokens = [token for token in path.removeprefix("#/").split("/") if token]
    while tokens:
        token = tokens.pop(0)
        if token in ("properties", "required", "dependencies", "patternProperties") and tokens:
            names.append(tokens.pop(0))
        elif token == "items":
            names.append(f"[{tokens.pop(0)}]" if tokens and tokens[0].isdigit() else "[]")
        elif token in ("allOf", "anyOf", "oneOf") and tokens:
            tokens.pop(0)
    return ".".join(names).replace(".[", "[") or "the schema"
