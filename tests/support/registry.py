"""A registry in a thread of the test's process, over an in-memory log, with a real HTTP server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Self

from tests.registry.conftest import MemoryLog, serving
from tidegate.kit.http import Guard, HttpServer

__all__ = ["RegistryThread"]


class RegistryThread:
    """``with RegistryThread() as registry: registry.url``. Every test has its own: it starts in milliseconds."""

    def __init__(self, *, guards: Sequence[Guard] = ()) -> None:
        self._guards = guards
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="registry")
        self._ready, self._loop = threading.Event(), None
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(60)

    async def _run(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        async with serving(MemoryLog(), guards=self._guards) as app:
            server = HttpServer(app, "127.0.0.1", 0, grace_s=1)
            await server.start()
            self.url = server.url
            self._ready.set()
            await self._stopping.wait()
            await server.stop()
