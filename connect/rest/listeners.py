"""The worker's HTTP servers, one per listener."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping

from starlette.types import ASGIApp

from connect.config.rest import Listener, RestConfig, tls_keys
from tidegate.kit.addresses import warn_of_open
from tidegate.kit.http import HttpServer
from tidegate.kit.tls import client_context, follow_identity, server_context

__all__ = ["Faces", "peer_tls"]


def peer_tls(properties: Mapping[str, str], keys: RestConfig) -> ssl.SSLContext | None:
    """The TLS context for other workers' https listeners; None if this worker has only http. Raises ConfigError."""
    if all(listener.scheme == "http" for listener in keys.listeners):
        return None
    settings = tls_keys(properties)
    # With an empty algorithm any name in a trusted certificate is accepted, as in Java.
    return client_context(settings, check_host=properties.get("ssl.endpoint.identification.algorithm", "https") != "")


class Faces:
    """``start`` opens all listeners in order; ``stop`` may be called after a failed start."""

    def __init__(self, properties: Mapping[str, str], keys: RestConfig) -> None:
        """Reads key stores and trust stores. Raises ConfigError."""
        self._keys = keys
        self._ordinary = [(listener, self._context(properties, listener, admin=False)) for listener in keys.listeners]
        self._admin = [(listener, self._context(properties, listener, admin=True)) for listener in keys.admin_listeners]
        self._tls = {False: tls_keys(properties), True: tls_keys(properties, admin=True)}
        self._following: list[asyncio.Task[None]] = []
        self._servers: list[HttpServer] = []
        self._ports: dict[Listener, int] = {}

    def _context(self, properties: Mapping[str, str], listener: Listener, *, admin: bool) -> ssl.SSLContext | None:
        if listener.scheme == "http":
            return None
        return server_context(tls_keys(properties, admin=admin), self._keys.client_auth)

    async def start(self, app: ASGIApp, admin: ASGIApp | None) -> dict[str, str]:
        """The addresses: the first as ``connect``, others as ``connect-https`` and so on, ``connect-admin`` for
        administration.
        """
        warn_of_open("connect", self._keys.open_listeners, "users.file or rest.extension.classes with users")
        addresses: dict[str, str] = {}
        for listener, context in self._ordinary:
            url = await self._serve(app, listener, context)
            addresses[f"connect-{listener.scheme}" if addresses else "connect"] = url
        for listener, context in self._admin if admin is not None else ():
            assert admin is not None
            addresses["connect-admin"] = await self._serve(admin, listener, context, admin=True)
        return addresses

    async def _serve(
        self, app: ASGIApp, listener: Listener, context: ssl.SSLContext | None, *, admin: bool = False
    ) -> str:
        tls = self._tls[admin]
        if context is not None and self._keys.keystore_reload and tls.ssl_keystore_location is not None:
            self._following.append(asyncio.create_task(follow_identity(context, tls), name="follow the key store"))
        server = HttpServer(app, listener.host, listener.port, tls=context)
        await server.start()
        self._servers.append(server)
        self._ports[listener] = server.port
        return server.url

    @property
    def advertised_port(self) -> int:
        """The advertised port, which is the actual one once it is started."""
        return self._keys.advertised_port or self._ports.get(self._keys.advertised, self._keys.advertised.port)

    async def stop(self) -> None:
        for task in self._following:
            task.cancel()
        for server in self._servers:
            await server.stop()
