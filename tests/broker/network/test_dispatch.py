"""From frame to response: a handler's failure ends its own connection and affects no other."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import struct
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from broker.api.connection import Promise
from broker.api.routes import Context, Route, Routes
from broker.errors import GroupIdNotFound
from broker.handlers import ROUTES
from broker.protocol.api import ApiKey
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.records import Record, encode_batch
from broker.security.principal import ANONYMOUS
from broker.server import serve
from tests.support.broker import BrokerThread, settings
from tests.support.wire import exchange, fetch_frame, produce_frame, receive_frame

API_VERSIONS = struct.pack(">hhih", 18, 0, 7, -1)


def heartbeat_frame() -> bytes:
    return struct.pack(">hhih", 12, 0, 7, -1) + struct.pack(">h1sih1s", 1, b"g", 0, 1, b"m")


def route_that(outcome: Any) -> Mapping[int, Route]:
    """The usual table, with a heartbeat that does what the test wants."""
    routes = Routes()

    @routes.handles(ApiKey.HEARTBEAT, versions=range(5))
    def heartbeat(_context: Context, _request: HeartbeatRequest) -> HeartbeatResponse:
        if isinstance(outcome, Exception):
            raise outcome
        return HeartbeatResponse(error_code=outcome)

    (made,) = routes
    return MappingProxyType({**ROUTES, 12: made})


@pytest.fixture
def broker(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerThread]:
    monkeypatch.setattr("broker.handlers.ROUTES", route_that(request.param))
    with BrokerThread(settings(tmp_path)) as running:
        yield running


def scrape(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read(), "utf-8")


def connect(broker: BrokerThread) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), 10)


@pytest.mark.parametrize("broker", [GroupIdNotFound("no such group")], indirect=True)
def test_an_error_that_is_raised_is_answered_with_its_code(broker: BrokerThread) -> None:
    with connect(broker) as sock:
        for _ in range(2):
            assert struct.unpack(">ih", exchange(sock, heartbeat_frame())) == (7, 69)


@pytest.mark.parametrize("broker", [RuntimeError("a bug"), 1 << 20], indirect=True, ids=["handler", "answer"])
def test_a_bug_ends_one_connection_and_is_counted(broker: BrokerThread) -> None:
    with connect(broker) as bystander, connect(broker) as sock:
        assert exchange(sock, heartbeat_frame()) == b""
        assert struct.unpack_from(">ih", exchange(bystander, API_VERSIONS)) == (7, 0)
        text = scrape(broker.addresses["broker-metrics"])
    assert 'errorspersec{request="Heartbeat",error="UNKNOWN_SERVER_ERROR"} 1' in text


class Client:
    """A connection that notes when it is answered."""

    listener, peer, principal = "PLAINTEXT", "127.0.0.1", ANONYMOUS
    active_at = 0.0

    def __init__(self, name: str, answered: list[str]) -> None:
        self.name, self.answered = name, answered

    def send(self, parts: Any, sent: Any = None) -> None:
        self.answered.append(self.name)

    def reserve(self, promise: Promise, finish: Any, sent: Any = None) -> None:
        promise.add_done_callback(lambda done: self.send(finish(done)))


def test_consumers_that_wait_come_before_the_producer_if_they_are_few(tmp_path: Path) -> None:
    async def test() -> None:
        server = serve(settings(tmp_path, acks_all_durability="page-cache"))
        await server.start()
        try:
            server.broker.topics.create("t", partitions=1)
            answered: list[str] = []
            dispatch: Any = server._dispatcher
            for number in range(6):
                dispatch(Client(f"consumer {number}", answered), memoryview(fetch_frame("t", 0, max_wait_ms=60_000)))
            assert answered == []
            batch = encode_batch([Record(None, b"x")._replace(timestamp_ms=1)])
            dispatch(Client("producer", answered), memoryview(bytearray(produce_frame("t", 0, batch))))
            first = [f"consumer {number}" for number in range(4)]
            assert answered == [*first, "producer", "consumer 4", "consumer 5"]
        finally:
            await server.stop()

    asyncio.run(test())


def test_large_requests_leave_time_for_others_between_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of thousands of topics from many connections were handled one right after the other, and nobody else was answered."""
    spans: list[tuple[float, float]] = []
    routes = Routes()

    @routes.handles(ApiKey.HEARTBEAT, versions=range(5))
    def heartbeat(_context: Context, _request: HeartbeatRequest) -> HeartbeatResponse:
        began = time.monotonic()
        time.sleep(0.05)
        spans.append((began, time.monotonic()))
        return HeartbeatResponse()

    (made,) = routes
    monkeypatch.setattr("broker.handlers.ROUTES", MappingProxyType({**ROUTES, 12: made}))
    request = struct.pack(">hhih", 12, 0, 7, -1) + struct.pack(">h", 30_000) + b"g" * 30_000
    request += struct.pack(">ih", 1, 30_000) + b"m" * 30_000
    request += bytes(10_000)  # what follows a request is not read
    with BrokerThread(settings(tmp_path)) as broker, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connect(broker)) for _ in range(6)]
        gone = clients.pop()
        for client in (*clients, gone):
            client.sendall(struct.pack(">i", len(request)) + request)
        gone.close()
        for client in clients:
            assert struct.unpack_from(">ih", receive_frame(client)) == (7, 0)
    assert len(spans) >= 5
    for (began, ended), (next_began, _) in itertools.pairwise(spans):
        assert next_began - ended >= (ended - began) * 0.99
