"""Regular expressions that members subscribe to: RE2's, matched as a whole."""

from __future__ import annotations

import pytest

from broker.errors import InvalidRegularExpression
from broker.groups.consumer.regex import check, resolve


def test_a_name_is_matched_as_a_whole() -> None:
    resolved = resolve(["a.*", "a", "^b$", "(?i)B"], ["a", "ab", "b", "ba"], None)
    assert resolved == {"a.*": {"a", "ab"}, "a": {"a"}, "^b$": {"b"}, "(?i)B": {"b"}}


def test_topics_that_may_not_be_seen_are_left_out() -> None:
    assert resolve([".*"], ["a", "b"], lambda name: name != "b") == {".*": {"a"}}


@pytest.mark.parametrize("expression", ["(", "a{2000}", "(?=a)", "\\1", "*"])
def test_an_invalid_regex_is_refused(expression: str) -> None:
    with pytest.raises(InvalidRegularExpression, match="is not a valid regular expression"):
        check(expression)
    assert resolve([expression], ["a"], None) == {expression: set()}


def test_an_expression_from_outside_takes_linear_time() -> None:
    assert resolve(["(a*)*b"], ["a" * 200], None) == {"(a*)*b": set()}
