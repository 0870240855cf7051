"""The state of a search that a page sends back is checked before it is used."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.console.numbers import page_of, whole_number
from tidegate.console.searching import Criteria, Search
from tidegate.kit.errors import UsageError

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def test_a_search_goes_on_where_it_was():
    search = Search("orders", Criteria("a"), {0: 5, 3: 7}, {0: 9, 3: 7}, newest_first=True, scanned=12, total=16)
    again = Search.restored("orders", Criteria("a"), search.state)
    assert again == search and not again.is_over


@pytest.mark.parametrize(
    "state",
    [
        "",
        "[" * 100_000,
        "[[[0, -1]], [[0, 5]], 0, 0, false]",
        "[[[0, 1]], [[1, 5]], 0, 0, false]",
        "[[[0, 1]], [[0, 5]], 1e400, 0, false]",
        "[[[0, true]], [[0, 5]], 0, 0, false]",
        json.dumps([[[n, 0] for n in range(1001)], [[n, 1] for n in range(1001)], 0, 0, False]),
    ],
)
def test_a_broken_state_is_refused(state):
    with pytest.raises(UsageError, match="Begin it anew"):
        Search.restored("orders", Criteria(), state)


@given(st.one_of(st.text(), JSON_VALUES.map(json.dumps), st.lists(JSON_VALUES, min_size=5, max_size=5).map(json.dumps)))
def test_no_state_ends_in_another_error(state):
    try:
        search = Search.restored("orders", Criteria(), state)
    except UsageError:
        return
    assert all(0 <= number < 1 << 63 for number in (*search.at.values(), *search.ends.values()))


@given(st.text())
def test_text_is_a_number_or_nothing(text):
    number = whole_number(text)
    assert number is None or 0 <= number < 1 << 63
    assert page_of(range(250), text).number in (1, 2, 3)


def test_a_page_beyond_the_last_is_the_last():
    assert page_of(range(250), "7") == (range(200, 250), 3, 3) and page_of([], "9" * 5000) == ([], 1, 1)
