"""A sink with an error, and the suite that must find it; test_fault_suites.py runs it in a separate pytest."""

import json
import os
from pathlib import Path

import pytest

from connect.api import SinkConnector, SinkTask
from connect.testing import SinkFaultSuite
from tests.support.toys import RowsConfig


class LateTask(SinkTask[RowsConfig]):
    """Writes what it is given one call later, and says before that it is safe."""

    def start(self):
        self.rows = []

    def put(self, batches):
        with Path(self.config.file).open("a") as output:
            output.writelines(self.rows)
        self.rows = [json.dumps(record.value["id"]) + "\n" for batch in batches for record in batch.records()]


class LateSink(SinkConnector[RowsConfig]):
    config_class, task_class = RowsConfig, LateTask


class TestLateSink(SinkFaultSuite):
    connector_class = LateSink

    @pytest.fixture(scope="class")
    @classmethod
    def bootstrap_servers(cls):
        return os.environ["BOOTSTRAP_SERVERS"]

    @pytest.fixture
    def properties(self, tmp_path):
        return {"file": str(tmp_path / "rows")}

    def read_back(self, properties):
        path = Path(properties["file"])
        return [int(line) for line in path.read_text().split()] if path.exists() else []
