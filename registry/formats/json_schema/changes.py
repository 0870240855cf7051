"""Changes between two JSON Schemas: which of them Confluent considers compatible, and its messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["LENIENT", "STRICT", "Change", "message"]


@dataclass(frozen=True, slots=True)
class Change:
    """One difference. ``kind`` is Confluent's ``Difference.Type``; ``path`` starts at ``#/``."""

    kind: str
    path: str


def _kinds(names: str) -> frozenset[str]:
    return frozenset(names.split())


STRICT: Final = _kinds(
    """
    ID_CHANGED DESCRIPTION_CHANGED TITLE_CHANGED DEFAULT_CHANGED SCHEMA_REMOVED TYPE_EXTENDED
    MAX_LENGTH_INCREASED MAX_LENGTH_REMOVED MIN_LENGTH_DECREASED MIN_LENGTH_REMOVED PATTERN_REMOVED
    MAXIMUM_INCREASED MAXIMUM_REMOVED MINIMUM_DECREASED MINIMUM_REMOVED
    EXCLUSIVE_MAXIMUM_INCREASED EXCLUSIVE_MAXIMUM_REMOVED EXCLUSIVE_MINIMUM_DECREASED EXCLUSIVE_MINIMUM_REMOVED
    MULTIPLE_OF_REDUCED MULTIPLE_OF_REMOVED
    REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED REQUIRED_ATTRIBUTE_REMOVED
    DEPENDENCY_ARRAY_NARROWED DEPENDENCY_ARRAY_REMOVED DEPENDENCY_SCHEMA_REMOVED
    MAX_PROPERTIES_INCREASED MAX_PROPERTIES_REMOVED MIN_PROPERTIES_DECREASED MIN_PROPERTIES_REMOVED
    ADDITIONAL_PROPERTIES_ADDED ADDITIONAL_PROPERTIES_EXTENDED UNEVALUATED_PROPERTIES_ADDED UNEVALUATED_PROPERTIES_EXTENDED
    PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL
    OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL
    PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    MAX_ITEMS_INCREASED MAX_ITEMS_REMOVED MIN_ITEMS_DECREASED MIN_ITEMS_REMOVED
    MAX_CONTAINS_INCREASED MAX_CONTAINS_REMOVED MIN_CONTAINS_DECREASED MIN_CONTAINS_REMOVED UNIQUE_ITEMS_REMOVED
    ADDITIONAL_ITEMS_ADDED ADDITIONAL_ITEMS_EXTENDED UNEVALUATED_ITEMS_ADDED UNEVALUATED_ITEMS_EXTENDED
    ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_CLOSED_CONTENT_MODEL
    ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL
    ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    ENUM_ARRAY_EXTENDED COMBINED_TYPE_EXTENDED PRODUCT_TYPE_NARROWED SUM_TYPE_EXTENDED NOT_TYPE_NARROWED
    """
)
"""Changes after which the new schema still accepts everything that the old one accepted."""

LENIENT: Final = STRICT | _kinds(
    """
    ADDITIONAL_PROPERTIES_NARROWED ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_NARROWED
    UNEVALUATED_PROPERTIES_REMOVED REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
    OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL
    PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
    """
)
"""Additional changes that the policy LENIENT allows: properties that come and go, as if no client sent unnamed ones."""

_TEXTS: Final[Sequence[tuple[frozenset[str], str]]] = (
    (
        _kinds(
            """
            MAXIMUM_ADDED MINIMUM_ADDED EXCLUSIVE_MAXIMUM_ADDED EXCLUSIVE_MINIMUM_ADDED MULTIPLE_OF_ADDED
            MAX_LENGTH_ADDED MIN_LENGTH_ADDED PATTERN_ADDED REQUIRED_ATTRIBUTE_ADDED MAX_PROPERTIES_ADDED
            MIN_PROPERTIES_ADDED DEPENDENCY_ARRAY_ADDED DEPENDENCY_SCHEMA_ADDED MAX_ITEMS_ADDED MIN_ITEMS_ADDED
            MAX_CONTAINS_ADDED MIN_CONTAINS_ADDED UNIQUE_ITEMS_ADDED ADDITIONAL_ITEMS_REMOVED
            ADDITIONAL_PROPERTIES_REMOVED UNEVALUATED_PROPERTIES_REMOVED UNEVALUATED_ITEMS_REMOVED
            """
        ),
        "The keyword at path '{}' in the %s schema is not present in the %s schema",
    ),
    (
        _kinds(
            """
            MIN_LENGTH_INCREASED MINIMUM_INCREASED EXCLUSIVE_MINIMUM_INCREASED MIN_PROPERTIES_INCREASED
            MULTIPLE_OF_EXPANDED MIN_ITEMS_INCREASED MIN_CONTAINS_INCREASED
            """
        ),
        "The value at path '{}' in the %s schema is more than its value in the %s schema",
    ),
    (
        _kinds(
            """
            MAX_LENGTH_DECREASED MAXIMUM_DECREASED MAX_ITEMS_DECREASED MAX_CONTAINS_DECREASED
            EXCLUSIVE_MAXIMUM_DECREASED MAX_PROPERTIES_DECREASED
            """
        ),
        "The value at path '{}' in the %s schema is less than its value in the %s schema",
    ),
    (
        _kinds("PATTERN_CHANGED MULTIPLE_OF_CHANGED DEPENDENCY_ARRAY_CHANGED"),
        "The value at path '{}' is different between the %s and %s schema",
    ),
    (
        _kinds(
            """
            ADDITIONAL_ITEMS_NARROWED ENUM_ARRAY_NARROWED SUM_TYPE_NARROWED ADDITIONAL_PROPERTIES_NARROWED
            UNEVALUATED_PROPERTIES_NARROWED UNEVALUATED_ITEMS_NARROWED
            """
        ),
        "An array or combined type at path '{}' has fewer elements in the %s schema than the %s schema",
    ),
    (
        _kinds("DEPENDENCY_ARRAY_EXTENDED PRODUCT_TYPE_EXTENDED SUM_TYPE_EXTENDED NOT_TYPE_EXTENDED"),
        "An array or combined type at path '{}' has more elements in the %s schema than the %s schema",
    ),
    (
        _kinds("TYPE_CHANGED TYPE_NARROWED COMBINED_TYPE_CHANGED COMBINED_TYPE_SUBSCHEMAS_CHANGED ENUM_ARRAY_CHANGED"),
        "A type at path '{}' is different between the %s schema and the %s schema",
    ),
    (
        _kinds(
            """
            REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL
            REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL
            OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL ITEM_ADDED_TO_OPEN_CONTENT_MODEL
            """
        ),
        (
            "The %s schema has an open content model and has a property or item at path '{}' which is "
            "missing in the %s schema"
        ),
    ),
    (
        _kinds("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"),
        (
            "The %s schema has an unopen content model and has a required property at path '{}' which is "
            "missing in the %s schema"
        ),
    ),
    (
        _kinds("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"),
        ("The %s has a closed content model and is missing a property or item present at path '{}' in the %s schema"),
    ),
    (
        _kinds(
            """
            PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            """
        ),
        (
            "A property or item is missing in the %s schema but present at path '{}' in the %s schema and is"
            " not covered by its partially open content model"
        ),
    ),
    (
        _kinds(
            """
            PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL
            """
        ),
        (
            "The %s schema has a property or item at path '{}' which is missing in the %s schema and is not "
            "covered by its partially open content model"
        ),
    ),
)


def message(change: Change) -> str:
    """Confluent's message, with its quotes.

    ``%s`` stands for the reader's and the writer's name; ``%`` itself is doubled.
    """
    text = next((words for kinds, words in _TEXTS if change.kind in kinds), "").replace(
        "{}", change.path.replace("%", "%%")
    )
    return f'{{errorType:"{change.kind}", description:"{text}\'}}'
