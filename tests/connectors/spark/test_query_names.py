"""A misspelt topic is told before Spark starts; no query that Spark would run is refused."""

from __future__ import annotations

import pytest

from connectors.spark.query_names import topics_named, with_streams
from tests.pyspark_tidegate.test_query_guard import QUERIES
from tidegate.kit.errors import UsageError


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT * FROM flights", ["flights"]),
        ("select f.id from `my.flights` f join\n/* FROM x */ carriers -- JOIN y\n on f.carrier = 'FROM z'", ["my.flights", "carriers"]),
        ("SELECT a FROM (SELECT * FROM `back``tick` LIMIT 1)", ["back`tick"]),
        ("SELECT a IS DISTINCT FROM b FROM t", ["t"]),
        ("SELECT DISTINCT a FROM t LEFT JOIN LATERAL explode(b)", ["t"]),
        ("SELECT * FROM lake.shop.sales", []),
        ("SELECT * FROM console-query", []),
        ("SELECT * FROM range(10)", []),
        ("SELECT * FROM VALUES (1), (2)", []),
        ("SELECT extract(YEAR FROM day) FROM t", []),
        ("WITH w AS (SELECT 1) SELECT * FROM w", []),
        ("SELECT 'it''s", []),
        ("FROM", []),
    ],
)  # fmt: skip
def test_tables_are_the_names_after_from_and_join(sql: str, names: list[str]) -> None:
    assert topics_named(sql) == names


def test_of_the_queries_that_are_taken_only_topics_are_named() -> None:
    named = {name for sql in QUERIES for name in topics_named(sql)}
    assert named <= {"t", "u", "v", "b", "c", "d"}


@pytest.mark.parametrize(
    ("sql", "marked"),
    [
        ("SELECT s.id FROM sales s JOIN items i ON i.id = s.id", "SELECT s.id FROM STREAM sales s JOIN items i ON i.id = s.id"),
        ("from `sales` |> select sales.id -- FROM sales", "from STREAM `sales` |> select sales.id -- FROM sales"),
        ("WITH w AS (SELECT * FROM sales) SELECT 'sales' FROM w JOIN sales", "WITH w AS (SELECT * FROM STREAM sales) SELECT 'sales' FROM w JOIN STREAM sales"),
    ],
)  # fmt: skip
def test_streams_are_marked_where_they_are_tables(sql: str, marked: str) -> None:
    assert with_streams(sql, ["sales"]) == marked


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM items, sales", "a place that this command can't judge"),
        ("SELECT extract(DAY FROM sales) FROM sales", "a place that this command can't judge"),
        ("SELECT * FROM items", "does not read the topic sales"),
    ],
)
def test_a_stream_that_may_be_something_else_is_refused(sql: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        with_streams(sql, ["sales"])
