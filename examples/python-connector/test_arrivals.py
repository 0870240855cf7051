"""The suite that every connector should pass: plan, batches, going on from any committed position, stopping soon."""

import pytest
from arrivals import ArrivalsSource

from connect.testing import SourceSuite


class TestArrivals(SourceSuite):
    connector_class = ArrivalsSource

    @pytest.fixture
    def properties(self, tmp_path):
        for n in range(250):
            (tmp_path / f"{n:03}.csv").write_text("x" * n)
        return {"folder": str(tmp_path), "topic": "arrivals"}

    @pytest.fixture
    def expected_rows(self):
        return 250
