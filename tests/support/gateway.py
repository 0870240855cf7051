"""A gateway before an HTTP server, such as S3 or a catalog, that has trouble for a while: errors, slow answers, answers that get lost."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Gateway", "gateway"]

_TROUBLES = ("500", "503", "slow", "lost before", "lost after")
"""Answers of an error, one that takes long, a request that does not arrive, and one that is done and not answered."""


class Gateway(ThreadingHTTPServer):
    """Passes requests on as they are, so that their signatures stay right; ``had`` counts the troubles."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = port
        self.had: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._chance: random.Random | None = None
        self._share = self._longest_s = 0.0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def trouble(self, chance: random.Random) -> None:
        """Have trouble with a share of the requests for up to three seconds."""
        self._share, self._longest_s = chance.uniform(0.1, 0.9), chance.uniform(0.1, 2)
        self._chance = random.Random(chance.random())
        time.sleep(chance.uniform(0.5, 3))
        self._chance = None

    def drawn(self) -> tuple[str | None, float]:
        """The trouble of a request, if it has one, and how long a slow one takes."""
        with self._lock:
            chance = self._chance
            if chance is None or chance.random() >= self._share:
                return None, 0
            what = chance.choice(_TROUBLES)
            self.had[what] += 1
            return what, chance.uniform(0, self._longest_s)

    def handle_error(self, *_: Any) -> None:
        """A client or the server went away in the middle."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Gateway

    def _pass_on(self) -> None:
        body = self._body()
        what, pause_s = self.server.drawn()
        if what in ("500", "503"):
            self._answer(int(what), {}, b"")
            return
        if what == "slow":
            time.sleep(pause_s)
        if what == "lost before" or (answer := self._asked(body)) is None or what == "lost after":
            self.close_connection = True
            return
        self._answer(*answer)

    @property
    def _chunked(self) -> bool:
        return "chunked" in (self.headers.get("Transfer-Encoding") or "")

    def _body(self) -> bytes:
        if not self._chunked:
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers; none of these clients sends one
        return b"".join(chunks)

    def _asked(self, body: bytes) -> tuple[int, dict[str, str], bytes] | None:
        """Status, headers and body of the server's answer; None if it is away."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.behind, timeout=60)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(body, encode_chunked=self._chunked)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        lengths = {name.lower(): name for name in headers}
        for name, value in headers.items():
            if name.lower() not in ("connection", "transfer-encoding", "keep-alive"):
                self.send_header(name, value)
        if "content-length" not in lengths:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on


@contextmanager
def gateway(port: int) -> Iterator[Gateway]:
    """A gateway before the server on this port of loopback."""
    server = Gateway(port)
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
