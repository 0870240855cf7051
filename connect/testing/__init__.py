"""The suite that every connector passes, ours and anyone's: inherit it in a test module.

    from connect.testing import SourceSuite

    class TestMySource(SourceSuite):
        connector_class = MySource

        @pytest.fixture
        def properties(self, tmp_path): ...
        @pytest.fixture
        def expected_rows(self): ...

Needs pytest; nothing of the runtime, no broker.
"""

from connect.bench import Bench, BenchContext, RunningTask
from connect.testing.sinks import SinkSuite
from connect.testing.sources import SourceSuite

__all__ = ["Bench", "BenchContext", "RunningTask", "SinkSuite", "SourceSuite"]
