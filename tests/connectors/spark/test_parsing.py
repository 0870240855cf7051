"""Queries that are parsed before a job runs, by Spark's own parser."""

from __future__ import annotations

import pytest

from connectors.spark import parsing
from connectors.spark.config import SparkSinkConfig
from connectors.spark.parsing import Unchecked, problem_of
from connectors.spark.sink import SparkSinkConnector
from tidegate.kit.config import parse

pytestmark = pytest.mark.proof


def problems(sql):
    return list(SparkSinkConnector.check(parse(SparkSinkConfig, {"spark.output.path": "/out", "spark.sql": sql})))


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Java may start slowly on a machine that is busy with tests."""
    monkeypatch.setattr(parsing, "_PATIENCE_S", 120.0)
    problem_of.cache_clear()


def test_a_query_that_does_not_parse_is_refused_in_the_words_of_spark_with_its_line():
    (problem,) = problems("SELECT id\nFROM flights WHERE month = 1 AND")
    assert problem.key == "spark.sql"
    assert "PARSE_SYNTAX_ERROR" in problem.message and "line 2" in problem.message


def test_a_query_that_parses_is_taken_and_a_command_is_not():
    assert problems("SELECT a.id, count(*) FROM a JOIN b USING (id) GROUP BY ALL") == []
    (problem,) = problems("DROP TABLE flights")
    assert "'DROP'" in problem.message


def test_without_a_java_or_time_for_it_a_query_is_not_checked(monkeypatch):
    monkeypatch.setattr(parsing, "_PATIENCE_S", 0.001)
    with pytest.raises(Unchecked, match=r"longer than 0\.001 s"):
        problem_of("SELEC 1")
    assert problems("SELEC 1") == []


def test_a_query_that_spark_completes_is_not_checked():
    with pytest.raises(Unchecked, match="which Spark replaces"):
        problem_of("SELEC ${spark.of.mine}")


def test_queries_are_parsed_in_turn_and_none_waits_for_long(monkeypatch):
    monkeypatch.setattr(parsing, "_PATIENCE_S", 0.01)
    with parsing._ONE_AT_A_TIME, pytest.raises(Unchecked, match=r"other queries were being parsed for 0\.01 s"):
        problem_of("SELECT 1")


def test_where_no_program_may_be_started_a_query_is_not_checked(monkeypatch):
    def refuse(*_, **__):
        raise PermissionError("alice may not start programs")

    monkeypatch.setattr(parsing.subprocess, "Popen", refuse)
    with pytest.raises(Unchecked, match="alice may not start programs"):
        problem_of("SELECT 2")
    assert problems("SELECT 2") == []
