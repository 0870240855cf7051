"""The queries that monitoring tools send."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.fronts.rest.soql import MalformedSelect, parse_select
from tests.proofs import effort

ROWS: list[dict[str, Any]] = [
    {"Name": "restock", "Status": "Running", "Retries": 0, "LastError": None, "IsPartitioned": False},
    {"Name": "bill", "Status": "Error", "Retries": 9, "LastError": "it's gone", "IsPartitioned": True},
    {"Name": "mail", "Status": "Running", "Retries": 2, "LastError": None, "IsPartitioned": False},
]


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("", ["restock", "bill", "mail"]),
        ("WHERE Status = 'ERROR'", ["bill"]),
        ("where status != 'error' and retries > 0", ["mail"]),
        ("WHERE Name IN ('mail', 'bill') ORDER BY Name", ["bill", "mail"]),
        ("WHERE Name NOT IN ('mail')", ["restock", "bill"]),
        ("WHERE LastError = NULL ORDER BY Retries DESC", ["mail", "restock"]),
        ("WHERE LastError = 'it\\'s gone'", ["bill"]),
        ("WHERE IsPartitioned = true", ["bill"]),
        ("WHERE Retries >= 0.5 LIMIT 1", ["bill"]),
        ("ORDER BY LastError ASC, Name DESC", ["restock", "mail", "bill"]),
        ("WHERE Retries > 'a'", []),
    ],
)
def test_rows_are_chosen_as_in_salesforce(where: str, names: list[str]) -> None:
    assert [row["Name"] for row in parse_select(f"SELECT Name FROM EventBusSubscriber {where}").of(ROWS)] == names


def test_fields_come_as_the_rows_name_them() -> None:
    assert parse_select("select name, STATUS from x limit 1").of(ROWS) == [{"Name": "restock", "Status": "Running"}]
    assert len(parse_select("SELECT COUNT() FROM x").of(ROWS)) == 3
    with pytest.raises(MalformedSelect, match="No such column 'Colour' on entity 'x'"):
        parse_select("SELECT Colour FROM x").of(ROWS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT",
        "SELECT FROM x",
        "SELECT a FROM x WHERE",
        "SELECT a FROM x LIMIT -1",
        "SELECT a FROM x LIMIT 1.5",
        "SELECT a FROM x LIMIT " + "1" * 5000,
        "SELECT a FROM x WHERE a = " + "1" * 5000,
        "SELECT a FROM x WHERE b LIKE 'c'",
    ],
)
def test_unsupported_queries_are_refused(text: str) -> None:
    with pytest.raises(MalformedSelect, match="unexpected token"):
        parse_select(text)


WORDS = [
    "SELECT",
    "a",
    "FROM",
    "x",
    "WHERE",
    "=",
    "'t'",
    "1",
    "2.5",
    "AND",
    "IN",
    "(",
    ")",
    ",",
    "LIMIT",
    "ORDER",
    "BY",
    "NOT",
    "'",
    "\\",
    "²",
]


@pytest.mark.parametrize(("text", "done"), [("WHERE Metadata < 1", "filtered"), ("ORDER BY Metadata", "sorted")])
def test_a_field_with_parts_is_only_shown(text: str, done: str) -> None:
    rows: list[dict[str, Any]] = [{"Id": "1", "Metadata": {"label": "a"}}, {"Id": "2", "Metadata": {"label": "b"}}]
    with pytest.raises(MalformedSelect, match=f"field 'Metadata' can not be {done} in a query call"):
        parse_select(f"SELECT Id FROM x {text}").of(rows)


@settings(max_examples=effort(150, 4500), deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=40))
def test_any_text_is_a_query_or_refused(text: str) -> None:
    try:
        parse_select(text).of([{"a": 1, "x": "t"}])
    except MalformedSelect:
        pass
