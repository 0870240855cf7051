"""The console as a service."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tidegate.clients.credentials import Credentials
from tidegate.console.application import application
from tidegate.console.config import ConsoleConfig
from tidegate.console.console import Console
from tidegate.console.faces import Faces
from tidegate.console.group_samples import GroupSampler
from tidegate.console.samples import Sampler
from tidegate.console.sessions import Sessions
from tidegate.kit.addresses import host_port, warn_of_open
from tidegate.kit.errors import ConfigError, Problem, UsageError
from tidegate.kit.http import HttpServer
from tidegate.kit.metrics import Metrics
from tidegate.kit.tls import follow_identity, server_context
from tidegate.kit.users import UsersFile

__all__ = ["ConsoleServer"]

_CALLS: Final = 16
"""The most calls to faces at one time. Further requests wait."""


class ConsoleServer:
    """A ``tidegate.kit.service.Service``. It starts without the faces that it shows; pages say which does not answer."""

    def __init__(self, config: ConsoleConfig) -> None:
        """Raises ConfigError for files that cannot be used."""
        self._config = config
        self._tls = server_context(config) if config.ssl_keystore_location or config.ssl_keystore_key else None
        self.console = Console(config, Sessions(config.session_minutes * 60.0), users=_users(config))
        self._server: HttpServer | None = None
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> Mapping[str, str]:
        config, console = self._config, self.console
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_CALLS, thread_name_prefix="console"))
        if (config.connect_url or config.broker_metrics_url) and (config.monitor_user or not config.asks_login):
            console.sampler = Sampler(Faces(config, _monitor(config)))
            console.sampler.start()
        if config.monitor_user or not config.asks_login:
            console.groups = GroupSampler(Faces(config, _monitor(config)))
            console.groups.start()
        warn_of_open("console", config.open_listeners, "users.file or authentication.method")
        self._server = HttpServer(application(console, Metrics()), *host_port(config.listen), tls=self._tls)
        await self._server.start()
        if self._tls is not None and config.keystore_reload and config.ssl_keystore_location:
            self._following = asyncio.create_task(follow_identity(self._tls, config))
        return {"console": self._server.url}

    async def stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
        await self.console.queries.stop()
        for sampler in (self.console.sampler, self.console.groups):
            if sampler is not None:
                await sampler.stop()
        if self._server is not None:
            await self._server.stop()


def _users(config: ConsoleConfig) -> UsersFile | None:
    if config.users_file is None:
        return None
    try:
        return UsersFile(Path(config.users_file))
    except UsageError as error:
        raise ConfigError([Problem("users.file", f"users.file: {error}")]) from error


def _monitor(config: ConsoleConfig) -> Credentials | None:
    if not config.monitor_user:
        return None
    password = config.monitor_password
    return Credentials(config.monitor_user, "" if password is None else password.reveal())
