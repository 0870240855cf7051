"""The Azure sink passes the suite that kills, stops and cuts connections."""

from __future__ import annotations

import pytest

from connect.testing import SinkFaultSuite
from tests.connectors.faults.parts import OnBothBrokers, ThroughForwarder
from tests.connectors.suite_targets import AzureTarget
from tests.servers.azure import AzureServer

pytestmark = [pytest.mark.proof, pytest.mark.long, pytest.mark.servers]


class TestAzureSink(ThroughForwarder, AzureTarget, OnBothBrokers, SinkFaultSuite):
    @pytest.fixture
    def server_port(self, azure_server: AzureServer) -> int:
        return azure_server.port

    @pytest.fixture
    def azure_url(self, port: int, azure_server: AzureServer) -> str:
        return f"http://127.0.0.1:{port}/{azure_server.account}"
