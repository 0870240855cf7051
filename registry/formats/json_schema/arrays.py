"""Changes of array keywords; for the content models see ``objects``."""

from __future__ import annotations

from registry.formats.json_schema.context import Context, bound, compare
from registry.formats.json_schema.model import ArraySchema, EmptySchema, FalseSchema, Schema
from registry.formats.json_schema.objects import compare_openness, compare_unevaluated

__all__ = ["compare_arrays"]


def compare_arrays(context: Context, original: ArraySchema, update: ArraySchema) -> None:
    with context.at("items"):
        compare(context, original.all_items, update.all_items)
    before, after = original.items or [], update.items or []
    for index in range(max(len(before), len(after))):
        with context.at("items", str(index)):
            if index >= len(after):
                _removed(context, before[index], update)
            elif index >= len(before):
                _added(context, after[index], original)
            else:
                compare(context, before[index], after[index])
    compare_openness(context, "additionalItems", "ADDITIONAL_ITEMS", original.additional, update.additional)
    compare_unevaluated(context, "unevaluatedItems", "UNEVALUATED_ITEMS", original.unevaluated, update.unevaluated)
    bound(context, "maxItems", "MAX_ITEMS", original.max_items, update.max_items)
    bound(context, "minItems", "MIN_ITEMS", original.min_items, update.min_items)
    if original.unique != update.unique:
        context.add("UNIQUE_ITEMS_REMOVED" if original.unique else "UNIQUE_ITEMS_ADDED", "uniqueItems")
    bound(context, "maxContains", "MAX_CONTAINS", original.max_contains, update.max_contains)
    bound(context, "minContains", "MIN_CONTAINS", original.min_contains, update.min_contains)


def _removed(context: Context, before: Schema, update: ArraySchema) -> None:
    if _is_open(update):
        context.add("ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL")
        return
    partial = _partial(update)
    if partial is not None:
        aside = context.aside()
        compare(aside, before, partial)
        context.take(aside.changes)
        covered = "IS" if aside.compatible else "NOT"
        context.add(f"ITEM_REMOVED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    elif isinstance(before, FalseSchema):
        context.add("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        context.add("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL")


def _added(context: Context, after: Schema, original: ArraySchema) -> None:
    if _is_open(original):
        empty = "WITH_EMPTY_SCHEMA_" if isinstance(after, EmptySchema) else ""
        context.add(f"ITEM_{empty}ADDED_TO_OPEN_CONTENT_MODEL")
        return
    partial = _partial(original)
    if partial is None:
        context.add("ITEM_ADDED_TO_CLOSED_CONTENT_MODEL")
        return
    aside = context.aside()
    compare(aside, partial, after)
    context.take(aside.changes)
    covered = "IS" if aside.compatible else "NOT"
    context.add(f"ITEM_ADDED_{covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")


def _is_open(schema: ArraySchema) -> bool:
    return schema.additional is True and (schema.unevaluated is None or isinstance(schema.unevaluated, EmptySchema))


def _partial(schema: ArraySchema) -> Schema | None:
    if isinstance(schema.additional, Schema):
        return schema.additional
    if schema.additional is True and not isinstance(schema.unevaluated, FalseSchema | EmptySchema):
        return schema.unevaluated
    return None
