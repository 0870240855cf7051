"""The registry's listeners: one HTTP server each, with TLS if the scheme is https."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping

from starlette.types import ASGIApp

from registry.server.security.config import Listener, SecurityConfig
from tidegate.kit.http import HttpServer
from tidegate.kit.tls import TlsKeys, follow_identity, server_context

__all__ = ["Faces"]


class Faces:
    """All listeners of one application. ``start`` opens them in order; ``stop`` may be called after a failed start."""

    def __init__(self, keys: SecurityConfig) -> None:
        """Reads key stores and trust stores. Raises ConfigError."""
        self._listeners: list[tuple[Listener, ssl.SSLContext | None]] = []
        self._reloading: list[tuple[ssl.SSLContext, TlsKeys]] = []
        for listener in keys.listeners:
            context = None
            if listener.scheme == "https":
                tls = keys.tls_of(listener)
                context = server_context(tls, keys.asks_clients)
                if keys.keystore_reload and tls.ssl_keystore_location is not None:
                    self._reloading.append((context, tls))
            self._listeners.append((listener, context))
        self._servers: list[HttpServer] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, app: ASGIApp) -> Mapping[str, str]:
        """The addresses by name: the first as ``registry``, further ones as ``registry-<listener>``."""
        addresses: dict[str, str] = {}
        for listener, context in self._listeners:
            server = HttpServer(app, listener.host, listener.port, tls=context)
            await server.start()
            self._servers.append(server)
            addresses[f"registry-{listener.name}" if addresses else "registry"] = server.url
        self._tasks = [asyncio.create_task(follow_identity(context, tls)) for context, tls in self._reloading]
        return addresses

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for server in self._servers:
            await server.stop()
