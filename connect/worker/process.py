"""A task-host process as the worker sees it: started, asked, listened to, and noticed when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import IO, Any, Final

from connect.errors import HostDied
from connect.worker.link import MAX_LINE_BYTES, error_message, line_of, raised
from connect.worker.scratch import Scratch
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["HostProcess"]

logger = get_logger(__name__)

_STACKS_S: Final = 0.3
"""How long a process may take to write down its stacks."""
_SETUP_S: Final = 60.0
_MAX_STACKS_BYTES: Final = 64 * 1024


class HostProcess:
    """One process. ``on_event(name, values)`` hears its news, ``on_call(name, values)`` answers its questions,
    ``on_death(self, reason)`` is called once if it ends without having been told to."""

    def __init__(
        self,
        number: int,
        *,
        on_event: Callable[[str, dict[str, Any]], None],
        on_call: Callable[[str, dict[str, Any]], Awaitable[Any]],
        on_death: Callable[[HostProcess, str], None],
    ) -> None:
        self.number = number
        self._on_event, self._on_call, self._on_death = on_event, on_call, on_death
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._answering: set[asyncio.Task[None]] = set()
        self._ending = False
        self._stacks: IO[bytes] | None = None
        self._scratch: Scratch | None = None
        self._heard_at = time.monotonic()
        self.memory_bytes = 0
        """The memory of the process, as it reported last."""
        self.clients: list[list[Any]] = []
        """The metrics of its Kafka clients, as it reported last (``connect.metrics.clients``)."""

    @property
    def silent_s(self) -> float:
        """Seconds since it was heard of; every host says each second that it lives."""
        return time.monotonic() - self._heard_at

    async def stacks(self) -> str:
        """Where all its threads are; works when it answers nothing any more."""
        if self._process is None or self._stacks is None or self._process.returncode is not None:
            return ""
        before = os.fstat(self._stacks.fileno()).st_size
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR2)
        await asyncio.sleep(_STACKS_S)
        return os.pread(self._stacks.fileno(), _MAX_STACKS_BYTES, before).decode("utf-8", "replace")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None and not self._ending

    async def start(self, setup: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> None:
        """Start it and give it its setup; raises HostDied where that fails. By default it has the worker's environment, otherwise
        this one and an empty home folder."""
        self._scratch = await asyncio.to_thread(Scratch)
        stacks = self._stacks = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        worker_end, host_end = socket.socketpair()
        with contextlib.ExitStack() as unless_started, host_end:
            for release in (self._scratch.remove, stacks.close, worker_end.close):
                unless_started.callback(release)
            os.set_inheritable(host_end.fileno(), True)
            home = {"HOME": str(self._scratch.path)}
            inherited = os.environ if environment is None else {**environment, **home}
            path = os.pathsep.join(entry for entry in sys.path if entry)
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-P", "-m", "connect.worker.host", str(host_end.fileno()), str(stacks.fileno())),
                pass_fds=[host_end.fileno(), stacks.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                env={**inherited, "PYTHONPATH": path, "TMPDIR": str(self._scratch.path)},
            )
            unless_started.pop_all()
        reader, self._writer = await asyncio.open_connection(sock=worker_end, limit=MAX_LINE_BYTES)
        self._listening = asyncio.create_task(self._listen(reader), name=f"task host {self.number}")
        try:
            await self.call("setup", within_s=_SETUP_S, **setup)
        except TimeoutError:
            await self.kill()
            raise HostDied(f"task host {self.number} was not ready within {_SETUP_S:g} s") from None

    async def call(self, name: str, /, *, within_s: float, **values: Any) -> Any:
        """Ask and wait for the answer. Raises RemoteError for what went wrong there, HostDied when it ended, and TimeoutError
        where there is no answer in time."""
        if self._writer is None or self._writer.is_closing() or (self._listening and self._listening.done()):
            raise HostDied(f"task host {self.number} has ended")
        number = next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(within_s):
                self._writer.write(line_of({"call": name, "id": number, "with": values}))
                with contextlib.suppress(ConnectionError):
                    await self._writer.drain()
                return await future
        finally:
            self._waiting.pop(number, None)

    async def stop(self, timeout_s: float) -> None:
        """Let it finish within the time, then kill it."""
        self._ending = True
        try:
            async with asyncio.timeout(timeout_s):
                await self.call("shutdown", within_s=timeout_s)
                if self._process is not None:
                    await self._process.wait()
        except (TimeoutError, HostDied):
            pass
        await self.kill()

    async def kill(self) -> None:
        self._ending = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        if self._listening is not None:
            await self._listening

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                self._heard_at = time.monotonic()
                self._take(json.loads(line))
        assert self._process is not None and self._writer is not None
        status = await self._process.wait()
        self._writer.close()
        if self._stacks is not None:
            self._stacks.close()
            self._stacks = None
        reason = f"task host {self.number} (pid {self.pid}) {_ended(status)}"
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(HostDied(reason))
        if not self._ending:
            self._on_death(self, reason)
        if self._scratch is not None:
            await asyncio.to_thread(self._scratch.remove)

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("event") == "alive":
            self.memory_bytes = message["with"]["memory_bytes"]
            self.clients = message["with"].get("clients", self.clients)
        elif "event" in message:
            self._on_event(message["event"], message["with"])
        elif "call" in message:
            task = asyncio.create_task(self._answer(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif (future := self._waiting.get(message["id"])) is not None and not future.done():
            if "error" in message:
                future.set_exception(raised(message))
            else:
                future.set_result(message.get("result"))

    async def _answer(self, message: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"id": message["id"]}
        try:
            answer["result"] = await self._on_call(message["call"], message["with"])
        except TidegateError as error:  # such as that the task is not to run any more
            logger.warning("a task host's question is refused", call=message["call"], error=str(error))
            answer |= error_message(error)
        except Exception as error:
            logger.exception("a task host's question could not be answered", call=message["call"])
            answer |= error_message(error)
        assert self._writer is not None
        if not self._writer.is_closing():
            self._writer.write(line_of(answer))


def _ended(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
