"""Supervises processes: starts them together, waits until each is ready, restarts those that die or hang, stops them in
order.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tidegate.kit.errors import TidegateError
from tidegate.kit.log_files import rotate
from tidegate.kit.logs import get_logger
from tidegate.kit.watchdog import Listener

__all__ = [
    "DEFAULT_WATCHDOG_S",
    "LOG_BACKUPS",
    "LOG_MAX_BYTES",
    "ChildFailed",
    "ChildSpec",
    "ChildState",
    "Supervisor",
    "request_restart",
]

logger = get_logger(__name__)

_FIRST_BACKOFF_S: Final = 0.2
_LAST_BACKOFF_S: Final = 10.0
DEFAULT_WATCHDOG_S: Final = 60.0
LOG_MAX_BYTES: Final = 100 << 20
LOG_BACKUPS: Final = 3
_LATE_S: Final = 5.0
"""A child is late after this time without a keepalive; it sends one per second."""
_LOOK_S: Final = 1.0
_LOGS_S: Final = 10.0
"""How often the sizes of logs are looked at."""
_DUMP_S: Final = 10.0
"""How long a child has to print its threads' stacks before it is killed."""
_STABLE_S: Final = 30.0
"""A child that ran this long is considered healthy: its next restart uses the first backoff again."""


class ChildFailed(TidegateError):
    """A child ended before it was ready the first time. The message has the last lines of its log."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """A process to keep running.

    It gets ``--ready-file PATH`` and must write it when ready (``kit.service.run``), and must stop when its standard
    input ends. It may send keepalives (``kit.watchdog``): after ``watchdog_s`` without one it is ended by SIGABRT and
    restarted. With 0 the silence is only logged.
    """

    name: str
    command: Sequence[str]
    stop_timeout_s: float = 30.0
    watchdog_s: float = DEFAULT_WATCHDOG_S


@dataclass(slots=True)
class ChildState:
    """The state of one child; ``addresses`` is empty until it was ready once."""

    spec: ChildSpec
    pid: int | None = None
    ready: bool = False
    restarts: int = 0
    addresses: dict[str, str] = field(default_factory=dict)
    silent_since: float | None = None
    """When (``time.time``) a late child sent its last keepalive."""


class Supervisor:
    """Keeps children running. They are stopped in reverse order, each with time to end.

    ``on_change`` is called after every change of a child's state. Logs are in ``<log_dir>/<name>.log``; one that is longer
    than ``log_max_bytes`` begins anew, and ``log_backups`` earlier ones are kept (with 0 bytes it grows for ever). Other
    processes ask for a restart of one child with ``request_restart``.
    """

    def __init__(
        self,
        children: Sequence[ChildSpec],
        *,
        run_dir: Path,
        log_dir: Path,
        log_max_bytes: int = LOG_MAX_BYTES,
        log_backups: int = LOG_BACKUPS,
        on_change: Callable[[Sequence[ChildState]], None] = lambda _: None,
    ) -> None:
        self.states = [ChildState(spec) for spec in children]
        self._run_dir, self._log_dir, self._on_change = run_dir, log_dir, on_change
        self._log_max_bytes, self._log_backups = log_max_bytes, log_backups
        self._rotating: asyncio.Task[None] | None = None
        self._keepers: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()
        self._asked: set[str] = set()
        """The children that were ended because a restart was requested."""

    async def start(self, timeout_s: float = 180.0) -> None:
        """Start all children. Returns when all are ready. Raises ChildFailed if one ends before that."""
        self._run_dir.mkdir(parents=True, exist_ok=True)
        self._log_dir.mkdir(parents=True, exist_ok=True)
        if self._log_max_bytes:
            self._rotating = asyncio.create_task(self._rotate_logs(), name="rotate logs")
        firsts = [asyncio.get_running_loop().create_future() for _ in self.states]
        for state, first in zip(self.states, firsts, strict=True):
            keeper = asyncio.create_task(self._keep(state, first), name=f"keep {state.spec.name}")
            self._keepers.append(keeper)
        try:
            await asyncio.wait_for(asyncio.gather(*firsts), timeout_s)
        except TimeoutError:
            waiting = ", ".join(state.spec.name for state in self.states if not state.ready)
            raise ChildFailed(f"not ready after {timeout_s:.0f} s: {waiting}; see {self._log_dir}") from None

    async def stop(self) -> None:
        """Stop the children, last first: SIGTERM, then SIGKILL if a child does not end in time."""
        self._stopping.set()
        for state, keeper in reversed(list(zip(self.states, self._keepers, strict=False))):
            if state.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(state.pid, signal.SIGTERM)
            done, _ = await asyncio.wait({keeper}, timeout=state.spec.stop_timeout_s)
            if not done and state.pid is not None:
                logger.warning("killed a child that did not stop", child=state.spec.name, pid=state.pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(state.pid, signal.SIGKILL)
            await asyncio.wait({keeper})
        if self._rotating is not None:
            self._rotating.cancel()

    async def _rotate_logs(self) -> None:
        while True:
            for path in self._log_dir.glob("*.log"):
                try:
                    await asyncio.to_thread(rotate, path, max_bytes=self._log_max_bytes, backups=self._log_backups)
                except OSError as error:
                    logger.warning("a log can't begin anew", log=str(path), error=str(error))
            await asyncio.sleep(_LOGS_S)

    async def _keep(self, state: ChildState, first: asyncio.Future[None]) -> None:
        backoff = _FIRST_BACKOFF_S
        with contextlib.closing(Listener()) as listener:
            await self._keep_hearing(state, first, listener, backoff)

    async def _keep_hearing(
        self, state: ChildState, first: asyncio.Future[None], listener: Listener, backoff: float
    ) -> None:
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                how = _ending(await self._run_once(state, first, listener))
            except OSError as error:  # no process, no file
                how = f"could not be started ({error})"
            if self._stopping.is_set():
                return
            if state.spec.name in self._asked:
                self._asked.discard(state.spec.name)
                backoff = _FIRST_BACKOFF_S
                logger.info("a child is restarted, as requested", child=state.spec.name)
                continue
            if not first.done():
                first.set_exception(ChildFailed(f"{state.spec.name} {how} at its start: {self._last_words(state)}"))
                return
            backoff = _FIRST_BACKOFF_S if time.monotonic() - began > _STABLE_S else min(backoff * 2, _LAST_BACKOFF_S)
            state.restarts += 1
            logger.warning("a child ended and is restarted", child=state.spec.name, how=how, in_s=backoff)
            self._on_change(self.states)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), backoff)

    async def _run_once(self, state: ChildState, first: asyncio.Future[None], listener: Listener) -> int:
        ready_file = self._run_dir / f"{state.spec.name}.ready"
        ready_file.unlink(missing_ok=True)
        request = _restart_request(self._run_dir, state.spec.name)
        request.unlink(missing_ok=True)
        with (self._log_dir / f"{state.spec.name}.log").open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *state.spec.command,
                "--ready-file",
                str(ready_file),
                stdin=asyncio.subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **listener.environment(state.spec.watchdog_s)},
            )
        state.pid = process.pid
        if self._stopping.is_set():  # the stop was requested while the process was created
            process.terminate()
        ended = asyncio.create_task(process.wait())
        try:
            while not ended.done() and not state.ready:
                self._note_ready(state, ready_file, first)
                await asyncio.wait({ended}, timeout=0.02)
                if first.done() and not state.ready and request.exists():
                    await self._end(state, process, ended)
            while not ended.done():
                await asyncio.wait({ended}, timeout=_LOOK_S)
                if not ended.done():
                    await self._look(state, listener, process, ended)
                if not ended.done() and request.exists():
                    await self._end(state, process, ended)
            return await ended
        finally:
            state.pid, state.ready, state.silent_since = None, False, None
            self._on_change(self.states)

    async def _end(self, state: ChildState, process: asyncio.subprocess.Process, ended: asyncio.Task[int]) -> None:
        """End a child whose restart was requested: SIGTERM, then SIGKILL if it does not end in time."""
        self._asked.add(state.spec.name)
        state.ready = False
        self._on_change(self.states)
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait({ended}, timeout=state.spec.stop_timeout_s)
        if not ended.done():
            logger.warning("killed a child that did not stop", child=state.spec.name, pid=state.pid)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await asyncio.wait({ended})

    async def _look(
        self, state: ChildState, listener: Listener, process: asyncio.subprocess.Process, ended: asyncio.Task[int]
    ) -> None:
        """Log a late child, and end one that has been silent for too long."""
        silent_s = listener.silent_s()
        late = silent_s > _LATE_S
        if late and state.silent_since is None:
            logger.warning("a child gives no sign of life", child=state.spec.name, silent_s=round(silent_s, 1))
        if late is (state.silent_since is None):
            state.silent_since = time.time() - silent_s if late else None
            self._on_change(self.states)
        # A supervisor that is stopping gives its children time to end.
        if state.spec.watchdog_s and silent_s > state.spec.watchdog_s and not self._stopping.is_set():
            logger.error(
                "a child that gives no sign of life is ended", child=state.spec.name, silent_s=round(silent_s, 1)
            )
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGABRT)
            await asyncio.wait({ended}, timeout=_DUMP_S)
            if not ended.done():
                with contextlib.suppress(ProcessLookupError):
                    process.kill()

    def _note_ready(self, state: ChildState, ready_file: Path, first: asyncio.Future[None]) -> None:
        try:
            said: Mapping[str, Mapping[str, str]] = json.loads(ready_file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return
        state.ready = True
        state.addresses = dict(said["addresses"])
        if not first.done():
            first.set_result(None)
        self._on_change(self.states)

    def _last_words(self, state: ChildState) -> str:
        path = self._log_dir / f"{state.spec.name}.log"
        try:
            lines = path.read_text(errors="replace").splitlines() or ["it said nothing"]
        except OSError as error:
            lines = [f"its log cannot be read: {error.strerror}"]
        return f"{lines[-1].removeprefix('error: ')} (log: {path})"


def request_restart(run_dir: Path, child: str) -> None:
    """Ask the supervisor whose ``run_dir`` this is to restart a child, with the same command; it looks once a second.

    Raises OSError.
    """
    _restart_request(run_dir, child).touch()


def _restart_request(run_dir: Path, child: str) -> Path:
    return run_dir / f"{child}.restart"


def _ending(status: int) -> str:
    return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
