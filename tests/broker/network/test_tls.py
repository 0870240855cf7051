"""A connection with TLS on a socket pair: frames split anywhere, files, misbehaving clients."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from broker.log.files import FileHandle
from broker.log.partition import LogSlice
from broker.network.connection import Connection
from broker.network.tls import TlsConnection
from tests.support.certificates import write_certificate


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(write_certificate(tmp_path_factory.mktemp("tls") / "own.pem"))
    return made


class Rig:
    """A server's connection whose other end is ``client``, and a TLS client on memory."""

    def __init__(self, context: ssl.SSLContext, handle: Callable[[Connection, bytes], None]) -> None:
        self.client, server = socket.socketpair()
        server.setblocking(False)
        self.client.setblocking(False)
        self.reasons: list[str | None] = []
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        self.tls = trusting.wrap_bio(self.incoming, self.outgoing)
        self.connection = TlsConnection(
            server,
            context=context,
            established=lambda made, _: made.serve(lambda connection, frame: handle(connection, bytes(frame)), 1 << 24),
            handle=lambda _, __: pytest.fail("a frame came before the handshake"),
            closed=lambda _, reason: self.reasons.append(reason),
            max_frame_bytes=100,
            listener="SSL",
        )

    async def shake(self, cut: int = 1 << 20) -> None:
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self.flush(cut)
                await self.fill()
        await self.flush(cut)

    async def flush(self, cut: int = 1 << 20) -> None:
        data = self.outgoing.read()
        for at in range(0, len(data), cut):
            await asyncio.get_running_loop().sock_sendall(self.client, data[at : at + cut])
            await asyncio.sleep(0)

    async def fill(self) -> None:
        data = await asyncio.get_running_loop().sock_recv(self.client, 1 << 16)
        if data:
            self.incoming.write(data)
        else:
            self.incoming.write_eof()

    def close(self) -> None:
        self.connection.close(None)
        self.client.close()

    async def receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                part = self.tls.read(size - len(data))
            except ssl.SSLWantReadError:
                await self.fill()
                continue
            if not part:
                break
            data += part
        return bytes(data)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(limited())


def frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


@pytest.mark.parametrize("seed", range(6))
def test_frames_come_and_go_whole_however_they_are_cut(context: ssl.SSLContext, seed: int) -> None:
    chance = random.Random(seed)

    async def test() -> None:
        rig = Rig(context, lambda connection, content: connection.send([bytearray(frame(content))]))
        await rig.shake(chance.choice([1, 7, 1 << 20]))
        contents = [chance.randbytes(chance.choice([0, 1, 100, 5000, 70_000, 300_000])) for _ in range(12)]
        text = b"".join(map(frame, contents))

        async def write() -> None:
            at = 0
            while at < len(text):
                size = chance.choice([1, 10, 4000, 200_000])
                rig.tls.write(text[at : at + size])
                at += size
                await rig.flush(chance.choice([5000, 1 << 20]))

        writing = asyncio.create_task(write())
        assert await rig.receive(len(text)) == text
        await writing
        rig.close()

    run(test)


def test_records_go_from_their_file_to_a_client_that_reads_late(context: ssl.SSLContext, tmp_path: Path) -> None:
    content = os.urandom(20_000_000)
    (tmp_path / "log").write_bytes(content)

    async def test() -> None:
        part = LogSlice(FileHandle(tmp_path / "log"), 5, 19_000_000)
        rig = Rig(context, lambda connection, _: connection.send([bytearray(b"head"), part, bytearray(b"tail")]))
        await rig.shake()
        rig.tls.write(frame(b"fetch"))
        await rig.flush()
        for _ in range(50):
            await asyncio.sleep(0)
        assert not rig.connection.is_idle
        expected = b"head" + content[5:19_000_005] + b"tail"
        assert await rig.receive(len(expected)) == expected
        while not rig.connection.is_idle:
            await asyncio.sleep(0)
        rig.close()

    run(test)


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 50, struct.pack(">ihhih", 10, 18, 0, 7, -1), b"\x16\x03\x01\x00\x05abcde"],
)
def test_an_invalid_handshake_ends_the_connection(context: ssl.SSLContext, data: bytes) -> None:
    async def test() -> None:
        rig = Rig(context, lambda _, __: None)
        await asyncio.get_running_loop().sock_sendall(rig.client, data)
        while rig.connection.is_open:
            await asyncio.sleep(0)
        assert "TLS handshake failed" in str(rig.reasons[0])
        rig.client.close()

    run(test)


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_handshake_ends_the_connection(context: ssl.SSLContext, seed: int) -> None:
    chance = random.Random(seed)

    async def test() -> None:
        rig = Rig(context, lambda _, __: None)
        with pytest.raises(ssl.SSLWantReadError):
            rig.tls.do_handshake()
        hello = bytearray(rig.outgoing.read())
        for _ in range(chance.randrange(1, 20)):
            hello[chance.randrange(len(hello))] = chance.randrange(256)
        cut = chance.randrange(len(hello) + 1)
        await asyncio.get_running_loop().sock_sendall(rig.client, bytes(hello[:cut]) + chance.randbytes(100))
        rig.client.shutdown(socket.SHUT_WR)
        while rig.connection.is_open:
            await asyncio.sleep(0)
        assert not rig.connection.authenticated
        rig.client.close()

    run(test)


@pytest.mark.parametrize("seed", range(20))
def test_damage_ends_the_connection_and_nothing_else(context: ssl.SSLContext, seed: int) -> None:
    chance = random.Random(seed)

    async def test() -> None:
        frames: list[bytes] = []
        rig = Rig(context, lambda _, content: frames.append(content))
        await rig.shake()
        rig.tls.write(frame(b"whole"))
        await rig.flush()
        rig.tls.write(frame(b"x" * 3000))
        data = bytearray(rig.outgoing.read())
        data[chance.randrange(5, len(data))] ^= chance.randrange(1, 256)
        await asyncio.get_running_loop().sock_sendall(rig.client, bytes(data))
        while rig.connection.is_open:
            await asyncio.sleep(0)
        assert frames == [b"whole"]
        assert "TLS failed" in str(rig.reasons[0])
        rig.client.close()

    run(test)


def test_a_client_that_leaves_in_the_middle_is_gone(context: ssl.SSLContext) -> None:
    async def test() -> None:
        for established in (False, True):
            rig = Rig(context, lambda _, __: None)
            if established:
                await rig.shake()
                rig.tls.write(frame(b"x" * 3000)[:100])
                await rig.flush()
            rig.client.close()
            while rig.connection.is_open:
                await asyncio.sleep(0)

    run(test)


def test_a_goodbye_is_said(context: ssl.SSLContext) -> None:
    async def test() -> None:
        rig = Rig(context, lambda _, __: None)
        await rig.shake()
        while not rig.connection.authenticated:
            await asyncio.sleep(0)
        rig.connection.close(None)
        with pytest.raises(ssl.SSLZeroReturnError):
            while True:
                try:
                    rig.tls.read(10)
                    raise ssl.SSLZeroReturnError
                except ssl.SSLWantReadError:
                    await rig.fill()
        rig.client.close()

    run(test)


@pytest.mark.parametrize(
    "sent", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01"], ids=["nothing", "no TLS", "a piece"]
)
def test_a_client_without_a_handshake_is_freed_without_the_garbage_collector(
    context: ssl.SSLContext, sent: bytes
) -> None:
    """Each stayed in a circle with OpenSSL's buffers."""

    async def come_and_go() -> None:
        client, server = socket.socketpair()
        server.setblocking(False)
        reasons: list[str | None] = []
        TlsConnection(
            server,
            context=context,
            established=lambda *_: None,
            handle=lambda *_: None,
            closed=lambda _, reason: reasons.append(reason),
            max_frame_bytes=100,
            listener="SSL",
        )
        client.sendall(sent)
        client.close()
        while not reasons:
            await asyncio.sleep(0.001)

    async def run() -> int:
        await come_and_go()
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                await come_and_go()
            return sum(isinstance(thing, TlsConnection) for thing in gc.get_objects())
        finally:
            gc.enable()

    assert asyncio.run(run()) <= 1
