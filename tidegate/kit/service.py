"""Services: what a component is to the process that runs it, and how that process starts, says it is ready, and stops."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import logger

__all__ = ["Service", "run", "write_ready"]

log = logger(__name__)


class Service(Protocol):
    """A component that can be started and stopped, once each.

    ``start`` returns when every face answers, with the real addresses by name (``{"broker": "127.0.0.1:9092"}``).
    ``stop`` finishes what was accepted, and may be called after a failed ``start``. ``wait_failed`` is optional: where
    a service has it, its return means that the service cannot go on and says why.
    """

    async def start(self) -> Mapping[str, str]: ...

    async def stop(self) -> None: ...


def write_ready(path: Path, addresses: Mapping[str, str]) -> None:
    """Say, in one atomic step, that the process with this pid serves ``addresses``."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps({"pid": os.getpid(), "addresses": dict(addresses)}))
    temporary.replace(path)


def run(service: Service, *, ready_file: Path | None = None, stop_with_stdin: bool = False) -> int:
    """Run a service in this process until SIGTERM or SIGINT; returns the exit status.

    With ``stop_with_stdin`` the end of standard input stops it too, so that a child never outlives a supervisor that
    was killed.
    """
    try:
        return asyncio.run(_run(service, ready_file, stop_with_stdin))
    except TidegateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


async def _run(service: Service, ready_file: Path | None, stop_with_stdin: bool) -> int:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if stop_with_stdin:
        await _watch_stdin(loop, stopping)
    try:
        starting = asyncio.ensure_future(service.start())
        waiting = asyncio.create_task(stopping.wait())
        await asyncio.wait({starting, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            addresses = starting.result()
            if ready_file is not None:
                write_ready(ready_file, addresses)
            log.info("ready", **addresses)
            await waiting
        else:
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await starting
    finally:
        await service.stop()
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
    return 0


async def _watch_stdin(loop: asyncio.AbstractEventLoop, stopping: asyncio.Event) -> None:
    class Watch(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            stopping.set()

    await loop.connect_read_pipe(Watch, sys.stdin)
