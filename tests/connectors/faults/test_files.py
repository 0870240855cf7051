"""The connectors for files and the local disk pass the suites that kill, stop and cut connections."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from connect.testing import SinkFaultSuite, SourceFaultSuite
from connectors.files.source import FileStreamSourceConnector
from tests.connectors.faults.parts import ROWS, OnBothBrokers
from tests.connectors.suite_targets import FileTarget, LocalTarget

pytestmark = [pytest.mark.proof, pytest.mark.servers]


@pytest.mark.long
class TestFileStreamSink(FileTarget, OnBothBrokers, SinkFaultSuite):
    pass


@pytest.mark.long
class TestLocalSink(LocalTarget, OnBothBrokers, SinkFaultSuite):
    pass


@pytest.mark.long
class TestFileStreamSource(OnBothBrokers, SourceFaultSuite):
    connector_class = FileStreamSourceConnector

    @pytest.fixture
    def properties(self, tmp_path: Path) -> Mapping[str, str]:
        (tmp_path / "lines").write_text("".join(f"{n}\n" for n in range(ROWS)))
        return {"file": str(tmp_path / "lines"), "topic": "fault-lines", "batch.size": "10"}

    @pytest.fixture
    def expected(self) -> Collection[Any]:
        return range(ROWS)

    def identity(self, topic: str, key: Any, value: Any) -> Any:
        return int(value)
