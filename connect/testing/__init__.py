"""The test suite for all connectors, ours and others': inherit it in a test module.

    from connect.testing import SourceSuite

    class TestMySource(SourceSuite):
        connector_class = MySource

        @pytest.fixture
        def properties(self, tmp_path): ...
        @pytest.fixture
        def expected_rows(self): ...

Needs pytest, but no runtime and no broker. ``SourceFaultSuite`` and ``SinkFaultSuite`` run the connector in a real
worker on a Kafka (``bootstrap_servers``): they kill it, stop it during its calls, cut its connections and count the
rows on both sides.
"""

from connect.bench import Bench, BenchContext, RunningTask
from connect.testing.forwarder import Forwarder
from connect.testing.sink_faults import SinkFaultSuite
from connect.testing.sinks import SinkSuite
from connect.testing.source_faults import SourceFaultSuite
from connect.testing.sources import SourceSuite

__all__ = [
    "Bench",
    "BenchContext",
    "Forwarder",
    "RunningTask",
    "SinkFaultSuite",
    "SinkSuite",
    "SourceFaultSuite",
    "SourceSuite",
]
