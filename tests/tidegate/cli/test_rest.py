"""The HTTP client of the command line."""

from __future__ import annotations

import socket
import threading

import pytest

from tidegate.clients.rest import Rest
from tidegate.kit.errors import TidegateError

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"


def serve(server: socket.socket, requests_by_connection: list[int], seen: list[bytes]) -> None:
    """Answer so many requests on each connection, and hang up at the next one."""
    for count in requests_by_connection:
        connection, _ = server.accept()
        with connection:
            for _ in range(count):
                seen.append(connection.recv(65536).partition(b" ")[0])
                connection.sendall(ANSWER)
            if connection.recv(65536):
                seen.append(b"hung up")


@pytest.mark.parametrize(
    ("method", "comes_through"), [("GET", True), ("PUT", True), ("POST", False), ("DELETE", False)]
)
def test_a_request_on_a_connection_that_was_just_closed_is_sent_again_if_that_does_no_harm(
    method: str, comes_through: bool
) -> None:
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server, [1, 1], seen), daemon=True)
        thread.start()
        rest = Rest(f"http://127.0.0.1:{server.getsockname()[1]}", "Connect worker")
        assert rest.call("GET", "/first") == []
        if comes_through:
            assert rest.call(method, "/second") == []
            assert seen == [b"GET", b"hung up", method.encode()]
        else:
            with pytest.raises(TidegateError, match="no Connect worker answers"):
                rest.call(method, "/second")
            assert seen == [b"GET", b"hung up"]
