"""Paths to fields, plain (V1) or through nested structs with dots and backticks (V2, KIP-821)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from connect.api import DataError, Field, Schema, SchemaType, key, one_of
from connect.data.defaults import with_default
from connect.transforms.sides import java_name

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FieldPath", "field_syntax_key", "steps_of"]

_PURPOSE: Final = "nested field access"


def field_syntax_key() -> Any:
    """The key of transformations that support nested fields."""
    return key(
        "field.syntax.version",
        default="V1",
        check=one_of("V1", "V2", ignore_case=True),
        importance="high",
        doc="V1: a field is one of the struct or map itself. V2: dots lead into nested ones, and backticks around a step "
        "let it hold dots.",
    )


def steps_of(path: str, version: str) -> tuple[str, ...]:
    """The names along a path. Raises ValueError for an unclosed backtick."""
    if version.upper() == "V1":
        return (path,)
    steps: list[str] = []
    at = 0
    while at < len(path):
        if path[at] == "`":
            step, at = _quoted(path, at)
        else:
            dot = path.find(".", at)
            step, at = (path[at:], len(path)) if dot < 0 else (path[at:dot], dot + 1)
        steps.append(step)
    if path.endswith("."):
        steps.append("")
    return tuple(steps)


def _quoted(path: str, opened: int) -> tuple[str, int]:
    """The step between backticks and the start of the next.

    Only a backtick before a dot or the end closes; after a backslash it is literal there.
    """
    made, start = "", opened + 1
    at = start
    while True:
        at = path.find("`", at)
        escaped = at > 0 and path[at - 1] == "\\"
        last = at >= len(path) - 1
        if at < 0 or (last and escaped):
            raise ValueError(
                f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick at position "
                f"{opened} to escape it"
            )
        if last:
            return made + path[start:at], len(path)
        if path[at + 1] != ".":
            at += 1
        elif escaped:
            made += path[start : at - 1] + "`"
            at += 1
            start = at
        else:
            return made + path[start:at], at + 2


class FieldPath:
    """A path that is looked up in schemas, columns and JSON objects."""

    def __init__(self, path: str, version: str) -> None:
        self.text = path
        self._steps = steps_of(path, version)

    def field(self, schema: Schema) -> Field | None:
        """The field at the end of the path; None if it does not exist.

        Raises DataError if the path leads through a non-struct.
        """
        for step in self._steps[:-1]:
            member = _member(schema, step)
            if member is None:
                return None
            schema = member.schema
        return _member(schema, self._steps[-1])

    def column(self, schema: Schema, column: pa.Array, *, defaults: bool) -> pa.Array:
        """The column at the end of an existing path.

        A missing struct on the path gets its default; with ``defaults`` so does a missing value at the end, if its
        struct is present.
        """
        import pyarrow.compute as pc

        for step in self._steps[:-1]:
            column = pc.struct_field(column, [schema.field_names.index(step)])
            schema = schema.field(step).schema
            column = with_default(schema, column)
        last = schema.field(self._steps[-1]).schema
        parent = pc.struct_field(column, [schema.field_names.index(self._steps[-1])])
        if not defaults or last.default is None:
            return parent
        filled = with_default(last, parent)
        return pc.if_else(column.is_null(), None, filled) if column.null_count else filled

    def value(self, value: Mapping[str, Any]) -> Any:
        """The value of a JSON object at the end of the path; None if the path ends early."""
        for step in self._steps[:-1]:
            inner = value.get(step)
            if inner is None:
                return None
            if not isinstance(inner, Mapping):
                raise DataError(
                    f"Only Map objects supported in absence of schema for [{_PURPOSE}], found: {java_name(inner)}"
                )
            value = inner
        return value.get(self._steps[-1])


def _member(schema: Schema, name: str) -> Field | None:
    if schema.type is not SchemaType.STRUCT:
        raise DataError("Cannot look up fields on non-struct type")
    return next((member for member in schema.fields if member.name == name), None)
