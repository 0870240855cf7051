"""The HTTP server, over a real socket."""

import asyncio
import contextlib
import socket
import ssl

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.routing import Route

from tests.support.transports import MemoryTransport
from tidegate.kit.certificates import CA_FILE, certificates
from tidegate.kit.errors import UsageError
from tidegate.kit.http import HttpServer, connection_lost, face, json_body, json_response, listen
from tidegate.kit.http_transport import JoiningTransport
from tidegate.kit.metrics import Metrics


async def echo(request):
    return json_response(await json_body(request))


async def fail(request):
    raise RuntimeError("secret detail")


def render(request, error):
    status = error.status_code if isinstance(error, HTTPException) else error.http_status
    return json_response(
        {"error_code": status, "message": error.detail if isinstance(error, HTTPException) else error.message}, status
    )


def ask(*requests, **options):
    async def run():
        routes = [Route("/echo", echo, methods=["POST"]), Route("/fail", fail)]
        app = face(routes, name="toy", metrics=Metrics(), render_error=render, **options)
        server = HttpServer(app, "127.0.0.1", 0)
        await server.start()
        try:
            async with httpx.AsyncClient(base_url=server.url) as client:
                return [await client.request(method, path, **more) for method, path, more in requests]
        finally:
            await server.stop()

    return asyncio.run(run())


def test_a_body_that_is_not_json_is_told_where_it_stops_being_json():
    (answer,) = ask(("POST", "/echo", {"content": b'{"a": }'}))
    assert answer.status_code == 400
    assert answer.json() == {
        "error_code": 400,
        "message": "The request body is not valid JSON: Expecting value: line 1 column 7 (char 6)",
    }


@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b"[" * 100_000])
def test_hostile_bodies_are_refused_without_harm(body):
    refused, fine = ask(("POST", "/echo", {"content": body}), ("POST", "/echo", {"json": [1]}))
    assert refused.status_code == 400 and "not valid JSON" in refused.json()["message"]
    assert fine.json() == [1]


def test_a_body_over_the_limit_is_refused():
    (answer,) = ask(("POST", "/echo", {"content": b"1" * 2000}), max_body_bytes=1000)
    assert answer.status_code == 413 and "larger than 1000 bytes" in answer.json()["message"]


def test_an_unforeseen_error_shows_no_detail():
    (answer,) = ask(("GET", "/fail", {}))
    assert answer.status_code == 500
    assert "RuntimeError" in answer.json()["message"] and "secret" not in answer.text


def test_unknown_paths_and_methods_answer_in_the_faces_own_words_and_requests_are_counted():
    lost, wrong, metrics = ask(("GET", "/nowhere", {}), ("GET", "/echo", {}), ("GET", "/metrics", {}))
    assert (lost.json()["error_code"], wrong.json()["error_code"]) == (404, 405)
    assert 'toy_http_requests_total{method="GET",status="404"} 1.0' in metrics.text


def test_an_address_in_use_is_named():
    async def run():
        first = HttpServer(face([], name="a", metrics=Metrics(), render_error=render), "127.0.0.1", 0)
        await first.start()
        try:
            second = HttpServer(face([], name="b", metrics=Metrics(), render_error=render), "127.0.0.1", first.port)
            with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{first.port}: Address already in use"):
                await second.start()
        finally:
            await first.stop()

    asyncio.run(run())


def test_answers_do_not_wait_for_nagle():
    """asyncio sets TCP_NODELAY only on sockets that name their protocol; without it a kept connection answers 40 ms late."""
    with listen("127.0.0.1", 0) as sock:
        assert sock.proto == socket.IPPROTO_TCP


def test_a_number_without_end_is_refused():
    (answer,) = ask(("POST", "/echo", {"content": b"1" * 5000}))
    assert answer.status_code == 400
    assert "thousands of digits" in answer.json()["message"]


def test_half_a_surrogate_pair_comes_back_as_it_went():
    (answer,) = ask(("POST", "/echo", {"content": b'"a\\ud800"'}))
    assert answer.json() == "a\ud800"


def test_the_parts_of_an_answer_are_sent_in_one_write():
    async def run():
        beneath = MemoryTransport()
        joining = JoiningTransport(beneath)
        joining.write(b"head")
        joining.write(b"body")
        assert beneath.written == []
        await asyncio.sleep(0)
        assert beneath.written == [b"headbody"]
        joining.write(b"x" * 100_000)
        assert len(beneath.written) == 2, "much does not wait: its back-pressure is to be felt"
        joining.write(b"last")
        joining.close()
        await asyncio.sleep(0)
        assert beneath.written[2:] == [b"last"] and beneath.closed

    asyncio.run(run())


async def served(tls=None):
    routes = [Route("/echo", echo, methods=["POST"])]
    server = HttpServer(face(routes, name="toy", metrics=Metrics(), render_error=render), "127.0.0.1", 0, tls=tls)
    await server.start()
    return server


def test_a_client_that_keeps_its_connection_in_a_pool_is_not_waited_for(tmp_path):
    """Over TLS an end has two sides, and nobody reads from an idle connection in a pool. It is cut off before the event loop
    ends, which would else leave a transport behind that is never closed."""

    async def run():
        server = await served(certificates(tmp_path, []))
        trusted = ssl.create_default_context(cafile=tmp_path / CA_FILE)
        with socket.create_connection(("127.0.0.1", server.port)) as plain:
            client = await asyncio.to_thread(trusted.wrap_socket, plain, server_hostname="localhost")
            ask = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n1"
            await asyncio.to_thread(client.sendall, ask)
            answer = await asyncio.to_thread(client.recv, 1000)
            assert answer.startswith(b"HTTP/1.1 200")
            connections = server._server.server_state.connections
            (connection,) = connections
            await server.stop()
            assert not connections and connection.transport.is_closing()
            client.close()

    asyncio.run(run())


def test_a_request_that_outlives_the_grace_is_cut_off():
    async def run():
        server = await served()
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n1")
            connections = server._server.server_state.connections
            while not (connections and next(iter(connections)).cycle):
                await asyncio.sleep(0.001)
            server._server.config.timeout_graceful_shutdown = 0
            await server.stop()
            assert not connections

    asyncio.run(run())


def test_a_head_without_end_is_refused():
    def send(port):
        with socket.create_connection(("127.0.0.1", port)) as client, contextlib.suppress(ConnectionError):
            client.sendall(b"GET /echo HTTP/1.1\r\n")
            for _ in range(2000):
                client.sendall(b"a: " + b"x" * 60_000 + b"\r\n")
            return "all of it was taken"
        return "refused"

    async def run():
        server = await served()
        try:
            assert await asyncio.to_thread(send, server.port) == "refused"
            async with httpx.AsyncClient(base_url=server.url) as client:
                large = await client.post("/echo", json=["x" * 3_000_000], headers={"a": "x" * 60_000})
                assert len(large.json()[0]) == 3_000_000
        finally:
            await server.stop()

    asyncio.run(run())


def test_an_endpoint_hears_that_its_client_has_gone():
    async def run():
        heard = asyncio.Event()

        async def wait(request):
            connection_lost(request).add_done_callback(lambda _: heard.set())
            await heard.wait()
            return json_response(None)

        app = face([Route("/wait", wait)], name="toy", metrics=Metrics(), render_error=render)
        server = HttpServer(app, "127.0.0.1", 0)
        await server.start()
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"GET /wait HTTP/1.1\r\nhost: here\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0.05)
            assert not heard.is_set()
            writer.close()
            await asyncio.wait_for(heard.wait(), 10)
        finally:
            await server.stop()

    asyncio.run(run())
