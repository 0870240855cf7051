"""A server process of ours: started in its own session with its output in a file, and ended by its pid when we exit at
the latest.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import pwd
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from tidegate.kit import addresses

__all__ = ["ServerFailed", "ServerProcess", "answer_when", "as_user", "free_ports", "wait_until"]


class ServerFailed(Exception):
    """A server did not come up; the message ends with the last lines of its log."""


T = TypeVar("T")
_PORTS_FILE: Final = Path(tempfile.gettempdir()) / f"tidegate-test-ports-{os.geteuid()}"
_ports_lock: IO[bytes] | None = None
_ports: set[int] = set()
_claiming = threading.Lock()


def free_ports(count: int) -> list[int]:
    """Free loopback ports for servers that start later: until this process ends no other test process is given them."""
    with _claiming:
        return [_claimed_port() for _ in range(count)]


def _claimed_port() -> int:
    """Byte n of the file is locked by the process whose port n is; a lock ends with its process."""
    global _ports_lock
    _ports_lock = _ports_lock or _PORTS_FILE.open("ab")
    while True:
        (port,) = addresses.free_ports(["127.0.0.1"])
        if port in _ports:
            continue
        with contextlib.suppress(BlockingIOError, PermissionError):  # POSIX names either for a lock that another holds
            fcntl.lockf(_ports_lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            _ports.add(port)
            return port


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 120, pause_s: float = 0.02) -> None:
    """Ask ``condition`` until it is true; raises TimeoutError that names ``what``."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(pause_s)


def answer_when(holds: Callable[[T], bool], ask: Callable[[], T], what: str) -> T:
    """Like ``wait_until``, for callers that need the answer that was accepted, not a later one; raises TimeoutError
    that ends with the last answer.
    """
    answers: list[T] = []

    def turn() -> bool:
        answers[:] = [ask()]
        return holds(answers[0])

    try:
        wait_until(turn, what)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; the last answer was {answers}") from None
    return answers[0]


def as_user(name: str | None) -> dict[str, Any]:
    """Arguments for ``subprocess`` that step down to a user; none for None. Only root may step down."""
    if name is None:
        return {}
    entry = pwd.getpwnam(name)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


class ServerProcess:
    """A process with a readiness check. ``start`` may follow ``stop`` or ``kill``: the same command runs again."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
        user: str | None = None,
        stop_signal: signal.Signals = signal.SIGTERM,
        timeout_s: float = 300,
    ) -> None:
        self.name, self.log = name, log
        self._command, self._ready, self._timeout_s = list(command), ready, timeout_s
        self._identity, self._stop_signal = as_user(user), stop_signal
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def move(self, inside: Callable[[Sequence[str]], list[str]]) -> None:
        """Run the command by another one, such as one that puts it into a namespace; what that is, needs our own user."""
        if self._identity:
            ids = ("--reuid", str(self._identity["user"]), "--regid", str(self._identity["group"]), "--clear-groups")
            self._command, self._identity = ["setpriv", *ids, "--", *self._command], {}
        self._command = inside(self._command)

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start and wait until ready; raises ServerFailed with the end of the log, the process gone."""
        self.begin()
        self.await_ready()

    def begin(self) -> None:
        """Start, and leave ``await_ready`` for later: where several wait for each other."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
                **self._identity,
            )
        atexit.register(self.kill)
        self._guard = _guard(self._process.pid)

    def await_ready(self) -> None:
        assert self._process is not None, f"{self.name} was not started"
        try:
            wait_until(self._ready_or_dead, f"{self.name} ready", self._timeout_s)
        except TimeoutError as error:
            self.kill()
            raise ServerFailed(f"{error}\n{self._tail()}") from None
        if not self.running:
            status = self._process.returncode
            raise ServerFailed(f"{self.name} ended with status {status} at its start\n{self._tail()}")

    def _ready_or_dead(self) -> bool:
        return not self.running or self._ready()

    def stop(self, timeout_s: float = 60) -> None:
        """Ask it to end, and end it if it does not."""
        self._end(self._stop_signal, timeout_s)

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        self._end(signal.SIGKILL, 60)

    def _end(self, number: signal.Signals, timeout_s: float) -> None:
        atexit.unregister(self.kill)
        self._dismiss_guard()
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _dismiss_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.kill()
            guard.communicate()

    def _tail(self, lines: int = 15) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"--- end of {self.log}\n" + "\n".join(text.splitlines()[-lines:])


def _guard(pid: int) -> subprocess.Popen[bytes]:
    """A shell that kills the server when we are gone, however that came: its standard input ends with us."""
    return subprocess.Popen(
        ["sh", "-c", f"read -r _; kill -9 {pid}"],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
