import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema.exceptions import ValidationError

from registry.errors import InvalidSchema
from registry.formats import parse
from registry.formats.json_schema.schema import JsonSchema


def kinds(old: Any, new: Any) -> list[str]:
    """The differences, under Confluent's names."""
    original, update = (JsonSchema.parse(json.dumps(schema)) for schema in (old, new))
    return [f"{change.kind} {change.path}" for change in update.changes_from(original)]


def problems(old: Any, new: Any, **policy: bool) -> list[str]:
    original, update = (JsonSchema.parse(json.dumps(schema)) for schema in (old, new))
    return update.reading_problems(original, **policy)


def objects(additional: bool | dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return made if additional is None else {**made, "additionalProperties": additional}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("old", "new", "compatible", "change"),
    [
        (objects(), objects(a=TEXT), False, "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"),
        (
            objects(False),
            objects(False, a=TEXT),
            True,
            "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a",
        ),
        (objects(a=TEXT), objects(), True, "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL #/properties/a"),
        (objects(False, a=TEXT), objects(False), False, "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"),
        (
            objects(TEXT),
            objects(TEXT, a=TEXT),
            True,
            "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
        ),
        (
            {"patternProperties": {"^a": {"type": "integer"}}},
            {"patternProperties": {"^a": {"type": "integer"}}, "properties": {"ab": TEXT}},
            False,
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/ab",
        ),
        ({"type": "integer"}, {"type": "number"}, True, "TYPE_EXTENDED #/"),
        ({"type": "number"}, {"type": "integer"}, False, "TYPE_NARROWED #/"),
        (TEXT, {"type": ["string", "null"]}, True, "SUM_TYPE_EXTENDED #/"),
        ({"type": ["string", "null"]}, TEXT, False, "TYPE_CHANGED #/"),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, True, "ENUM_ARRAY_EXTENDED #/enum"),
        ({"enum": [1]}, {"enum": [True]}, False, "ENUM_ARRAY_CHANGED #/enum"),
        (
            {"type": "number", "multipleOf": 4},
            {"type": "number", "multipleOf": 2},
            True,
            "MULTIPLE_OF_REDUCED #/multipleOf",
        ),
        # Confluent reads another keyword here and fails where that is missing.
        (
            {"type": "number", "exclusiveMaximum": 9},
            {"type": "number", "exclusiveMaximum": 8},
            False,
            "EXCLUSIVE_MAXIMUM_DECREASED #/exclusiveMaximum",
        ),
        ({"const": None}, {"const": None}, True, ""),
    ],
)
def test_each_change_is_classified(old: Any, new: Any, compatible: bool, change: str) -> None:
    assert [kind for kind in kinds(old, new) if kind.startswith(change)] or not change
    assert (problems(old, new) == []) is compatible


def test_the_lenient_policy_lets_properties_come() -> None:
    assert problems(objects(), objects(a=TEXT))
    assert problems(objects(), objects(a=TEXT), lenient=True) == []


def test_messages_are_confluents() -> None:
    assert problems(TEXT, {"type": "string", "maxLength": 3}) == [
        '{errorType:"MAX_LENGTH_ADDED", description:"The keyword at path \'#/maxLength\' in the %s schema is not present '
        "in the %s schema'}"
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("3", "expected an object or boolean at the root"),
        ('{"type":"strin"}', "#/type: expected one of array, boolean"),
        ('{"properties":{"a":{"minLength":"x"}}}', '#/properties/a/minLength: expected an integer, found "x"'),
        ('{"properties":[]}', "#/properties: expected an object"),
        ('{"anyOf":{}}', "#/anyOf: expected an array"),
        ('{"items":3}', "#/items: expected a schema"),
        ('{"required":"a"}', "#/required: expected an array"),
        ('{"$ref":"#/definitions/a"}', "nothing is found at '#/definitions/a'"),
        ('{"$ref":"http://example.com/other.json"}', "must be among the references"),
        ('{"$ref":3}', "#/$ref: expected a string"),
        (
            '{"$schema":"https://json-schema.org/draft/2020-12/schema","prefixItems":{}}',
            "#/prefixItems: expected an array",
        ),
        ('{"not":' * 200 + "{}" + "}" * 200, "nested too deep"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_an_invalid_schema_says_where_and_why(text: str, words: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        JsonSchema.parse(text)
    assert words in str(caught.value)


def test_a_stored_schema_is_only_parsed_when_it_is_compared() -> None:
    stored = JsonSchema.parse('{"type":"strin"}', strict=False)
    assert stored.canonical == '{"type":"strin"}'
    with pytest.raises(InvalidSchema):
        stored.reading_problems(stored)


def test_numbers_far_apart_are_compared() -> None:
    wide, narrow = (JsonSchema.parse(f'{{"type":"number","multipleOf":{step}}}') for step in ("1e400", "1e-400"))
    assert [change.kind for change in narrow.changes_from(wide)] == ["MULTIPLE_OF_CHANGED"]


def test_numbers_and_members_keep_their_form_and_order() -> None:
    text = '{"z": 1.50, "a":\t[1E+3, -0.0, -0, 12345678901234567890123, 1e-9], "é": "\\u00e9\\u0001" }'
    schema = JsonSchema.parse(text)
    assert schema.canonical == '{"z":1.50,"a":[1E+3,0.0,0,12345678901234567890123,1E-9],"é":"é\\u0001"}'
    assert schema.normalized().canonical == '{"a":[1E+3,0.0,0,12345678901234567890123,1E-9],"z":1.50,"é":"é\\u0001"}'


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
@pytest.mark.parametrize("id_", [None, "http://example.com/base/root.json"])
def test_references_are_found_by_the_name_they_are_called(draft: str, id_: str | None) -> None:
    address = '{"definitions":{"zip":{"type":"string","maxLength":5}},"type":"object"}'
    root: dict[str, Any] = {"$schema": draft, "properties": {"a": {"$ref": "address.json#/$defs/zip"}}}
    if id_:
        root["$id"] = id_
    old = JsonSchema.parse(json.dumps(root), {"address.json": address})
    new = JsonSchema.parse(json.dumps(root), {"address.json": address.replace("5", "4")})
    assert [f"{change.kind} {change.path}" for change in new.changes_from(old)] == [
        "MAX_LENGTH_DECREASED #/properties/a/maxLength"
    ]
    assert old != new
    assert old.normalized().references == {"address.json": address}


def test_a_schema_may_refer_to_itself() -> None:
    tree = {"properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "label": TEXT}}
    assert kinds(tree, tree) == []
    changed = {"properties": {**tree["properties"], "label": {"type": "integer"}}}
    assert "TYPE_CHANGED #/properties/label" in kinds(tree, changed)


def test_parts_used_twice_at_every_level_cost_no_more_than_their_text() -> None:
    def doubling(last: str) -> dict[str, Any]:
        definitions: dict[str, Any] = {"d0": {"type": last}}
        for level in range(1, 40):
            inner = {"$ref": f"#/definitions/d{level - 1}"}
            definitions[f"d{level}"] = {"properties": {"a": inner, "b": inner}, "anyOf": [inner, inner]}
        return {"definitions": definitions, "$ref": "#/definitions/d39"}

    assert 0 < len(problems(doubling("string"), doubling("integer"))) <= 1001


def test_top_level_fields_and_names_kept_for_the_registry() -> None:
    schema = JsonSchema.parse(json.dumps({"title": "T", **objects(a=TEXT, **{"$$b": TEXT})}))
    assert schema.name == "T" and schema.top_level_fields == {"a", "$$b"}
    with pytest.raises(InvalidSchema, match=r"cannot start with \$\$ prefix"):
        schema.check_fields()


def test_values_are_checked_by_the_schemas_draft_and_references() -> None:
    schema = parse("JSON", '{"properties":{"n":{"$ref":"n.json"}}}', {"n.json": '{"type":"integer","minimum":3}'})
    assert isinstance(schema, JsonSchema)
    schema.validator().validate({"n": 3})
    with pytest.raises(ValidationError, match="less than the minimum"):
        schema.validator().validate({"n": 2})


KEYWORDS = ["type", "properties", "items", "anyOf", "not", "$ref", "enum", "$id", "required", "minimum", "$schema", "if",
            "patternProperties", "additionalProperties", "dependencies", "prefixItems", "$defs", "definitions"]  # fmt: skip
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["string", "#", "object"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=2), inner),
)


@settings(max_examples=80, deadline=None)
@given(anything, anything, st.sampled_from([None, "https://json-schema.org/draft/2020-12/schema"]))
def test_any_json_is_a_schema_or_a_clear_error(first: Any, other: Any, draft: str | None) -> None:
    schemas = []
    for value in (first, other):
        if draft and isinstance(value, dict):
            value = {**value, "$schema": draft}
        try:
            schema = JsonSchema.parse(json.dumps(value))
        except InvalidSchema:
            continue
        assert JsonSchema.parse(schema.canonical) == schema
        assert schema.normalized().normalized().canonical == schema.normalized().canonical
        assert schema.reading_problems(schema) == []
        schemas.append(schema)
    if len(schemas) == 2:
        schemas[0].reading_problems(schemas[1])


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_any_text_is_a_schema_or_a_clear_error(text: str) -> None:
    try:
        JsonSchema.parse(text)
    except InvalidSchema:
        pass


@pytest.mark.parametrize("depth", range(50, 500, 25))
def test_a_schema_of_any_depth_is_written_or_refused(depth: int) -> None:
    """A schema that can be read may be too deep to be written: reading uses less of the stack."""
    text = '{"allOf":[' * depth + "{}" + "]}" * depth
    for use in (lambda schema: schema.canonical, lambda schema: schema.normalized().canonical):
        try:
            assert use(JsonSchema.parse(text, strict=False)) == text
        except InvalidSchema as error:
            assert "nested too deep" in str(error)
            assert depth > 100
