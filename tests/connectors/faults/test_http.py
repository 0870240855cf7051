"""The HTTP sink passes the suite that kills, stops and cuts connections."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from connect.testing import SinkFaultSuite
from connectors.http.sink import HttpSinkConnector
from tests.connectors.faults.parts import OnBothBrokers, ThroughForwarder

pytestmark = [pytest.mark.proof, pytest.mark.servers]


@pytest.mark.long
class TestHttpSink(ThroughForwarder, OnBothBrokers, SinkFaultSuite):
    connector_class = HttpSinkConnector

    @pytest.fixture
    def server_port(self) -> Iterator[int]:
        self.taken = taken = list[Any]()

        class Taker(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                taken.extend(row["id"] for row in (rows if isinstance(rows, list) else [rows]))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()
        server.server_close()

    @pytest.fixture
    def properties(self, port: int) -> Mapping[str, str]:
        return {
            "http.api.url": f"http://127.0.0.1:{port}/rows",
            "request.body.format": "json",
            "batch.json.as.array": "true",
            "batch.max.size": "5",
            "retry.backoff.ms": "100",
            "max.retries": "50",
        }

    def read_back(self, properties: Mapping[str, str]) -> list[Any]:
        return list(self.taken)
