"""Requests that are answered without the application, over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.support.transports import MemoryTransport
from tidegate.kit.http import HttpServer, face, json_response
from tidegate.kit.http_direct import MOST_BODY, DirectRequest
from tidegate.kit.http_transport import HttpConfig, JoiningHttpProtocol
from tidegate.kit.metrics import Metrics
from tidegate.kit.service import fast_event_loop


class Taker:
    """Answers requests that begin with ``d`` with their length, immediately or when told to; passes the rest on."""

    def __init__(self) -> None:
        self.waiting: list[DirectRequest] = []

    def takes(self, scope: Any) -> bool:
        return str(scope["path"]).startswith("/direct")

    def take(self, request: DirectRequest) -> None:
        body = request.body
        if body.startswith(b"later"):
            self.waiting.append(request)
        elif body.startswith(b"fail"):
            raise RuntimeError("no")
        elif body.startswith(b"d"):
            request.answer(b'"direct %d"' % len(body))
        else:
            request.pass_on()


async def application(request: Request) -> Response:
    return json_response(f"application {len(await request.body())}")


async def early(_: Request) -> Response:
    return json_response("before the body is here")


def render(request: Request, error: Any) -> Response:
    return json_response(str(error), 400)


@contextlib.asynccontextmanager
async def served(taker: Taker) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    routes = [Route("/{path:path}", application, methods=["POST"])]
    app = face(routes, name="toy", metrics=Metrics(), render_error=render, direct=taker)
    server = HttpServer(app, "127.0.0.1", 0, grace_s=1)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        async with asyncio.timeout(30):
            yield reader, writer
    finally:
        writer.close()
        await server.stop()


def request(body: bytes, *headers: str, version: str = "1.1") -> bytes:
    more = "".join(f"{header}\r\n" for header in headers)
    return f"POST /direct HTTP/{version}\r\nHost: here\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """The body of the next answer, and its head."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return (await reader.readexactly(length)).decode(), head


def run(work: Any) -> None:
    with asyncio.Runner(loop_factory=fast_event_loop) as runner:
        runner.run(work)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"d", '"direct 1"'),
        (b"other", '"application 5"'),
        (b"fail", '"application 4"'),
        (b"d" * (MOST_BODY + 1), f'"application {MOST_BODY + 1}"'),
    ],
)
def test_other_requests_are_passed_to_the_application(body: bytes, said: str) -> None:
    async def work() -> None:
        async with served(Taker()) as (reader, writer):
            for _ in range(3):
                writer.write(request(body))
                text, head = await answer(reader)
                assert text == said and head.startswith(b"HTTP/1.1 200 OK\r\n") and b"\r\ndate: " in head

    run(work())


def test_a_body_in_pieces_is_waited_for() -> None:
    async def work() -> None:
        async with served(Taker()) as (reader, writer):
            whole = request(b"d234567")
            for position in range(len(whole)):
                writer.write(whole[position : position + 1])
                await writer.drain()
                await asyncio.sleep(0)
            assert (await answer(reader))[0] == '"direct 7"'

    run(work())


def test_pipelined_requests_are_answered_in_their_order() -> None:
    async def work() -> None:
        taker = Taker()
        async with served(taker) as (reader, writer):
            writer.write(request(b"later") + request(b"d2") + request(b"x") + request(b"d"))
            while not taker.waiting:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.02)
            taker.waiting[0].answer(b'"at last"')
            said = [(await answer(reader))[0] for _ in range(4)]
            assert said == ['"at last"', '"direct 2"', '"application 1"', '"direct 1"']

    run(work())


@pytest.mark.parametrize(("headers", "version"), [(["Connection: close"], "1.1"), ([], "1.0")])
def test_a_connection_that_is_to_close_is_closed(headers: list[str], version: str) -> None:
    async def work() -> None:
        async with served(Taker()) as (reader, writer):
            writer.write(request(b"d", *headers, version=version))
            text, head = await answer(reader)
            assert text == '"direct 1"' and b"connection: close\r\n" in head
            assert await reader.read() == b""

    run(work())


def test_a_client_that_asks_whether_to_go_on_is_told() -> None:
    async def work() -> None:
        async with served(Taker()) as (reader, writer):
            head, _, body = request(b"d", "Expect: 100-continue").partition(b"\r\n\r\n")
            writer.write(head + b"\r\n\r\n")
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(body)
            assert (await answer(reader))[0] == '"application 1"'

    run(work())


def test_an_answer_to_who_has_gone_goes_nowhere() -> None:
    async def work() -> None:
        taker = Taker()
        async with served(taker) as (_, writer):
            writer.write(request(b"later"))
            while not taker.waiting:
                await asyncio.sleep(0.001)
            writer.close()
            heard = asyncio.Event()
            taker.waiting[0].lost.add_done_callback(lambda _: heard.set())
            await heard.wait()
            taker.waiting[0].answer(b"{}")

    run(work())


def test_direct_answers_are_counted() -> None:
    async def work() -> None:
        metrics = Metrics()
        app: Any = face([], name="toy", metrics=metrics, render_error=render, direct=Taker())
        server = HttpServer(app, "127.0.0.1", 0, grace_s=1)
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(request(b"d") * 2)
        assert [(await answer(reader))[0] for _ in range(2)] == ['"direct 1"'] * 2
        writer.close()
        await server.stop()
        assert b'toy_http_requests_total{method="POST",status="200"} 2.0' in metrics.render()

    run(work())


class Parsing(JoiningHttpProtocol):
    """Never takes a head for known."""

    @property
    def _is_between_requests(self) -> bool:
        return False


async def answers_to(pieces: list[tuple[bytes, bool]], protocol: type[JoiningHttpProtocol]) -> tuple[bytes, bool, int]:
    """All responses to bytes that arrive in pieces, some of them immediately after the last; and the number of heads
    parsed.
    """
    app = face(
        [
            Route("/early", early, methods=["POST"]),
            Route("/{path:path}", application, methods=["POST", "GET"]),
        ],
        name="toy",
        metrics=Metrics(),
        render_error=render,
        direct=Taker(),
    )
    config = HttpConfig(app, log_config=None, access_log=False, lifespan="off", ws="none")
    config.load()
    server, transport = protocol(config, uvicorn.Server(config).server_state, {}), MemoryTransport()
    server.connection_made(transport)
    for piece, rest in [*pieces, (b"", True)]:
        if piece:
            server.data_received(piece)
        for _ in range(20 * len(pieces) if rest else 0):
            await asyncio.sleep(0)
    closed = transport.closed
    server.connection_lost(None)
    await asyncio.sleep(0)
    return re.sub(rb"date: [^\r]*", b"", b"".join(transport.written)), closed, server._heads


CHUNKED = b"POST /direct HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nd2\r\n0\r\n\r\n"
PARTS = [
    request(b"d2"),
    request(b"d3"),
    request(b"x2"),
    request(b"d23"),
    request(b"\r\n"),
    request(b""),
    request(b"d" + request(b"d2")),
    request(b"d2").replace(b"direct", b"other"),
    request(b"d2", "Connection: close"),
    request(b"d2", "Content-Length: 2"),
    request(b"d2", "Connection: upgrade", "Upgrade: h2c"),
    CHUNKED,
    request(b"d2")[:9],
    request(b"d2")[9:],
    request(b"d2")[:-2],
    request(request(b"d2"))[: -len(request(b"d2"))],
    b"GET /direct HTTP/1.1\r\nHost: here\r\n\r\n",
    b"\r\n",
    b"d2",
    b"\n\n",
    b"nonsense\r\n\r\n",
]
PIECES = st.lists(
    st.tuples(st.sampled_from(PARTS) | st.lists(st.sampled_from(PARTS), max_size=3).map(b"".join), st.booleans()),
    max_size=8,
)
COMMON = st.lists(st.sampled_from(PARTS[:3]), min_size=1, max_size=3).map(
    lambda parts: [(part, True) for part in parts]
)


UNREAD = request(request(b"d2"))[: -len(request(b"d2"))].replace(b"direct", b"early")
LEARNED = [(request(b"d2"), True)] * 3


@settings(max_examples=200)
@given(COMMON, PIECES)
@example(LEARNED, [(request(b"d2")[:9], True), (request(b"d2"), True)])
@example(LEARNED, [(request(request(b"d2"))[: -len(request(b"d2"))], True), (request(b"d2"), True)])
@example(LEARNED, [(request(b"d2")[:-2], True), (request(b"d2"), True)])
@example(LEARNED, [(UNREAD, True), (request(b"d2"), True)])
@example([(CHUNKED, True)] * 3, [(CHUNKED[:-14] + b"2\r\nd3\r\n0\r\n\r\n", True)])
def test_a_known_head_changes_no_answer(first: list[tuple[bytes, bool]], then: list[tuple[bytes, bool]]) -> None:
    pieces = [(piece, rest) for piece, rest in first + then if piece]
    known, parsed = (asyncio.run(answers_to(pieces, kind)) for kind in (JoiningHttpProtocol, Parsing))
    assert known[:2] == parsed[:2]


def test_a_head_that_comes_again_is_not_parsed_again() -> None:
    pieces = [(request(body), True) for body in (b"d2", b"d3", b"x4", b"d5")]
    written, closed, heads = asyncio.run(answers_to(pieces, JoiningHttpProtocol))
    assert re.findall(rb'"[^"]*"', written) == [b'"direct 2"', b'"direct 2"', b'"application 2"', b'"direct 2"']
    assert heads == 2 * 2 and not closed
