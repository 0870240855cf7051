"""The HDFS sink passes the suite that kills, stops and cuts connections."""

from __future__ import annotations

import pytest

from connect.testing import SinkFaultSuite
from tests.connectors.faults.parts import OnBothBrokers, ThroughForwarder
from tests.connectors.suite_targets import HdfsTarget
from tests.servers.hdfs import HdfsServer

pytestmark = [pytest.mark.proof, pytest.mark.servers]


@pytest.mark.long
class TestHdfsSink(ThroughForwarder, HdfsTarget, OnBothBrokers, SinkFaultSuite):
    """The connections to the name node are cut. Those to the data node are not: the name node tells the client its address."""

    @pytest.fixture
    def server_port(self, hdfs_server: HdfsServer) -> int:
        return hdfs_server.rpc_port

    @pytest.fixture
    def hdfs_url(self, port: int) -> str:
        return f"hdfs://127.0.0.1:{port}"
