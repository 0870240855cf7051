"""Services: the interface of a component to its process; starting, reporting readiness, and stopping."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tidegate.kit.errors import TidegateError
from tidegate.kit.files import write_whole
from tidegate.kit.logs import get_logger
from tidegate.kit.open_files import raise_limit
from tidegate.kit.watchdog import Notifier

__all__ = ["Service", "fast_event_loop", "run", "write_ready"]

logger = get_logger(__name__)


class Service(Protocol):
    """A component that can be started and stopped, once each.

    ``start`` returns when every address answers, with the actual addresses by name (``{"broker": "127.0.0.1:9092"}``).
    ``stop`` finishes accepted requests, and may be called after a failed ``start``. ``wait_failed`` is optional: it
    returns, with the reason, when the service can't continue.
    """

    async def start(self) -> Mapping[str, str]: ...

    async def stop(self) -> None: ...


def write_ready(path: Path, addresses: Mapping[str, str]) -> None:
    """Write atomically that the process with this pid serves ``addresses``."""
    write_whole(path, json.dumps({"pid": os.getpid(), "addresses": dict(addresses)}))


def run(
    service: Service,
    *,
    ready_file: Path | None = None,
    stop_with_stdin: bool = False,
    many_connections: bool = False,
) -> int:
    """Run a service in this process until SIGTERM or SIGINT. Returns the exit status.

    It raises its limit on open files as far as it may, as Java does. It sends keepalives to its parent (``kit.watchdog``). SIGABRT, which ends a process that sends none, makes it print
    the stack of each thread. With ``stop_with_stdin`` the end of standard input stops it too, so that a child never
    outlives a killed supervisor. ``many_connections`` is for a service with thousands of connections through asyncio's
    transports: it selects a cheaper event loop, and makes full garbage collections rare.
    """
    raise_limit()
    with contextlib.suppress(OSError, ValueError):  # standard error is not a file, as under pytest
        faulthandler.enable()
    try:
        with asyncio.Runner(loop_factory=fast_event_loop if many_connections else None) as runner:
            return runner.run(_run(service, ready_file, stop_with_stdin, collect_rarely=many_connections))
    except TidegateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def fast_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's loop if it is installed, which is not possible on Windows."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _run(service: Service, ready_file: Path | None, stop_with_stdin: bool, *, collect_rarely: bool) -> int:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if stop_with_stdin:
        await _watch_stdin(loop, stopping)
    notifier, living = Notifier(), None
    try:
        starting = asyncio.ensure_future(service.start())
        waiting = asyncio.create_task(stopping.wait())
        await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            addresses = starting.result()
            # The objects of the start stay. A full collection that looked at them would stop an idle broker for 50 ms.
            gc.collect()
            gc.freeze()
            if collect_rarely:
                # With 1,000 subscribers a full collection holds everybody up for 200 ms.
                gc.set_threshold(1000, 10, 1000)
            if ready_file is not None:
                write_ready(ready_file, addresses)
            logger.info("ready", **addresses)
            notifier.say("READY=1")
            living = asyncio.create_task(notifier.keep_saying())
            await waiting
        else:
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await starting
    finally:
        notifier.say("STOPPING=1")
        await service.stop()
        if living is not None:
            living.cancel()
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
    return 0


async def _watch_stdin(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    class Watch(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            stopping.set()

    await loop.connect_read_pipe(Watch, sys.stdin)
