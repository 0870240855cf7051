"""Reader schemas for a given writer schema: fields left out, added, renamed and reordered, types widened, symbols
removed.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from registry.client import AvroSchema
from registry.errors import InvalidSchema
from tests.registry.serde.drawn import Table, tables

__all__ = ["evolutions", "evolved"]

WIDER = {
    "int": ["int", "long", "float", "double"],
    "long": ["long", "float", "double"],
    "float": ["float", "double"],
    "string": ["string", "bytes"],
    "bytes": ["bytes", "string"],
}
ADDED: list[tuple[Any, Any]] = [
    ("int", 7),
    ("double", 1),
    ("string", "x"),
    ("bytes", "\u00ff"),
    (["null", "string"], None),
    (["string", "null"], "y"),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": ["int", "string"]}, {"a": 1, "b": "c"}),
    ({"type": "long", "logicalType": "timestamp-millis"}, 1000),
    ({"type": "int", "logicalType": "date"}, 1),
    ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001\u0000"),
    ({"type": "record", "name": "Added", "fields": [{"name": "a", "type": "int", "default": 3}]}, {}),
]


@st.composite
def evolved(draw: st.DrawFn, type_: Any) -> Any:
    """A reader's schema for a writer's, both as JSON; not every one can read every value."""
    if isinstance(type_, list):
        branches = [branch if branch == "null" else draw(evolved(branch)) for branch in type_]
        branches = [branch for branch in branches if not isinstance(branch, list)]
        if draw(st.integers(0, 4)) == 0 and len(branches) > 1:
            branches.pop(draw(st.integers(0, len(branches) - 1)))
        kinds = [branch if isinstance(branch, str) else branch.get("name", branch["type"]) for branch in branches]
        branches = [branch for index, branch in enumerate(branches) if kinds[index] not in kinds[:index]]
        return draw(st.permutations(branches)) if branches else type_
    made = draw(_evolved(type_))
    return ["null", made] if made != "null" and draw(st.integers(0, 5)) == 0 else made


@st.composite
def _evolved(draw: st.DrawFn, type_: Any) -> Any:
    if isinstance(type_, str):
        return draw(st.sampled_from(WIDER.get(type_, [type_])))
    match type_["type"]:
        case "record":
            return {**type_, "fields": draw(_fields(type_["fields"]))}
        case "array":
            return {"type": "array", "items": draw(evolved(type_["items"]))}
        case "map":
            return {"type": "map", "values": draw(evolved(type_["values"]))}
        case "enum" if draw(st.booleans()):
            kept = draw(st.lists(st.sampled_from(type_["symbols"]), min_size=1, unique=True))
            return {**type_, "symbols": ["z", *kept], **({"default": "z"} if draw(st.booleans()) else {})}
        case "int" | "long" if draw(st.integers(0, 3)) == 0:
            return type_["type"]
    return type_


@st.composite
def _fields(draw: st.DrawFn, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made = []
    for field in fields:
        what = draw(st.integers(0, 5))
        if what == 0:
            continue
        read = {"name": field["name"], "type": draw(evolved(field["type"]))}
        made.append({**read, "name": f"{field['name']}x", "aliases": [field["name"]]} if what == 1 else read)
    if draw(st.booleans()):
        kind, default = draw(st.sampled_from(ADDED))
        if isinstance(kind, dict) and "name" in kind:
            kind = {**kind, "name": f"Added{draw(st.integers(0, 10**9))}"}
        made.append({"name": "added", "type": kind, "default": default})
    return draw(st.permutations(made))


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[Table, AvroSchema]:
    """A schema with rows of it, and another that reads them or not."""
    schema, rows = draw(tables())
    try:
        return (schema, rows), AvroSchema.parse(json.dumps(draw(evolved(json.loads(schema.resolved)))))
    except InvalidSchema as error:  # what was left out defined a type that is used again
        assert "Undefined name" in str(error)
        reject()
