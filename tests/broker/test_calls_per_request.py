"""The cost of a request does not grow with its number of records; measured in function calls, both Python's and C's."""

from __future__ import annotations

import asyncio
import gc
import sys
import time

import pytest

from broker.protocol.records import Record, encode_batch
from broker.security.principal import ANONYMOUS
from broker.server import serve
from tests.support.broker import settings
from tests.support.wire import fetch_frame, produce_frame


class Client:
    """The parts of a connection that a request needs if it is answered immediately."""

    listener, peer, principal = "PLAINTEXT", "127.0.0.1", ANONYMOUS
    answer = b""

    @property
    def active_at(self) -> float:
        return time.monotonic()

    def send(self, parts, sent=None) -> None:
        self.answer = b"".join(part if isinstance(part, bytes | bytearray) else part.read() for part in parts)
        if sent is not None:
            sent(0.0)


def calls(work) -> int:
    count = 0

    def profile(frame, event, argument) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.fixture
def counted(tmp_path):
    """Counts the calls for a batch of so many records: to produce it, and to fetch it."""

    async def count(records: int) -> tuple[int, int]:
        directory = tmp_path / str(records)
        server = serve(settings(directory, acks_all_durability="page-cache", log_background_flush_interval_ms="100000"))
        await server.start()
        try:
            server.broker.topics.create("t", partitions=1)
            handle = server._dispatcher
            client = Client()
            batch = encode_batch([Record(None, b"x" * 100)._replace(timestamp_ms=1) for _ in range(records)])
            produce = memoryview(bytearray(produce_frame("t", 0, batch)))
            for _ in range(3):  # what is looked up once, and imported
                handle(client, produce)
                handle(client, memoryview(fetch_frame("t", 0)))
            produced = calls(lambda: handle(client, produce))
            start = server.broker.partitions.find("t", 0).log_end_offset - records
            fetched = calls(lambda: handle(client, memoryview(fetch_frame("t", start))))
            assert len(client.answer) >= len(batch)
            return produced, fetched
        finally:
            await server.stop()

    return lambda records: asyncio.run(count(records))


def test_a_thousand_times_the_records_take_no_more_calls(counted):
    single, many = counted(1), counted(1000)
    assert many[0] <= single[0] + 4, f"produce: {single[0]} calls for one record, {many[0]} for a thousand"
    assert many[1] <= single[1] + 4, f"fetch: {single[1]} calls for one record, {many[1]} for a thousand"
    assert single[0] < 200 and single[1] < 200
