"""Tags in JSON Schemas, addressed by Confluent's paths."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.errors import InvalidSchema
from registry.formats.entities import Entity
from registry.formats.json_schema.tags import tagged, with_tags

SCHEMA: dict[str, Any] = {
    "type": "object",
    "title": "Order",
    "properties": {
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}, "n": {}}}},
        "buyer": {"allOf": [{"type": "string"}, {"type": "object", "properties": {"name": {"type": "string"}}}]},
        "never": {"not": {"type": "object", "properties": {"x": {"type": "null"}}}},
        "maybe": {"type": ["null", "object"], "properties": {"y": {"type": "integer"}}},
        "a.b": {"enum": ["red", "green"]},
        "pay": {
            "if": {"type": "object", "properties": {"card": {"const": True}}},
            "then": {"type": "object", "properties": {"number": {"type": "string"}}},
            "else": {"type": "object", "properties": {"iban": {"type": "string"}}},
        },
    },
    "definitions": {"Address": {"type": "object", "properties": {"city": {"type": "string"}}}},
    "$defs": {"Other": {"type": "object", "properties": {"z": {"type": "string"}}}},
}
FIELDS = [
    "object.lines",
    "object.lines.array.object.sku",
    # Members of allOf are counted by kind: an object comes before a string.
    "object.buyer.allof.0.object.name",
    "object.never.not.object.x",
    "object.maybe.anyof.1.object.y",
    "object.a.b",
    "object.pay.conditional.then.object.number",
    "object.definitions.Address.object.city",
    "object.$defs.Other.object.z",
]
RECORDS = [
    "object",
    "object.lines.array.object",
    "object.buyer.allof.0.object",
    "object.never.not.object",
    "object.pay.conditional.else.object",
    "object.definitions.Address.object",
]
ENTITIES = [Entity(path, "sr_field") for path in FIELDS] + [Entity(path, "sr_record") for path in RECORDS]


@pytest.mark.parametrize("entity", ENTITIES, ids=lambda entity: entity.path)
def test_tags_are_found_by_path_and_removed_again(entity: Entity) -> None:
    text = json.dumps(SCHEMA, separators=(",", ":"))
    changed = with_tags(text, {entity: ["PII", "T"]}, {entity: ["T"]})
    assert tagged(changed) == {entity: ["PII"]}
    assert json.loads(with_tags(changed, {}, {entity: ["PII"]})) == SCHEMA


@pytest.mark.parametrize(
    "entity",
    [
        Entity("object.lines.array.object.price", "sr_field"),
        Entity("object.lines.array.string", "sr_record"),
        Entity("object.buyer.allof.7.object", "sr_record"),
        Entity("lines", "sr_field"),
        Entity("", "sr_record"),
    ],
    ids=str,
)
def test_a_path_that_leads_nowhere_is_named(entity: Entity) -> None:
    with pytest.raises(InvalidSchema, match=f"No matching path '{entity.path}'"):
        with_tags(json.dumps(SCHEMA), {entity: ["T"]}, {})


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    words = st.sampled_from(
        ["type", "properties", "items", "allOf", "anyOf", "oneOf", "not", "if", "then", "definitions", "$defs", "enum",
         "const", "title", "required", "confluent:tags", "$ref"]
    )  # fmt: skip
    return st.dictionaries(words, inner, max_size=4) | st.lists(inner, max_size=3)


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.sampled_from([None, True, 1, "object", "array", "x", ["null", "object"], {}]), schemas, max_leaves=20
    )
)
def test_any_json_has_paths_that_lead_back(value: Any) -> None:
    text = json.dumps(value)
    for entity, tags in tagged(text).items():
        assert tags
        assert entity.path.split(".")[0] in ("object", "array", "not", "conditional", "allof", "anyof", "oneof")
