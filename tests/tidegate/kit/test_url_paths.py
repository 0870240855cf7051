"""Values in URLs are escaped, so that they stay in their place."""

from __future__ import annotations

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st

from tidegate.kit.url_paths import LeadsElsewhere, with_values


@pytest.mark.parametrize("value", ["", ".", ".."])
@pytest.mark.parametrize("after", [[], [("/orders", False)], [("?x=1", False)], [("#top", False)]])
def test_a_segment_that_means_another_one_is_refused(value: str, after: list[tuple[str, bool]]) -> None:
    with pytest.raises(LeadsElsewhere, match="would be a segment of the path of http://h/v1/customers/"):
        with_values([("http://h/v1/customers/", False), (value, True), *after])


def test_pieces_of_one_segment_are_seen_together() -> None:
    with pytest.raises(LeadsElsewhere):
        with_values([("http://h/.", False), (".", True)])
    with pytest.raises(LeadsElsewhere):
        with_values([("http://h/", False), (".", True), (".", True)])
    with pytest.raises(LeadsElsewhere):
        with_values([("http://h/", False), ("..", True), ("/of/http://other/x", False)])
    with pytest.raises(LeadsElsewhere):
        with_values([("h/", False), ("..", True)])
    assert with_values([("http://h/item-", False), (".", True), ("?q=", False), ("", True)]) == "http://h/item-.?q="
    assert with_values([("http://h//./", False), ("a/b ?", True)]) == "http://h//./a%2Fb%20%3F"


@given(st.text())
def test_whatever_the_value_is_the_address_that_is_asked_has_it(value: str) -> None:
    try:
        made = with_values([("http://127.0.0.1/a/", False), (value, True), ("/b", False)])
    except LeadsElsewhere:
        return
    asked = requests.Request("DELETE", made).prepare()
    assert asked.path_url.count("/") == 3 and asked.path_url.startswith("/a/") and asked.path_url.endswith("/b")
