"""Changes of ``allOf``, ``anyOf`` and ``oneOf``: members are paired with compatible ones."""

from __future__ import annotations

from registry.formats.json_schema.context import Context, compare
from registry.formats.json_schema.matching import largest_matching
from registry.formats.json_schema.model import CombinedSchema, Schema, described

__all__ = ["compare_combined"]


def compare_combined(context: Context, original: CombinedSchema, update: CombinedSchema) -> None:
    if not _criteria_go_together(context, original, update):
        return
    before, after = _distinct(original), _distinct(update)
    if len(before) < len(after):
        context.add("PRODUCT_TYPE_EXTENDED" if update.criterion == "allOf" else "SUM_TYPE_EXTENDED")
    elif len(before) > len(after):
        context.add("PRODUCT_TYPE_NARROWED" if original.criterion == "allOf" else "SUM_TYPE_NARROWED")
    compatible: dict[int, dict[int, Context]] = {}
    for left, old in enumerate(before):
        partners = compatible[left] = {}
        with context.at(original.criterion, str(left)):
            for right, new in enumerate(after):
                aside = context.aside()
                compare(aside, old, new)
                if aside.compatible:
                    partners[right] = aside
    matching = largest_matching({left: list(partners) for left, partners in compatible.items()})
    for left, right in matching.items():
        context.take(compatible[left][right].changes)
    if len(matching) < min(len(before), len(after)):
        context.add("COMBINED_TYPE_SUBSCHEMAS_CHANGED")


def _distinct(combined: CombinedSchema) -> list[Schema]:
    """The members without duplicates."""
    seen: dict[object, Schema] = {}
    for member in combined.subschemas:
        seen.setdefault(described(member), member)
    return list(seen.values())


def _criteria_go_together(context: Context, original: CombinedSchema, update: CombinedSchema) -> bool:
    before, after = original.criterion, update.criterion
    if before == after:
        return True
    single_before, single_after = len(original.subschemas) == 1, len(update.subschemas) == 1
    extended = (
        after == "anyOf"
        or (single_before and (single_after or after == "oneOf"))
        or (single_after and before == "allOf")
    )
    context.add("COMBINED_TYPE_EXTENDED" if extended else "COMBINED_TYPE_CHANGED")
    return extended
