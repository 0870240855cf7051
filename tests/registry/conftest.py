"""A registry over an in-memory log, and its HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from registry.domain.registry import Registry
from registry.errors import StoreError
from registry.formats.compatibility import Level
from registry.log.store import LogRecord, Store
from registry.metrics import RegistryMetrics
from registry.server.app import application
from tidegate.kit.http import Guard


class MemoryLog:
    """A log that keeps what it is given. ``failure`` makes appends fail, ``silent`` makes them wait for ever,
    ``deaf`` makes questions for its end do so; ``unreadable`` is what the next read raises."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes | None, bytes | None]] = []
        self.failure: StoreError | None = None
        self.silent = self.deaf = False
        self.unreadable: BaseException | None = None
        self.claims = self.ends = 0
        """How often the log was claimed, and asked where it ends."""
        self.times_ms: dict[int, int] = {}
        self._next = 0
        self._grown: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        self._next = 0
        self._grown = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def claim(self) -> None:
        self.claims += 1

    async def append(self, records: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int) -> int:
        if self.failure is not None:
            raise self.failure
        if self.silent:
            await asyncio.Event().wait()
        self.times_ms |= dict.fromkeys(range(len(self.records), len(self.records) + len(records)), timestamp_ms)
        self.records += records
        assert self._grown is not None
        self._grown.set()
        return len(self.records) - len(records)

    async def read(self) -> tuple[Sequence[LogRecord], int]:
        assert self._grown is not None
        while self._next >= len(self.records):
            self._grown.clear()
            await self._grown.wait()
        if self.unreadable is not None:
            error, self.unreadable = self.unreadable, None
            raise error
        records = [LogRecord(n, *self.records[n], self.times_ms.get(n)) for n in range(self._next, len(self.records))]
        self._next = len(self.records)
        return records, self._next

    def tell(self) -> None:
        """Have the reader see records that a test put there. For any thread."""
        assert self._grown is not None
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._grown.set)

    async def end(self) -> int:
        self.ends += 1
        if self.deaf:
            await asyncio.Event().wait()
        return len(self.records)

    async def stop(self) -> None:
        pass


@contextlib.asynccontextmanager
async def serving(
    log: MemoryLog, *, timeout_ms: int = 5000, mode_mutable: bool = True, guards: Sequence[Guard] = ()
) -> AsyncIterator[ASGIApp]:
    """An application over a store that runs as long as the block."""
    metrics = RegistryMetrics()
    store = Store(log, metrics, timeout_ms=timeout_ms)
    await store.start()
    registry = Registry(store, metrics, default_level=Level.BACKWARD, mode_mutable=mode_mutable)
    yield application(registry, metrics, cluster_id="test-cluster", group_id="schema-registry", guards=guards)
    await store.stop()


def served(
    log: MemoryLog, *, timeout_ms: int = 5000, mode_mutable: bool = True, guards: Sequence[Guard] = ()
) -> ASGIApp:
    """An application whose store starts and stops with the test client's lifespan."""
    parts: dict[str, ASGIApp] = {}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await parts["app"](scope, receive, send)
            return
        await receive()
        async with serving(log, timeout_ms=timeout_ms, mode_mutable=mode_mutable, guards=guards) as parts["app"]:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    return app


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def client(log: MemoryLog) -> Iterator[TestClient]:
    with TestClient(served(log)) as started:
        yield started


@pytest.fixture
def reopened() -> Callable[..., TestClient]:
    """Makes a client of a new registry on a log, to be entered as a context."""

    def open_again(log: MemoryLog, *, timeout_ms: int = 5000, mode_mutable: bool = True) -> TestClient:
        return TestClient(served(log, timeout_ms=timeout_ms, mode_mutable=mode_mutable))

    return open_again
