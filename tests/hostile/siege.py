"""Attacks on one face: who attacks, by which means, and how many attacks run beside each other."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

__all__ = ["Attack", "PeakMemory", "Siege", "Target", "statuses"]

_AT_ONCE: Final = 3
_LONGEST_WAIT_S: Final = 120.0
"""For the witness, beyond the time that a siege is to take."""
_KEPT_OPEN: Final = 400
"""Connections that attackers leave open: fewer than a face may have, more than it has witnesses."""
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


@dataclass
class Target:
    """A face, and what an attacker has: nothing, or the credentials of a user with few rights."""

    address: str
    """host:port"""
    ca: str
    user: str
    password: str
    public: str
    """A path that only users may see, for HTTP faces."""
    token: str = ""
    chance: random.Random = field(default_factory=random.Random)
    _open: deque[socket.socket] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def plain(self) -> socket.socket:
        """A connection without TLS, to a face that asks for it."""
        sock = socket.create_connection((self.host, self.port), 10)
        sock.settimeout(10)
        return sock

    def tls(self, *protocols: str) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=self.ca)
        context.check_hostname = False
        if protocols:
            context.set_alpn_protocols(protocols)
        sock = self.plain()
        try:
            return context.wrap_socket(sock)
        except BaseException:
            sock.close()
            raise

    def leave_open(self, sock: socket.socket) -> None:
        """As a client that has gone away without a word, or that waits. The oldest such connections are closed."""
        with self._lock:
            self._open.append(sock)
            oldest = self._open.popleft() if len(self._open) > _KEPT_OPEN else None
        if oldest is not None:
            oldest.close()

    def close(self) -> None:
        while self._open:
            self._open.popleft().close()

    def say(self, data: bytes, *, most: int = 1 << 20) -> bytes:
        """Send bytes over a TLS connection and read what comes until the face has nothing more to say or hangs up."""
        received = bytearray()
        with self.tls() as sock:
            sock.settimeout(2)
            with contextlib.suppress(OSError):  # who hangs up in the middle has said enough
                sock.sendall(data)
            with contextlib.suppress(OSError):
                while len(received) < most and (piece := sock.recv(65536)):
                    received += piece
                    sock.settimeout(0.3)
        return bytes(received)


def statuses(answer: bytes) -> list[int]:
    """The status of each HTTP answer in what a connection said."""
    return [int(status) for status in _STATUS.findall(answer)]


Attack = Callable[[Target], None]
"""One kind of attack, repeated at will. Raises AssertionError where somebody got in, or an answer is wrong."""


class Siege:
    """Attacks in random order, a few beside each other, for some time and each of them at least once.

    They go on until the witness has answers, too.
    """

    def __init__(self, target: Target, attacks: Sequence[Attack], seed: int) -> None:
        self._target, self._attacks = target, list(attacks)
        self._chance = random.Random(seed)
        self._next = threading.Lock()
        self._round: list[Attack] = []
        self._rounds = 0
        self.counts: Counter[str] = Counter()
        self.wrong: dict[str, str] = {}
        """By attack, the first time that it got somewhere."""
        self._times: list[tuple[float, float, str]] = []

    def run(self, seconds: float, witness_has_answers: Callable[[], bool]) -> None:
        end = time.monotonic() + seconds

        def is_over() -> bool:
            late_s = time.monotonic() - end
            return late_s > _LONGEST_WAIT_S or (late_s > 0 and witness_has_answers())

        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="attacker") as pool:
            for attacker in [pool.submit(self._attack_until, is_over) for _ in range(_AT_ONCE)]:
                attacker.result()
        self._target.close()

    def _attack_until(self, is_over: Callable[[], bool]) -> None:
        while (attack := self._draw(is_over)) is not None:
            name, began = attack.__name__, time.time()
            try:
                attack(self._target)
            except AssertionError as error:
                self.wrong.setdefault(name, str(error))
            except (OSError, ssl.SSLError):
                pass  # the face hung up, as it may
            except Exception as error:
                self.wrong.setdefault(name, f"{type(error).__name__}: {error}")
            self.counts[name] += 1
            self._times.append((began, time.time(), name))

    def during(self, at: float) -> list[str]:
        """Which attacks went on at a time, to know who kept the witness waiting."""
        return [name for began, ended, name in self._times if began <= at + 1 and ended >= at]

    def _draw(self, is_over: Callable[[], bool]) -> Attack | None:
        with self._next:
            if not self._round:
                if self._rounds and is_over():
                    return None
                self._round = self._chance.sample(self._attacks, len(self._attacks))
                self._rounds += 1
            elif self._rounds > 1 and is_over():
                return None
            return self._round.pop()


class PeakMemory(threading.Thread):
    """The most memory that a process and those that it started had together."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.bytes = self.idle = 0
        self._over = threading.Event()
        self._process = psutil.Process(pid)
        self.idle = self._now()

    def _now(self) -> int:
        total = 0
        for process in (self._process, *self._process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total

    def run(self) -> None:
        while not self._over.wait(0.05):
            with contextlib.suppress(psutil.NoSuchProcess):
                self.bytes = max(self.bytes, self._now())

    def stop(self) -> int:
        self._over.set()
        self.join()
        return self.bytes


def log_of(data: Path, component: str) -> str:
    return (data / "logs" / f"{component}.log").read_text(errors="replace")
