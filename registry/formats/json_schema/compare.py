"""Compares two JSON Schemas by the rules of Confluent's ``SchemaDiff`` (8.5).

A pass assumes that a pair that recurs within itself is compatible. If a pair turns out to be incompatible, everything
is compared again with that knowledge, until a pass finds nothing new.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal, InvalidOperation

from registry.formats.effort import Effort
from registry.formats.json_schema.arrays import compare_arrays
from registry.formats.json_schema.changes import STRICT, Change
from registry.formats.json_schema.combinations import compare_combined
from registry.formats.json_schema.context import Context, Memory, Pair, bound, compare
from registry.formats.json_schema.model import (
    ArraySchema,
    CombinedSchema,
    ConstSchema,
    EmptySchema,
    EnumSchema,
    FalseSchema,
    NotSchema,
    NumberSchema,
    ObjectSchema,
    Schema,
    StringSchema,
    json_key,
)
from registry.formats.json_schema.objects import compare_objects

__all__ = ["changes"]


def changes(original: Schema, update: Schema, compatible: Collection[str] = STRICT) -> list[Change]:
    """All changes from ``original`` to ``update``, compatible or not.

    ``compatible`` are the harmless kinds: of several alternatives, one with only such changes is sufficient. Raises
    TooManySteps.
    """
    known: dict[Pair, list[Change]] = {}
    effort = Effort()
    while True:
        memory = Memory(_compare_kinds, compatible, known, effort)
        context = Context(memory)
        compare(context, original, update)
        harmful = {pair: made for pair, made in memory.compared.items() if not memory.harmless(made)}
        if not memory.guessed or harmful.keys() == known.keys():
            return context.changes
        known = harmful


def _compare_kinds(context: Context, original: Schema, update: Schema) -> None:
    if _through_combination(context, original, update):
        return
    if type(original) is not type(update):
        if isinstance(original, FalseSchema) or isinstance(update, EmptySchema):
            return
        # Connect's decimals were numbers and became strings; Confluent permits that change.
        if original.extra.get("connect.type") == update.extra.get("connect.type") == "bytes":
            return
        context.add("TYPE_CHANGED")
        return
    for attribute in ("id", "title", "description"):
        if getattr(original, attribute) != getattr(update, attribute):
            context.add(f"{attribute.upper()}_CHANGED")
    if json_key(original.default) != json_key(update.default):
        context.add("DEFAULT_CHANGED")
    match original, update:
        case StringSchema(), StringSchema():
            _strings(context, original, update)
        case NumberSchema(), NumberSchema():
            _numbers(context, original, update)
        case ConstSchema(), ConstSchema():
            if json_key(original.value) != json_key(update.value):
                context.add("ENUM_ARRAY_CHANGED", "const")
        case EnumSchema(), EnumSchema():
            _enums(context, original, update)
        case CombinedSchema(), CombinedSchema():
            compare_combined(context, original, update)
        case NotSchema(), NotSchema():
            with context.at("not"):
                aside = context.aside()
                # A ``not`` may only get narrower, so it is compared in reverse.
                compare(aside, update.must_not_match, original.must_not_match)
                context.add("NOT_TYPE_NARROWED" if aside.compatible else "NOT_TYPE_EXTENDED")
        case ObjectSchema(), ObjectSchema():
            compare_objects(context, original, update)
        case ArraySchema(), ArraySchema():
            compare_arrays(context, original, update)


def _through_combination(context: Context, original: Schema, update: Schema) -> bool:
    """Whether a plain schema is compatible with one member of a combination, which then decides."""
    combined_before, combined_after = isinstance(original, CombinedSchema), isinstance(update, CombinedSchema)
    if combined_before == combined_after:
        return False
    combined = original if isinstance(original, CombinedSchema) else update
    assert isinstance(combined, CombinedSchema)
    if len(combined.subschemas) == 1:
        extra = None
    elif combined_after and combined.criterion in ("anyOf", "oneOf"):
        extra = "SUM_TYPE_EXTENDED"
    elif combined_before and combined.criterion == "allOf":
        extra = "PRODUCT_TYPE_NARROWED"
    else:
        return False
    for member in combined.subschemas:
        aside = context.aside()
        compare(aside, original if combined_after else member, member if combined_after else update)
        if aside.compatible:
            context.take(aside.changes)
            if extra:
                context.add(extra)
            return True
    return False


def _strings(context: Context, original: StringSchema, update: StringSchema) -> None:
    bound(context, "maxLength", "MAX_LENGTH", original.max_length, update.max_length)
    bound(context, "minLength", "MIN_LENGTH", original.min_length, update.min_length)
    if original.pattern != update.pattern:
        change = "ADDED" if original.pattern is None else "REMOVED" if update.pattern is None else "CHANGED"
        context.add(f"PATTERN_{change}", "pattern")


def _numbers(context: Context, original: NumberSchema, update: NumberSchema) -> None:
    bound(context, "maximum", "MAXIMUM", original.maximum, update.maximum)
    bound(context, "minimum", "MINIMUM", original.minimum, update.minimum)
    bound(context, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", original.exclusive_maximum, update.exclusive_maximum)
    bound(context, "exclusiveMinimum", "EXCLUSIVE_MINIMUM", original.exclusive_minimum, update.exclusive_minimum)
    before, after = original.multiple_of, update.multiple_of
    if before != after:
        if before is None:
            change = "ADDED"
        elif after is None:
            change = "REMOVED"
        elif _divides(before, after):
            change = "EXPANDED"
        elif _divides(after, before):
            change = "REDUCED"
        else:
            change = "CHANGED"
        context.add(f"MULTIPLE_OF_{change}", "multipleOf")
    if original.integer != update.integer:
        context.add("TYPE_EXTENDED" if original.integer else "TYPE_NARROWED")


def _divides(divisor: int | Decimal, other: int | Decimal) -> bool:
    try:
        return divisor != 0 and other % divisor == 0
    except InvalidOperation:  # the exponents differ too much
        return False


def _enums(context: Context, original: EnumSchema, update: EnumSchema) -> None:
    before, after = ({json_key(value) for value in schema.values} for schema in (original, update))
    if before != after:
        change = "EXTENDED" if before < after else "NARROWED" if after < before else "CHANGED"
        context.add(f"ENUM_ARRAY_{change}", "enum")
