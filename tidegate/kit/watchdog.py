"""Signs of life of a process, in systemd's protocol (``sd_notify``): READY=1 once it serves, then WATCHDOG=1 each second from the event
loop, so that a process whose loop hangs falls silent.

``tidegate up`` listens to its components so; ``tidegate serve`` under systemd speaks to that (``Type=notify``, ``WatchdogSec=``).
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
    """Tells the process that started this one that it is alive; says nothing where nobody listens."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get(_SOCKET, "")
        self._period_s = _PERIOD_S
        with contextlib.suppress(ValueError):
            # Twice in the time after which it would be taken for dead, as systemd's documentation asks.
            self._period_s = min(_PERIOD_S, int(environment.get(_LIMIT, "")) / 2e6)

    def say(self, words: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)  # who does not read must not stop us
            sock.sendto(words.encode(), address)

    async def keep_saying(self) -> None:
        """Until it is cancelled."""
        while self._address:
            self.say("WATCHDOG=1")
            await asyncio.sleep(self._period_s)


class Listener:
    """Hears one child, over all its restarts."""

    def __init__(self) -> None:
        # A socket's path may have some hundred characters only.
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-"))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(str(self._folder / "notify"))
        self._heard: float | None = None

    def environment(self, limit_s: float) -> dict[str, str]:
        """For the child, which says READY=1 first: until then nothing is asked of it."""
        self._drain()
        self._heard = None
        return {_SOCKET: str(self._folder / "notify"), _LIMIT: str(int((limit_s or 60) * 1e6))}

    def silent_s(self) -> float:
        """For how long the child has given no sign of life; 0 before its first."""
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
