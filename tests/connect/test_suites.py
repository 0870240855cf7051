"""The suites that connectors inherit, run on the toy connectors."""

import ast
from pathlib import Path

import pytest

from connect.testing import Bench, SinkSuite, SourceSuite
from tests.support.pages import ROOT
from tests.support.toys import NumbersConnector, RowsConnector, rows_of


class TestNumbers(SourceSuite):
    connector_class = NumbersConnector

    @pytest.fixture
    def properties(self):
        return {"topic": "numbers", "total": "95", "batch": "10"}

    @pytest.fixture
    def expected_rows(self):
        return 95


class TestRows(SinkSuite):
    connector_class = RowsConnector

    @pytest.fixture
    def properties(self, tmp_path):
        return {"file": str(tmp_path / "rows")}

    def read_back(self, properties):
        return [row["value"]["id"] for row in rows_of(Path(properties["file"]))]


def test_a_suite_says_what_went_wrong(tmp_path):
    """Bare assertions of an installed package are not rewritten by pytest: they would say nothing."""

    class Suite(SinkSuite):
        connector_class = RowsConnector

        def read_back(self, properties):
            return [7]

    suite, properties = Suite(), {"file": str(tmp_path / "rows")}
    bench = Bench(RowsConnector, {"topics": Suite.topic, **properties})
    for check in (suite.test_what_is_committed_has_arrived, suite.test_partitions_can_be_handed_over):
        with pytest.raises(AssertionError) as raised:
            check(bench, properties)
        assert "is committed, and 19 rows below it have not arrived: 0, 1, 2, 3, 4, 5, 6, 8, 9, 10, ..." in str(
            raised.value
        )
        assert "read_back returned 7. flush (or pre_commit) may return only when its rows are durable" in str(
            raised.value
        )


@pytest.mark.parametrize("module", ["sources", "sinks"])
def test_each_assertion_of_a_suite_has_a_message(module):
    tree = ast.parse((ROOT / f"connect/testing/{module}.py").read_text())
    bare = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert) and node.msg is None]
    assert bare == []
