from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events.model.filters import Filter, InvalidFilter
from tests.proofs import effort
from tests.support.events import ORDER_SHIPPED
from tests.support.processor_time import processor_time

DAY = 86_400_000
ROWS: list[dict[str, Any]] = [
    {"Order_Number__c": "A-1", "Amount__c": 10.0, "Express__c": True, "Shipped_At__c": DAY, "Due__c": DAY, "Note__c": "50% off\nnow"},
    {"Order_Number__c": "b-2", "Amount__c": -1.5, "Express__c": False, "Shipped_At__c": None, "Due__c": 2 * DAY, "Note__c": None},
    {"Order_Number__c": "São Paulo", "Amount__c": None, "Express__c": False, "Shipped_At__c": DAY + 1, "Due__c": None, "Note__c": ""},
]  # fmt: skip


def rows(values: list[dict[str, Any]] = ROWS) -> pa.StructArray:
    kinds = {
        "Order_Number__c": pa.string(), "Amount__c": pa.float64(), "Express__c": pa.bool_(), "Shipped_At__c": pa.int64(),
        "Due__c": pa.int64(), "Note__c": pa.string(),
    }  # fmt: skip
    return pa.array(values, pa.struct(list(kinds.items())))


@pytest.mark.parametrize(
    ("text", "passing"),
    [
        ("Order_Number__c = 'a-1'", [0]),
        ("order_number__c='A-1'", [0]),
        ("Order_Number__c != 'A-1'", [1, 2]),
        ("Order_Number__c <> 'A-1'", [1, 2]),
        ("Amount__c > 0", [0]),
        ("Amount__c<=1e1", [0, 1]),
        ("Amount__c != 10", [1, 2]),
        ("Amount__c = null", [2]),
        ("Amount__c != NULL", [0, 1]),
        ("Express__c = TRUE", [0]),
        ("Express__c != true", [1, 2]),
        ("Due__c >= 1970-01-03", [1]),
        ("Shipped_At__c = 1970-01-02T00:00:00Z", [0]),
        ("Shipped_At__c > 1970-01-02T02:00:00+02:00", [2]),
        ("Order_Number__c LIKE 'SÃO%'", [2]),
        ("Order_Number__c like '_-_'", [0, 1]),
        ("Note__c LIKE '50\\%%now'", [0]),
        ("Note__c LIKE '5\\%%'", []),
        ("Note__c = ''", [1, 2]),
        ("Order_Number__c IN ('A-1', 'B-2')", [0, 1]),
        ("Amount__c NOT IN (10, 20)", [1, 2]),
        ("Amount__c IN (null, 10)", [0, 2]),
        ("(Order_Number__c = 'A-1')OR(Amount__c = -1.5)", [0, 1]),
        ("(Amount__c > 0 AND Express__c = true) OR Order_Number__c LIKE 's%'", [0, 2]),
        ("((Express__c = false))", [1, 2]),
        ("CreatedById = null", [0, 1, 2]),
    ],
)
def test_a_filter_passes_the_matching_events(text: str, passing: list[int]) -> None:
    mask = Filter(text, ORDER_SHIPPED).mask(rows())
    assert [index for index, passes in enumerate(mask.to_pylist()) if passes] == passing
    assert mask.null_count == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the end"),
        ("Amount__c", "an operator"),
        ("Amount__c = ", "a number"),
        ("Amount__c = 'x'", "is a Number and cannot be compared with 'x'; write 12.5"),
        ("Nope__c = 1", "has no field Nope__c; it has Order_Number__c"),
        ("Express__c > true", "only = and !="),
        ("Express__c IN (true)", "only = and !="),
        ("Amount__c LIKE '1%'", "is a Number"),
        ("Amount__c > null", "only = and != compare with null"),
        ("Due__c = 2026-02-30", "no date that exists"),
        ("Amount__c = 1 AND Amount__c = 2 OR Amount__c = 3", "'OR' where"),
        ("NOT Amount__c = 1", "where IN, LIKE, NOT IN, an operator may stand"),
        ("Order_Number__c = 'open", "a text in quotes"),
        ("Amount__c = 1; DROP", "AND, OR may stand"),
        ("(" * 60 + "Amount__c = 1" + ")" * 60, "nested deeper"),
        ("x" * 200_000, "characters"),
    ],
)
def test_a_syntax_error_says_where_and_why(text: str, said: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        Filter(text, ORDER_SHIPPED)
    assert said in str(refused.value)
    assert refused.value.fields == ("filterExpression",)


def test_columns_of_plain_avro_records_are_compared_too() -> None:
    instant = datetime(1970, 1, 2, tzinfo=UTC)
    plain = pa.StructArray.from_arrays(
        [pa.array([3, 4], pa.int32()), pa.array([instant, None], pa.timestamp("us", "UTC")), pa.array([1, None], pa.date32())],
        ["Amount__c", "Shipped_At__c", "Due__c"],
    )  # fmt: skip
    assert Filter("Amount__c > 3", ORDER_SHIPPED).mask(plain).to_pylist() == [False, True]
    assert Filter("Shipped_At__c = 1970-01-02T00:00:00Z", ORDER_SHIPPED).mask(plain).to_pylist() == [True, False]
    assert Filter("Due__c = 1970-01-02", ORDER_SHIPPED).mask(plain).to_pylist() == [True, False]
    assert Filter("Note__c = null", ORDER_SHIPPED).mask(plain).to_pylist() == [True, True]


_texts = st.text("aB'%_\\-é\n", max_size=4)
_numbers = st.sampled_from([-1.5, 0.0, 2.0, 10.0])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _lower(value: str | None) -> str | None:
    return value.lower() or None if value is not None else None


_COMPARE: dict[str, Any] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a is not None and a > b,
    "<=": lambda a, b: a is not None and a <= b,
}


@st.composite
def comparisons(draw: st.DrawFn) -> tuple[str, Any]:
    """An expression, and the same as a Python function of a row."""
    if draw(st.booleans()):
        operator, number = draw(st.sampled_from(list(_COMPARE))), draw(_numbers)
        compare = _COMPARE[operator]
        return f"Amount__c {operator} {number}", lambda row: compare(row["Amount__c"], number)
    text = draw(_texts)
    kind = draw(st.sampled_from(["=", "!=", "NOT IN", "LIKE"]))
    if kind == "LIKE":
        regex = "".join({"%": ".*", "_": "."}.get(mark, re.escape(mark)) for mark in text.replace("\\", ""))
        pattern = "'" + text.replace("\\", "").replace("'", "\\'") + "'"
        if pattern == "''":
            return "Note__c = null", lambda row: _lower(row["Note__c"]) is None

        def like(row: dict[str, Any]) -> bool:
            return bool(row["Note__c"]) and re.fullmatch(regex, row["Note__c"], re.I | re.S) is not None

        return f"Note__c LIKE {pattern}", like
    lowered = _lower(text)
    if kind == "NOT IN":
        return f"Note__c NOT IN ({_quoted(text)}, 'zz')", lambda row: _lower(row["Note__c"]) not in (lowered, "zz")
    compare = _COMPARE[kind]
    return f"Note__c {kind} {_quoted(text)}", lambda row: compare(_lower(row["Note__c"]), lowered)


def _joined(pairs: list[tuple[str, Any]], word: str) -> tuple[str, Any]:
    test = all if word == "AND" else any
    return f" {word} ".join(f"({text})" for text, _ in pairs), lambda row: test(
        test_of_row(row) for _, test_of_row in pairs
    )


_expressions = st.recursive(
    comparisons(),
    lambda inner: st.builds(_joined, st.lists(inner, min_size=1, max_size=3), st.sampled_from(["AND", "OR"])),
    max_leaves=6,
)
_values = st.fixed_dictionaries({"Amount__c": st.none() | _numbers, "Note__c": st.none() | _texts})


@settings(max_examples=effort(60, 1800), deadline=None)
@given(_expressions, st.lists(_values, min_size=1, max_size=5))
def test_a_batch_passes_as_its_events_would_one_by_one(
    expression: tuple[str, Any], values: list[dict[str, Any]]
) -> None:
    text, passes = expression
    assert Filter(text, ORDER_SHIPPED).mask(rows(values)).to_pylist() == [passes(row) for row in values]


@settings(max_examples=effort(150, 4500), deadline=None)
@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(
            [
                "Amount__c",
                "Note__c",
                "=",
                "LIKE",
                "IN",
                "NOT",
                "(",
                ")",
                ",",
                "'a'",
                "'%\\",
                "1",
                "null",
                "AND",
                "OR",
                " ",
            ]
        ),
        max_size=12,
    ).map("".join)
)
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    try:
        made = Filter(text, ORDER_SHIPPED)
    except InvalidFilter:
        return
    assert len(made.mask(rows())) == len(ROWS)


def test_texts_that_are_not_closed_are_found_in_one_pass() -> None:
    with processor_time(1, "a filter of quotes"), pytest.raises(InvalidFilter):
        Filter("\\'" * 32_000, ORDER_SHIPPED)
