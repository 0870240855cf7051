"""JSON with all digits, of any depth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.records.exact_json import json_text, parsed_json
from tidegate.records.shown import condition_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.decimals(allow_nan=False, allow_infinity=False))
def test_the_text_is_that_of_json_with_the_digits_of_decimals(value: Any, number: Any) -> None:
    assert json_text(value, indent=True) == json.dumps(value, indent=2, ensure_ascii=False)
    mixed = [value, number, value]
    for indent in (False, True):
        assert parsed_json(json_text(mixed, indent=indent)) == mixed
    assert json_text(mixed) == f"[{json_text(value)}, {number}, {json_text(value)}]"


@pytest.mark.parametrize("text", ["[" * 900 + "]" * 900, '{"a": ' * 900 + "1.50" + "}" * 900])
def test_what_was_parsed_is_written_however_deep_it_is(text: str) -> None:
    assert json_text(parsed_json(text)) == text
    assert json_text(parsed_json(text), indent=True).replace("\n", "").replace("  ", "") == text
    assert not condition_of("@.value..b")({"value": parsed_json(text)})


def test_a_condition_compares_integers_of_64_bits_to_the_digit() -> None:
    holds = condition_of("@.value.id == 9007199254740993 && @.value.id > -9223372036854775808 && @.value.id < 1e19")
    assert holds({"value": {"id": 9007199254740993}}) and not holds({"value": {"id": 9007199254740992}})
