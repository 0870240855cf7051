from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.fronts.rest.json_offsets import offset_of


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ('{"Status":"Draft","EffectiveDate":"2020"}', (1, 35)),
        ('{"a": {"EffectiveDate": 1}, "effectivedate" :\n 2}', (2, 2)),
        ('{"EffectiveDate": 1, "EffectiveDate": 2}', (1, 39)),
        ('{"other": 1}', None),
        ("[1]", None),
        ("", None),
        ("{", None),
    ],
)
def test_a_value_is_found_where_it_begins(text: str, span: tuple[int, int] | None) -> None:
    assert offset_of(text, "EffectiveDate") == span


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 1]))
def test_every_member_is_found(value: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    last = {name.lower(): member for name, member in value.items()}
    for name, member in last.items():
        offsets = offset_of(text, name)
        assert offsets is not None
        rest = "\n".join(text.split("\n")[offsets[0] - 1 :])[offsets[1] - 1 :]
        assert json.JSONDecoder().raw_decode(rest)[0] == member


@given(st.text(alphabet='{}[]":,a \\\n1', max_size=20))
def test_any_text_has_a_place_or_none(text: str) -> None:
    offset_of(text, "a")
