"""Keepalives of a process, in systemd's protocol (``sd_notify``): READY=1 once it serves, then WATCHDOG=1 each second
from the event loop, so that a process with a hanging loop is noticed.

``tidegate up`` receives them from its components; ``tidegate serve`` under systemd sends them to systemd
(``Type=notify``, ``WatchdogSec=``).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["Listener", "Notifier"]

_PERIOD_S: Final = 1.0
_SOCKET: Final = "NOTIFY_SOCKET"
_LIMIT: Final = "WATCHDOG_USEC"


class Notifier:
    """Sends keepalives to the parent process; does nothing if that does not listen."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get(_SOCKET, "")
        self._period_s = _PERIOD_S
        with contextlib.suppress(ValueError):
            # Twice per timeout, as systemd's documentation recommends.
            self._period_s = min(_PERIOD_S, int(environment.get(_LIMIT, "")) / 2e6)

    def say(self, words: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)  # a parent that does not read must not block us
            sock.sendto(words.encode(), address)

    async def keep_saying(self) -> None:
        """Runs until it is cancelled."""
        while self._address:
            self.say("WATCHDOG=1")
            await asyncio.sleep(self._period_s)


class Listener:
    """Receives the keepalives of one child, across its restarts."""

    def __init__(self) -> None:
        # A socket's path is limited to about a hundred characters.
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-"))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(self._folder / "notify"))
        self._heard: float | None = None

    def environment(self, limit_s: float) -> dict[str, str]:
        """For the child, which sends READY=1 first: until then no keepalive is expected."""
        self._drain()
        self._heard = None
        return {_SOCKET: str(self._folder / "notify"), _LIMIT: str(int((limit_s or 60) * 1e6))}

    def silent_s(self) -> float:
        """Time since the child's last keepalive; 0 before its first."""
        if self._drain():
            self._heard = time.monotonic()
        return 0.0 if self._heard is None else time.monotonic() - self._heard

    def _drain(self) -> bool:
        heard = False
        with contextlib.suppress(OSError):
            while True:
                words = self._socket.recv(4096).decode(errors="replace").splitlines()
                heard = heard or "WATCHDOG=1" in words or "READY=1" in words
        return heard

    def close(self) -> None:
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)
