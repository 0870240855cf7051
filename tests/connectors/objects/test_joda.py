"""Joda's patterns, according to its documentation."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.objects.joda import format_time, problem_of

AT = datetime(2024, 3, 7, 15, 4, 5, 67_000, tzinfo=ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    "pattern, shown",
    [
        ("'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "year=2024/month=03/day=07/hour=15"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2024-03-07T15:04:05.067"),
        ("YY/M/d/H/m/s", "24/3/7/15/4/5"),
        ("'it''s' EEE, dd MMM ''yy", "it's Thu, 07 Mar '24"),
        ("hh a", "03 PM"),
        ("DDD xxxx-ww-e", "067 2024-10-4"),
        ("Z", "+0100"),
        ("ZZ", "+01:00"),
        ("ZZZ", "Europe/Berlin"),
    ],
)
def test_a_pattern_shows_a_time(pattern: str, shown: str) -> None:
    assert problem_of(pattern) is None
    assert format_time(pattern, AT) == shown


@pytest.mark.parametrize(
    "pattern, problem", [("'year=YYYY", "a quote is not closed"), ("YYYY-QQ", "Illegal pattern component: QQ")]
)
def test_a_wrong_pattern_is_told(pattern: str, problem: str) -> None:
    assert problem in str(problem_of(pattern))


@given(st.text(alphabet="yMdHmsSEaqQ'/-= "))
def test_any_pattern_is_shown_or_refused(pattern: str) -> None:
    if problem_of(pattern) is None:
        format_time(pattern, AT)
