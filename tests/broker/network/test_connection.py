"""A connection on a socket pair: frames whole and in pieces, answers in order, limits."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from broker.api.connection import ConnectionRefusal
from broker.log.files import FileHandle
from broker.log.partition import LogSlice
from broker.network.connection import Connection


class Rig:
    """One connection whose other end is ``client``; ``handle`` processes its frames."""

    def __init__(self, handle: Callable[[Connection, bytes], None], max_frame_bytes: int = 1 << 20) -> None:
        self.client, server = socket.socketpair()
        server.setblocking(False)
        self.client.setblocking(False)
        self.frames: list[bytes] = []
        self.reasons: list[str | None] = []

        def taken(connection: Connection, frame: memoryview) -> None:
            self.frames.append(bytes(frame))
            handle(connection, bytes(frame))

        self.connection = Connection(
            server,
            handle=taken,
            closed=lambda _, reason: self.reasons.append(reason),
            max_frame_bytes=max_frame_bytes,
            listener="PLAINTEXT",
        )

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.client, data)

    async def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = await asyncio.get_running_loop().sock_recv(self.client, size - len(data))
            if not part:
                break
            data += part
        return data

    def close(self) -> None:
        self.connection.close(None)
        self.client.close()


def frame(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def echo(connection: Connection, content: bytes) -> None:
    connection.send([bytearray(content)])


def run(test: Callable[[], Any]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(60):
            await test()

    asyncio.run(limited())


def test_frames_of_every_size_come_whole_however_they_are_cut() -> None:
    async def test() -> None:
        rig = Rig(echo)
        contents = [b"", b"a", b"b" * 65_532, b"c" * 65_533, b"d" * 300_000, b"e" * 7]
        data = b"".join(map(frame, contents))
        for step in (1000, 65_536, len(data)):
            rig.frames.clear()
            for at in range(0, len(data), step):
                sending = asyncio.create_task(rig.send(data[at : at + step]))
                await rig.receive(0)
                while not sending.done():
                    try:
                        rig.client.recv(1 << 20)
                    except BlockingIOError:
                        pass
                    await asyncio.sleep(0)
            while len(rig.frames) < len(contents):
                try:
                    rig.client.recv(1 << 20)
                except BlockingIOError:
                    pass
                await asyncio.sleep(0)
            assert rig.frames == contents
        rig.close()

    run(test)


def test_a_connection_that_says_little_costs_little_and_frames_at_the_bounds_of_its_buffer_come_whole() -> None:
    def bytes_taken(talk: bytes) -> int:
        async def talked() -> int:
            tracemalloc.start()
            try:
                rig = Rig(echo)
                contents = [bytes([n]) * size for n, size in enumerate(map(len, talk.split(b" ")))]
                for content in contents:
                    await rig.send(frame(content))
                    await rig.receive(len(content))
                assert rig.frames == contents
                rig.frames.clear()
                return tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()
                rig.close()

        return asyncio.run(talked())

    sizes = (2043, 2044, 2045, 2048, 65_532, 3)
    assert bytes_taken(b" ".join(b"x" * size for size in sizes)) > 64_000
    assert bytes_taken(b" ".join([b"x" * 100] * 50)) < 30_000


def test_a_frame_that_comes_in_segments_goes_into_the_large_buffer_only_of_a_client_that_is_known() -> None:
    def in_segments(*, known: bool) -> tuple[list[bytes], int]:
        async def talked() -> tuple[list[bytes], int]:
            rig = Rig(echo)
            rig.connection.authenticated = known
            content = frame(b"x" * 5000)
            for at in range(0, len(content), 1448):  # what an Ethernet brings at once
                await rig.send(content[at : at + 1448])
                await asyncio.sleep(0.01)
            await rig.receive(5000)
            taken = rig.frames, len(rig.connection._buffer)
            rig.close()
            return taken

        return asyncio.run(talked())

    assert in_segments(known=True) == ([b"x" * 5000], 65_536)
    assert in_segments(known=False) == ([b"x" * 5000], 2048)


def test_answers_keep_the_order_of_their_requests() -> None:
    async def test() -> None:
        futures: list[asyncio.Future[bytes]] = []

        def handle(connection: Connection, content: bytes) -> None:
            if content.startswith(b"later"):
                future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
                futures.append(future)
                connection.reserve(future, lambda done: [bytearray(done.result())])
            else:
                connection.send([bytearray(content)])

        rig = Rig(handle)
        await rig.send(b"".join(map(frame, (b"later 1", b"now 2", b"later 3", b"now 4"))))
        while len(rig.frames) < 4:
            await asyncio.sleep(0)
        futures[1].set_result(b"3")
        await asyncio.sleep(0)
        futures[0].set_result(b"1")
        assert await rig.receive(12) == b"1now 23now 4"
        rig.close()

    run(test)


def test_a_large_slice_of_a_file_arrives_between_its_bytes(tmp_path: Path) -> None:
    async def test() -> None:
        content = os.urandom(3_000_000)
        (tmp_path / "log").write_bytes(b"before" + content + b"after")
        handle = FileHandle(tmp_path / "log")
        small, large = LogSlice(handle, 0, 6), LogSlice(handle, 6, len(content))
        rig = Rig(lambda connection, _: connection.send([bytearray(b"<"), small, large, bytearray(b">")]))
        await rig.send(frame(b"x"))
        assert await rig.receive(len(content) + 8) == b"<before" + content + b">"
        rig.close()

    run(test)


def test_a_frame_above_the_limit_ends_the_connection_before_it_is_read() -> None:
    async def test() -> None:
        rig = Rig(echo, max_frame_bytes=1000)
        await rig.send(struct.pack(">i", 1001))
        assert await rig.receive(1) == b""
        assert rig.frames == []
        assert rig.reasons == ["a frame of 1001 bytes was announced; socket.request.max.bytes is 1000"]
        rig.close()

    run(test)


def test_a_refusal_ends_the_connection_with_its_reason() -> None:
    async def test() -> None:
        def handle(_connection: Connection, _content: bytes) -> None:
            raise ConnectionRefusal("no such API")

        rig = Rig(handle)
        await rig.send(frame(b"x") + frame(b"y"))
        assert await rig.receive(1) == b""
        assert (rig.reasons, len(rig.frames)) == (["no such API"], 1)
        rig.close()

    run(test)


def test_closing_cancels_what_is_awaited() -> None:
    async def test() -> None:
        future: asyncio.Future[Sequence[bytearray]] = asyncio.get_running_loop().create_future()
        rig = Rig(lambda connection, _: connection.reserve(future, lambda done: done.result()))
        await rig.send(frame(b"x"))
        while not rig.frames:
            await asyncio.sleep(0)
        rig.client.close()
        while not rig.reasons:
            await asyncio.sleep(0)
        assert future.cancelled()
        assert rig.reasons == [None]

    run(test)


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    async def test() -> None:
        answer = b"z" * 100_000
        rig = Rig(lambda connection, _: connection.send([bytearray(answer)]))
        sending = asyncio.create_task(rig.send(frame(b"more") * 1000))
        for _ in range(2000):
            await asyncio.sleep(0)
        # 8 MiB of answers wait; the other requests stay where they are.
        assert 80 < len(rig.frames) < 200
        received = 0
        while received < 1000 * len(answer):
            received += len(await rig.receive(min(1 << 20, 1000 * len(answer) - received)))
        await sending
        assert len(rig.frames) == 1000
        rig.close()

    run(test)


def test_slices_of_files_that_a_client_does_not_read_are_bounded_too(tmp_path: Path) -> None:
    async def test() -> None:
        size = 70_000
        (tmp_path / "log").write_bytes(b"z" * size)
        part = LogSlice(FileHandle(tmp_path / "log"), 0, size)
        rig = Rig(lambda connection, _: connection.send([bytearray(b"<"), part]))
        sending = asyncio.create_task(rig.send(frame(b"more") * 2000))
        for _ in range(5000):
            await asyncio.sleep(0)
        assert 100 < len(rig.frames) < 300
        received = 0
        while received < 2000 * (size + 1):
            received += len(await rig.receive(min(1 << 20, 2000 * (size + 1) - received)))
        await sending
        assert len(rig.frames) == 2000
        rig.close()

    run(test)


def test_an_answer_that_cannot_be_made_ends_the_connection() -> None:
    async def test() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def finish(_: object) -> list[bytearray]:
            raise RuntimeError("a fault of ours")

        rig = Rig(lambda connection, _: connection.reserve(future, finish))
        await rig.send(frame(b"x"))
        while not rig.frames:
            await asyncio.sleep(0)
        future.set_result(None)
        assert await rig.receive(1) == b""
        assert "a fault of ours" in str(rig.reasons)
        rig.close()

    run(test)


def test_many_unanswered_requests_are_not_read_on() -> None:
    async def test() -> None:
        futures: list[asyncio.Future[None]] = []

        def handle(connection: Connection, _content: bytes) -> None:
            futures.append(asyncio.get_running_loop().create_future())
            connection.reserve(futures[-1], lambda _: [bytearray(b"!")])

        rig = Rig(handle)
        await rig.send(frame(b"") * 300)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(futures) == 128
        answered = 0
        while answered < 300:
            for future in futures[answered:]:
                future.set_result(None)
                answered += 1
            await asyncio.sleep(0)
        assert await rig.receive(300) == b"!" * 300
        rig.close()

    run(test)


def test_a_muted_connection_takes_no_requests_but_answers_those_it_took() -> None:
    async def test() -> None:
        futures: list[asyncio.Future[bytes]] = []
        sent: list[float] = []

        def handle(connection: Connection, content: bytes) -> None:
            if content == b"later":
                futures.append(asyncio.get_running_loop().create_future())
                connection.reserve(futures[-1], lambda done: [bytearray(done.result())], sent.append)
            else:
                connection.mute(0.05 if content == b"mute" else 0)
                connection.send([bytearray(content)], sent.append)

        rig = Rig(handle)
        await rig.send(frame(b"later") + frame(b"mute") + frame(b"after"))
        while len(rig.frames) < 2:
            await asyncio.sleep(0)
        assert rig.frames == [b"later", b"mute"] and sent == []
        futures[0].set_result(b"now")
        assert await rig.receive(7) == b"nowmute"
        assert rig.frames == [b"later", b"mute"]
        assert len(sent) == 2 and sent[0] == 0 < sent[1]
        assert await rig.receive(5) == b"after"
        rig.close()

    run(test)


def test_a_connection_may_end_while_it_is_muted() -> None:
    async def test() -> None:
        def handle(connection: Connection, content: bytes) -> None:
            connection.mute(0.01)

        rig = Rig(handle)
        await rig.send(frame(b"a"))
        while not rig.frames:
            await asyncio.sleep(0)
        rig.close()
        await asyncio.sleep(0.03)
        assert rig.reasons == [None]

    run(test)


def test_a_connection_that_reads_no_more_does_not_begin_again_after_an_answer() -> None:
    async def test() -> None:
        futures: list[asyncio.Future[bytes]] = []

        def handle(connection: Connection, content: bytes) -> None:
            futures.append(asyncio.get_running_loop().create_future())
            connection.reserve(futures[-1], lambda done: [bytearray(done.result())])

        rig = Rig(handle)
        await rig.send(frame(b"one"))
        while not rig.frames:
            await asyncio.sleep(0)
        rig.connection.stop_reading()
        futures[0].set_result(b"answer")
        assert await rig.receive(6) == b"answer"
        await rig.send(frame(b"two"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert rig.frames == [b"one"] and rig.connection.is_idle
        rig.close()

    run(test)
