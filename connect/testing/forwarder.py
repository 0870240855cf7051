"""A loopback forwarder between a connector and its server, with which a test delays or cuts the traffic."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

__all__ = ["Forwarder"]


class Forwarder:
    """Forwards bytes in both directions, until ``hold`` or ``cut``. Listens on ``port`` of 127.0.0.1."""

    def __init__(self, target_port: int) -> None:
        self._target = ("127.0.0.1", target_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._clients: list[socket.socket] = []
        self._turn = 0
        self._refusing = False
        self.held = threading.Event()
        """Set once a client has sent bytes that are held."""
        threading.Thread(target=self._accept, name="forwarder", daemon=True).start()

    def hold(self) -> None:
        """Hold clients' bytes from now on."""
        self.held.clear()
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    def cut(self, *, refuse: bool = False) -> None:
        """Close all connections; with ``refuse`` also further ones, until ``mend``."""
        with self._lock:
            self._refusing = refuse
            for each in self._sockets:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        self._open.set()

    def cut_next(self) -> None:
        """Close one connection, the next one with each call, in the order of creation."""
        with self._lock:
            open_now = [each for each in self._clients if each in self._sockets]
            if open_now:
                self._turn += 1
                with contextlib.suppress(OSError):
                    open_now[self._turn % len(open_now)].shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        with self._lock:
            self._refusing = False

    def close(self) -> None:
        self.cut(refuse=True)
        self._listener.close()

    @classmethod
    @contextlib.contextmanager
    def to(cls, target_port: int) -> Iterator[Forwarder]:
        made = cls(target_port)
        try:
            yield made
        finally:
            made.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
                continue
            try:
                server = socket.create_connection(self._target, 60)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self._lock:
                self._sockets |= {client, server}
                self._clients = [each for each in self._clients if each in self._sockets] + [client]
            for source, sink, waits in ((client, server, True), (server, client, False)):
                threading.Thread(target=self._pass_on, args=(source, sink, waits), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, waits: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if waits and not self._open.is_set():
                    self.held.set()
                    self._open.wait()
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._lock:
            if source not in self._sockets:
                return  # the other direction has closed both
            self._sockets -= {source, sink}
        source.close()
        sink.close()
