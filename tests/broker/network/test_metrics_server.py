"""The broker's metrics endpoint and clients that keep sending, or send nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.network import metrics_server
from broker.network.metrics_server import MetricsServer
from tests.support.certificates import write_certificate


async def render() -> bytes:
    return b"up 1\n"


@asynccontextmanager
async def running(context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    server = MetricsServer("127.0.0.1:0", render, context=context)
    url = await server.start()
    try:
        yield int(url.rpartition(":")[2].removesuffix("/metrics"))
    finally:
        await server.stop()


@pytest.mark.anyio
async def test_a_client_that_sends_after_its_answer_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pem = write_certificate(tmp_path / "server.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    trusting = ssl.create_default_context(cafile=str(pem))
    with caplog.at_level(logging.ERROR, "asyncio"):
        async with running(context) as port:
            for _ in range(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
                writer.write(b"GET /metrics HTTP/1.1\r\n\r\n" + b"GET /metrics HTTP/1.1\r\n\r\n" * 20_000)
                assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
                writer.transport.abort()
    assert [record.getMessage() for record in caplog.records] == []


async def scraped(port: int, context: ssl.SSLContext | None = None) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
    answer = await reader.read()
    writer.transport.abort()
    return answer


@pytest.mark.anyio
@pytest.mark.parametrize("encrypted", [False, True])
async def test_silent_connections_make_room_for_those_that_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encrypted: bool
) -> None:
    monkeypatch.setattr(metrics_server, "_MOST_CONNECTIONS", 3)
    context = trusting = None
    if encrypted:
        pem = write_certificate(tmp_path / "server.pem")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        trusting = ssl.create_default_context(cafile=str(pem))
    async with running(context) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(10)]
        assert (await scraped(port, trusting)).endswith(b"\r\n\r\nup 1\n")
        # The server has ended all but two of them, in a handshake of TLS too.
        ended = 0
        for reader, _ in silent[:8]:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            ended += 1
        assert ended == 8
        for _, writer in silent:
            writer.transport.abort()
