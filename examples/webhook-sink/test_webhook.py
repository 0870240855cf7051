"""The suite against a real receiver on this machine; a refused record is reported alone."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest
from webhook import WebhookSink

from connect.api import ConnectError
from connect.notebook import write
from connect.testing import SinkSuite

received = []


class Hook(BaseHTTPRequestHandler):
    """Keeps what it is sent; refuses a request with a negative id in it."""

    def do_POST(self):
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        bad = any(row["id"] < 0 for row in rows)
        if not bad:
            received.extend(rows)
        self.send_response(422 if bad else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def hook():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


class TestWebhook(SinkSuite):
    connector_class = WebhookSink

    @pytest.fixture
    def properties(self, hook):
        received.clear()
        return {"url": hook, "token": "secret"}

    def read_back(self, properties):
        return [row["id"] for row in received]


def test_a_refused_record_is_told_and_the_others_arrive(hook):
    received.clear()
    with pytest.raises(ConnectError, match=r"refused record 1: .* answered 422"):
        write(WebhookSink, {"url": hook}, pd.DataFrame({"id": [1, -2, 3]}))
    assert [row["id"] for row in received] == [1, 3]
