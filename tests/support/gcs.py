"""A server with the part of Google Cloud Storage's XML API that is Amazon's S3 API under other names.

It signs what it is asked and asks an S3 server. No server with Google's XML API can be had in a registry of packages: those
there have the JSON API alone, which obstore does not use.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, quote, unquote, urlencode

from tests.servers.s3 import S3Server

__all__ = ["GcsServer", "gcs_server"]

_PASSED_ON = ("content-type", "range", "x-goog-copy-source", "x-goog-metadata-directive")
_ANSWERED = ("content-type", "content-length", "content-range", "etag", "last-modified")


class GcsServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, s3: S3Server) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.s3 = s3

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def credentials(self) -> str:
        """The JSON of a service account that has no key: it asks this server without a token."""
        account = {"client_email": "", "private_key": "", "private_key_id": ""}
        return json.dumps({"gcs_base_url": self.endpoint_url, "disable_oauth": True, **account})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: GcsServer

    def _pass_on(self) -> None:
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        s3 = self.server.s3
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        given = {name: value for name in _PASSED_ON if (value := self.headers.get(name)) is not None}
        headers = {name.replace("x-goog-", "x-amz-"): value for name, value in given.items()}
        path, _, query = self.path.partition("?")
        parameters = urlencode(parse_qsl(query, keep_blank_values=True), quote_via=quote)
        url = f"{s3.endpoint_url}{quote(unquote(path), safe='/-_.~')}?{parameters}"
        signed = AWSRequest(self.command, url, headers, body)
        S3SigV4Auth(Credentials(s3.access_key, s3.secret_key), "s3", s3.region).add_auth(signed)
        request = urllib.request.Request(url, body or None, dict(signed.headers), method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                self._answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            self._answer(error.code, error.headers, error.read())

    def _answer(self, status: int, headers: object, body: bytes) -> None:
        self.send_response(status)
        for name in _ANSWERED:
            value = headers.get(name)  # type: ignore[attr-defined]
            if value is not None and (name != "content-length" or self.command == "HEAD"):
                self.send_header(name, value)
        if self.command != "HEAD" and status != 204:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def gcs_server(s3: S3Server) -> Iterator[GcsServer]:
    server = GcsServer(s3)
    thread = threading.Thread(target=lambda: server.serve_forever(0.02), name="gcs")
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
