"""Our broker for tests: in a thread of this process, or in a process that can be killed."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from broker.server import BrokerServer, serve
from tests.servers.process import ServerProcess, free_ports

__all__ = ["BrokerProcess", "BrokerThread", "exchange", "receive_frame", "settings"]


def settings(directory: Path, port: int, **given: str) -> dict[str, str]:
    """Broker properties that make tests quick; given keys have ``_`` for ``.``."""
    return {
        "log.dirs": str(directory),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "metrics.listen": "127.0.0.1:0",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "4",
        **{name.replace("_", "."): value for name, value in given.items()},
    }


class BrokerThread:
    """A broker on an event loop of its own. ``server`` may be looked at, and called by way of ``call``."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="broker", daemon=True)
        self.server: BrokerServer
        self.addresses: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        self.server = serve(self._properties)
        self.addresses = self._run(self.server.start())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine):  # type: ignore[no-untyped-def]
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    @property
    def bootstrap_servers(self) -> str:
        return self.addresses["broker"]

    @property
    def port(self) -> int:
        return int(self.bootstrap_servers.rpartition(":")[2])


class BrokerProcess:
    """A broker in a process, on the same port and directory each time it is started."""

    def __init__(self, directory: Path, **given: str) -> None:
        (self.port,) = free_ports(1)
        properties = settings(directory / "data", self.port, **given)
        self.process = ServerProcess(
            "broker",
            [sys.executable, "-m", "tests.support.broker", json.dumps(properties)],
            log=directory / "broker.log",
            ready=self._answers,
        )

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()


def receive_frame(sock: socket.socket) -> bytes:
    """One answer without its length; empty when the broker closed the connection."""
    head = _receive(sock, 4)
    return _receive(sock, struct.unpack(">i", head)[0]) if len(head) == 4 else b""


def exchange(sock: socket.socket, frame: bytes) -> bytes:
    """Send one request, return the answer (empty: the connection was closed)."""
    sock.sendall(struct.pack(">i", len(frame)) + frame)
    return receive_frame(sock)


def _receive(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            part = sock.recv(size - len(data))
        except ConnectionResetError:
            return bytes()
        if not part:
            break
        data += part
    return bytes(data)


if __name__ == "__main__":
    from tidegate.kit.service import run

    sys.exit(run(serve(json.loads(sys.argv[1]))))
