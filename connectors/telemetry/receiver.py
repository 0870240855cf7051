"""The thread in which the listeners of a task run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack

from connectors.telemetry.config import TelemetryConfig
from connectors.telemetry.inbox import Counts, Inbox

__all__ = ["Open", "Receiver"]

Open = Callable[[Inbox, Counts, AsyncExitStack], Awaitable[None]]
"""Opens a listener, in the listeners' thread."""


class Receiver:
    """Runs listeners in an event loop of their own until it is closed."""

    def __init__(self, config: TelemetryConfig, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.counts = Counts()
        self.inbox = Inbox(config.queue_messages, config.queue_bytes, self.loop)
        self._ending = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._name = name

    def start(self, listeners: Sequence[Open]) -> None:
        """Raises what a listener raises that cannot be opened."""
        opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(listeners, opened), name=self._name, daemon=True)
        self._thread.start()
        try:
            opened.result()
        except BaseException:
            self._thread.join()
            raise

    def close(self) -> None:
        if self._thread is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._ending.set)
            self._thread.join()

    def _run(self, listeners: Sequence[Open], opened: Future[None]) -> None:
        try:
            self.loop.run_until_complete(self._serve(listeners, opened))
        finally:
            self.loop.close()

    async def _serve(self, listeners: Sequence[Open], opened: Future[None]) -> None:
        async with AsyncExitStack() as open_now:
            try:
                for each in listeners:
                    await each(self.inbox, self.counts, open_now)
            except Exception as error:  # noqa: BLE001 - raised in the task's thread
                opened.set_exception(error)
                return
            opened.set_result(None)
            await self._ending.wait()
