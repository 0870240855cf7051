"""HTTP with ``requests`` that another thread can abort."""

from __future__ import annotations

import socket
import ssl
import threading
import weakref
from contextlib import suppress
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from tidegate.kit.requests_tls import TlsAdapter

__all__ = ["AbortableAdapter", "abort", "abortable_session"]


def abortable_session(tls: ssl.SSLContext | None = None) -> requests.Session:
    """A session for ``abort``, with its own TLS context if one is passed."""
    session = requests.Session()
    session.mount("http://", AbortableAdapter())
    session.mount("https://", AbortableAdapter() if tls is None else _AbortableTlsAdapter(tls))
    return session


def abort(session: requests.Session) -> None:
    """Make running requests of a session, and all later ones, fail. Thread-safe."""
    for adapter in session.adapters.values():
        if isinstance(adapter, AbortableAdapter):
            adapter.abort()


class AbortableAdapter(HTTPAdapter):
    """Tracks its connections, because ``requests`` itself can't abort a call that waits for an answer."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._live: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._aborted = False
        super().__init__(*arguments, **options)

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            for connection in list(self._live):
                if (sock := getattr(connection, "sock", None)) is not None:
                    with suppress(OSError):  # it was closed in between
                        # Not SSLSocket's own method, which removes the TLS state from under a reader.
                        socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def _connecting(self, connection: Any) -> None:
        with self._lock:
            if self._aborted:
                raise ConnectionAbortedError("the connection was given up, as its task had to end")
            self._live.add(connection)

    def _classes(self) -> dict[str, type]:
        """Connection pools whose connections are tracked before they connect."""
        adapter = self

        def known(pool: type[HTTPConnectionPool]) -> type:
            class Connection(pool.ConnectionCls):  # type: ignore[misc, name-defined]
                def connect(self) -> None:
                    adapter._connecting(self)
                    super().connect()
                    adapter._connecting(self)

            return type(pool.__name__, (pool,), {"ConnectionCls": Connection})

        return {"http": known(HTTPConnectionPool), "https": known(HTTPSConnectionPool)}

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = self._classes()

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        is_new = proxy not in self.proxy_manager
        manager = super().proxy_manager_for(proxy, **options)
        if is_new:
            manager.pool_classes_by_scheme = self._classes()
        return manager


class _AbortableTlsAdapter(AbortableAdapter, TlsAdapter):
    """Combines both adapters."""
