"""Requests that are answered past the application, over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidegate.kit.http import HttpServer, face, json_response
from tidegate.kit.http_direct import MOST_BODY, DirectRequest
from tidegate.kit.metrics import Metrics
from tidegate.kit.service import fast_event_loop


class Taker:
    """Answers what begins with ``d`` with its length, at once or when it is told; passes the rest on."""

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
def test_what_is_not_answered_directly_is_the_applications(body: bytes, said: str) -> None:
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
