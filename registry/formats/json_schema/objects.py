"""Changes of object keywords.

Whether a property may be added or removed depends on the content model: *open* if any other properties are allowed,
*closed* if none are, *partially open* if a schema restricts them.
"""

from __future__ import annotations

from registry.formats.json_schema.context import Context, bound, compare
from registry.formats.json_schema.model import EmptySchema, FalseSchema, ObjectSchema, Schema

__all__ = ["compare_objects", "compare_openness"]


def compare_objects(context: Context, original: ObjectSchema, update: ObjectSchema) -> None:
    context.effort.steps(len(original.properties) + len(update.properties))
    _required(context, original, update)
    required = set(update.required_properties)
    with context.at("properties"):
        for name in {**original.properties, **update.properties}:
            with context.at(name):
                _property(context, name, original, update, required=name in required)
    _dependencies(context, original, update)
    compare_openness(context, "additionalProperties", "ADDITIONAL_PROPERTIES", original.additional, update.additional)
    compare_unevaluated(
        context, "unevaluatedProperties", "UNEVALUATED_PROPERTIES", original.unevaluated, update.unevaluated
    )
    bound(context, "maxProperties", "MAX_PROPERTIES", original.max_properties, update.max_properties)
    bound(context, "minProperties", "MIN_PROPERTIES", original.min_properties, update.min_properties)


def _required(context: Context, original: ObjectSchema, update: ObjectSchema) -> None:
    required_before, required_after = set(original.required_properties), set(update.required_properties)
    for name in original.properties:
        if name not in update.properties:
            continue
        before, after = name in required_before, name in required_after
        if before == after:
            continue
        added = "WITH_DEFAULT_ADDED" if update.properties[name].has_default else "ADDED"
        context.add(f"REQUIRED_ATTRIBUTE_{'REMOVED' if before else added}", "required", name)


def _property(context: Context, name: str, original: ObjectSchema, update: ObjectSchema, *, required: bool) -> None:
    before, after = original.properties.get(name), update.properties.get(name)
    if before is not None and after is not None:
        compare(context, before, after)
    elif before is not None:
        _removed(context, name, before, update)
    elif after is not None:
        _added(context, name, after, original, required=required)


def _removed(context: Context, name: str, before: Schema, update: ObjectSchema) -> None:
    """A property may be removed if the new schema accepts its values anyway."""
    if _is_open(update):
        context.add("PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL")
        return
    partial = _partial(context, update, name)
    if partial is not None:
        covered = _covers(context, before, partial)
        context.add(f"PROPERTY_REMOVED_{'IS' if covered else 'NOT'}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    elif isinstance(before, FalseSchema):
        context.add("PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL")
    else:
        context.add("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL")


def _added(context: Context, name: str, after: Schema, original: ObjectSchema, *, required: bool) -> None:
    """A property may be added if the old schema allowed no value under its name that the new one refuses."""
    if not required:
        manner = "OPTIONAL_PROPERTY_ADDED"
    else:
        manner = "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED" if after.has_default else "REQUIRED_PROPERTY_ADDED"
    if _is_open(original):
        empty = isinstance(after, EmptySchema)
        context.add(f"{'PROPERTY_WITH_EMPTY_SCHEMA_ADDED' if empty else manner}_TO_OPEN_CONTENT_MODEL")
        return
    partial = _partial(context, original, name)
    if partial is not None:
        covered = _covers(context, partial, after)
        context.add(f"PROPERTY_ADDED_{'IS' if covered else 'NOT'}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
    context.add(f"{manner}_TO_UNOPEN_CONTENT_MODEL")


def _covers(context: Context, before: Schema, after: Schema) -> bool:
    aside = context.aside()
    compare(aside, before, after)
    context.take(aside.changes)
    return aside.compatible


def _is_open(schema: ObjectSchema) -> bool:
    if schema.additional is not True or schema.pattern_properties:
        return False
    return schema.unevaluated is None or isinstance(schema.unevaluated, EmptySchema)


def _partial(context: Context, schema: ObjectSchema, name: str) -> Schema | None:
    """The schema for unnamed properties of this name, if any."""
    for pattern, value in schema.pattern_properties.items():
        context.effort.pair()
        if context.memory.matches(pattern, name):
            return value
    if isinstance(schema.additional, Schema):
        return schema.additional
    if schema.additional is True and not isinstance(schema.unevaluated, FalseSchema | EmptySchema):
        return schema.unevaluated
    return None


def _dependencies(context: Context, original: ObjectSchema, update: ObjectSchema) -> None:
    for name in {**original.property_dependencies, **update.property_dependencies}:
        before, after = original.property_dependencies.get(name), update.property_dependencies.get(name)
        if after is None:
            change = "REMOVED"
        elif before is None:
            change = "ADDED"
        elif set(before) == set(after):
            continue
        elif set(before) < set(after):
            change = "EXTENDED"
        else:
            change = "NARROWED" if set(after) < set(before) else "CHANGED"
        context.add(f"DEPENDENCY_ARRAY_{change}", "dependencies", name)
    for name in {**original.schema_dependencies, **update.schema_dependencies}:
        old, new = original.schema_dependencies.get(name), update.schema_dependencies.get(name)
        if old is None or new is None:
            context.add(f"DEPENDENCY_SCHEMA_{'REMOVED' if new is None else 'ADDED'}", "dependencies", name)
        else:
            with context.at("dependencies", name):
                compare(context, old, new)


def compare_openness(context: Context, keyword: str, name: str, before: Schema | bool, after: Schema | bool) -> None:
    """Compare ``additionalProperties`` or ``additionalItems``."""
    with context.at(keyword):
        if (before is False) != (after is False):
            context.add(f"{name}_ADDED" if before is False else f"{name}_REMOVED")
        elif isinstance(before, Schema) and isinstance(after, Schema):
            compare(context, before, after)
        elif isinstance(after, Schema):
            context.add(f"{name}_NARROWED")
        elif isinstance(before, Schema):
            context.add(f"{name}_EXTENDED")


def compare_unevaluated(context: Context, keyword: str, name: str, before: Schema | None, after: Schema | None) -> None:
    """Compare ``unevaluatedProperties`` or ``unevaluatedItems``; absent is as open as ``true``."""
    if before is None and after is None:
        return
    with context.at(keyword):
        closed_before, closed_after = isinstance(before, FalseSchema), isinstance(after, FalseSchema)
        open_before = before is None or isinstance(before, EmptySchema)
        open_after = after is None or isinstance(after, EmptySchema)
        if before is None:
            context.add(f"{name}_REMOVED" if closed_after else f"{name}_NARROWED")
        elif after is None:
            context.add(f"{name}_ADDED" if closed_before else f"{name}_EXTENDED")
        elif closed_before != closed_after:
            context.add(f"{name}_ADDED" if closed_before else f"{name}_REMOVED")
        elif open_before != open_after:
            context.add(f"{name}_NARROWED" if open_before else f"{name}_EXTENDED")
        else:
            compare(context, before, after)
