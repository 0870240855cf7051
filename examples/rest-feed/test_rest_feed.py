"""The suite over a real feed on this machine, and what happens when the feed is away."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from rest_feed import RestFeedSource

from connect.api import RetriableConnectError
from connect.testing import Bench, SourceSuite

ITEMS = [{"id": n, "station": "JFK" if n % 2 else "LGA", "celsius": n / 4} for n in range(1, 95)]


class Feed(BaseHTTPRequestHandler):
    """Ten items a page; the cursor is the last item's id."""

    def do_GET(self):
        after = int(parse_qs(urlsplit(self.path).query).get("after", ["0"])[0] or 0)
        page = [item for item in ITEMS if item["id"] > after][:10]
        body = json.dumps({"items": page, "next": page[-1]["id"] if page else after}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def feed():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Feed)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/readings"
    server.shutdown()
    server.server_close()


class TestRestFeed(SourceSuite):
    connector_class = RestFeedSource

    @pytest.fixture
    def properties(self, feed):
        return {"url": feed, "topic": "readings", "poll.interval.ms": "20"}

    @pytest.fixture
    def expected_rows(self):
        return len(ITEMS)


def test_a_feed_that_is_away_is_asked_again():
    away = Bench(RestFeedSource, {"url": "http://127.0.0.1:1/", "topic": "readings"})
    with away.task() as running, pytest.raises(RetriableConnectError, match="cannot be reached"):
        running.task.poll()
