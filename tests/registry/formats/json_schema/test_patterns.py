"""Patterns in JSON Schemas are matched in limited time, and otherwise as by jsonschema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import validators

from registry.errors import InvalidSchema
from registry.formats.json_schema.patterns import bounded
from registry.formats.json_schema.schema import JsonSchema

DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]
NEWER = DRAFTS[3:]
EVIL, TEXT = "(a+)+$", "a" * 50 + "!"


def problems(draft: str, value: Any, **schema: Any) -> list[str]:
    validator = JsonSchema.parse(json.dumps({"$schema": draft, **schema})).validator()
    return sorted(error.message for error in validator.iter_errors(value))


@pytest.mark.parametrize("draft", DRAFTS)
def test_no_pattern_takes_time_that_grows_beyond_the_text(draft: str) -> None:
    """With Python's own regular expressions this takes years."""
    assert "does not match" in problems(draft, TEXT, pattern=EVIL)[0]
    patterns = {EVIL: {"type": "integer"}}
    assert "does not match" in problems(draft, {TEXT: 1}, patternProperties=patterns, additionalProperties=False)[0]
    if draft in NEWER:
        nested = {"allOf": [{"patternProperties": patterns}], "unevaluatedProperties": False}
        assert "Unevaluated properties" in problems(draft, {TEXT: 1}, **nested)[0]


@pytest.mark.parametrize("pattern", ["(?=a)b", "(a)\\1", "(?!x)", "("])
def test_a_pattern_that_cannot_be_bounded_is_told(pattern: str) -> None:
    with pytest.raises(InvalidSchema, match="cannot be matched in bounded time"):
        problems(DRAFTS[2], "ab", pattern=pattern)
    assert problems(DRAFTS[2], 5, pattern=pattern) == [], "a number is not matched"


@pytest.mark.parametrize("draft", DRAFTS)
@given(
    pattern=st.sampled_from(["^a", "b$", "[0-9]{2,3}", "a|b", "^$", "\\\\.", "ü"]),
    names=st.lists(st.text(alphabet="ab0.ü", max_size=4), max_size=4),
)
def test_values_are_judged_as_by_jsonschema(draft: str, pattern: str, names: list[str]) -> None:
    value = dict.fromkeys(names, 1) | {"b": "x"}
    schema = {
        "$schema": draft,
        "patternProperties": {pattern: {"type": "integer"}},
        "additionalProperties": {"type": "string"},
        "properties": {"a": {"enum": [2]}},
        "propertyNames": {"pattern": pattern},
    } | ({"allOf": [{"unevaluatedProperties": False}]} if draft in NEWER else {})
    kind = validators.validator_for(schema)
    messages = sorted(error.message for error in kind(schema).iter_errors(value))
    assert sorted(error.message for error in bounded(kind)(schema).iter_errors(value)) == messages


def test_jsonschema_itself_is_left_as_it_is() -> None:
    bounded(jsonschema.Draft202012Validator)
    assert not list(jsonschema.Draft202012Validator({"pattern": "(?=a)"}).iter_errors("a"))
