"""An org of recorded responses at a local address, for connectors that run in another process."""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests
import responses

from tests.support.bulk_org import ORG
from tests.support.certificates import write_certificate

__all__ = ["org_server"]

_LOGIN = "https://login.salesforce.com"


@contextmanager
def org_server(folder: Path) -> Iterator[tuple[responses.RequestsMock, int, Path]]:
    """The recorder that an org is installed on, the port at which it responds over TLS, and the certificate authority
    to trust.

    Where the org gives its own address, it is replaced by the address that the client used. Requests from this process
    to this machine are not recorded.
    """
    certificate = write_certificate(folder / "org.pem")
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        for scheme in ("http", "https"):
            mock.add_passthru(f"{scheme}://127.0.0.1")

        class Front(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                to = _LOGIN if self.path.startswith("/services/oauth2/") else ORG
                said = requests.request(self.command, to + self.path, data=body or None, timeout=60)
                content = said.content.replace(ORG.encode(), f"https://{self.headers['Host']}".encode())
                self.send_response(said.status_code)
                for name, value in {**said.headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer

            def log_message(self, *arguments: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        # The handshake belongs to the thread of the connection: one that is cut would hold up all others.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda request, client: None  # type: ignore[method-assign]  # connections are cut on purpose
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield mock, server.server_address[1], certificate
        finally:
            server.shutdown()
            server.server_close()
