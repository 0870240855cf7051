"""A misspelt topic is told before Spark starts; no query that Spark would run is refused."""

from __future__ import annotations

import pytest

from connectors.spark.query_names import topics_named
from tests.pyspark_tidegate.test_query_guard import QUERIES


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
