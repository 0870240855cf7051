"""The suites that connectors inherit, run on the toy connectors."""

from pathlib import Path

import pytest

from connect.testing import SinkSuite, SourceSuite
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
