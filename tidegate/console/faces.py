"""The faces that the console talks to, as one user: Connect, the registry, the events service and Kafka."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from tidegate.clients.broker_metrics import records_in
from tidegate.clients.credentials import Credentials
from tidegate.clients.rest import LoginRefused, NotAllowed, Rest
from tidegate.clients.worker import Worker
from tidegate.console.config import ConsoleConfig
from tidegate.console.listing import Listed, listed_connectors, totals
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from broker.client import ClientConfig, GroupListing
    from events.client import EventsClient
    from registry.client import RegistryClient

__all__ = ["AsyncRest", "Faces"]

T = TypeVar("T")

_KEPT_S: Final = 2.0
_KEPT_TIMES: Final = 4
_LONGEST_KEPT_S: Final = 60.0
"""How long lists that several pages need are kept, in seconds."""
_LOGIN_S: Final = 300.0
"""How long a login at the events service is used, in seconds; its sessions last longer."""
_REST_S: Final = 95.0
"""The time for a call; a validation may open connections."""


class AsyncRest:
    """A ``tidegate.clients.rest.Rest`` whose calls run in threads."""

    def __init__(self, rest: Rest) -> None:
        self.blocking = rest

    async def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Raises TidegateError with the face's words; NotThere, LoginRefused and NotAllowed for 404, 401 and 403."""
        return await self.run(lambda rest: rest.call(method, path, body, **query))

    async def run(self, work: Callable[[Rest], T]) -> T:
        """``work`` in a thread, with the client that blocks. Raises what it raises."""
        try:
            return await asyncio.to_thread(work, self.blocking)
        except LoginRefused as error:
            raise LoginRefused(
                f"The {self.blocking.what} at {self.blocking.url} refuses this login. The console's key authentication.method=BASIC "
                f"asks for one; with a login, this user is not one of that {self.blocking.what}'s"
            ) from error


class Faces:
    """Clients of the configured faces with the credentials of one user, so that the rights are those of the faces.

    The same object serves all requests of a user. Lists are kept for two seconds or more (``kept``).
    """

    def __init__(self, config: ConsoleConfig, credentials: Credentials | None, *, is_admin: bool = True) -> None:
        self._config = config
        self.is_admin = is_admin
        """Whether the user has every right; it changes with the file of users."""
        known = credentials or Credentials()
        self._credentials = Credentials(known.user, known.password, config.ssl_truststore_location or "")
        self._events_client: tuple[float, EventsClient] | None = None
        self._kept: dict[Hashable, asyncio.Future[Any]] = {}
        self.connect = AsyncRest(Worker(config.connect_url, self._credentials, timeout_s=_REST_S))
        self.registry = AsyncRest(Rest(config.registry_url, "schema registry", self._credentials, timeout_s=_REST_S))

    @property
    def user(self) -> str:
        return self._credentials.user

    @property
    def kafka(self) -> ClientConfig:
        """Settings for ``broker.client.Admin`` and its like. Raises NotAllowed."""
        from broker.client import ClientConfig

        settings = dict(self._config.kafka)
        if settings.get("security.protocol", "").startswith("SASL") and self._credentials.user:
            if self._config.kafka_login == "user":
                login = self._credentials.kafka
                settings["sasl.jaas.config"] = login["sasl.jaas.config"]
                settings.setdefault("sasl.mechanism", login["sasl.mechanism"])
            elif not self.is_admin:
                raise NotAllowed(
                    "This Kafka has users of its own, and the console is one of them for everybody (kafka.client.login=configured): "
                    f"only users with the right admin see it, and {self._credentials.user} lacks it"
                )
        return ClientConfig(self._config.bootstrap_servers, settings | {"client.id": "console"})

    def registry_client(self) -> RegistryClient:
        """A client that blocks, for ``asyncio.to_thread``. Close it. Raises UsageError without a registry."""
        from registry.client import RegistryClient

        if not self._config.registry_url:
            raise UsageError("The console knows no schema registry: schema.registry.url names it")
        return RegistryClient.from_properties(self.registry_properties)

    def events_client(self) -> EventsClient:
        """A client of the events service, which blocks, so within ``asyncio.to_thread``. It is logged in for some minutes."""
        from events.client import EventsClient

        until, client = self._events_client or (0.0, None)
        if client is None or time.monotonic() > until:
            config, own = self._config, self._credentials
            login = (
                (config.events_user, config.events_password.reveal())
                if config.events_user
                else (own.user, own.password)
            )
            client = EventsClient(config.events_url, user=login[0], password=login[1], ca=own.ca or None)
            self._events_client = (time.monotonic() + _LOGIN_S, client)
        return client

    @property
    def registry_properties(self) -> dict[str, str]:
        """The settings of a registry client; empty without a registry."""
        url = self._config.registry_url
        return {**self._credentials.registry, "schema.registry.url": url} if url else {}

    @property
    def has_registry(self) -> bool:
        return bool(self._config.registry_url)

    @property
    def has_connect(self) -> bool:
        return bool(self._config.connect_url)

    async def records_in(self) -> float | None:
        """How many records the broker has appended since it started; None if no metrics tell it."""
        url = self._config.broker_metrics_url
        return await asyncio.to_thread(records_in, url, self._credentials) if url else None

    async def topics(self) -> list[str]:
        """The names of all topics, internal ones too. Of the last two seconds."""

        async def ask() -> list[str]:
            from broker.client import Admin

            async with Admin(self.kafka) as admin:
                return await admin.list_topics(internal=True)

        return await self.kept("topics", ask)

    async def groups(self) -> list[GroupListing]:
        """All groups, by name. Of the last two seconds."""

        async def ask() -> list[GroupListing]:
            from broker.client import Admin

            async with Admin(self.kafka) as admin:
                return sorted(await admin.list_groups(), key=lambda group: group.group_id)

        return await self.kept("groups", ask)

    async def connectors(self) -> dict[str, Listed]:
        """Every connector that the user may see, in short. Of the last two seconds."""
        return await self.kept("connectors", lambda: self.connect.run(listed_connectors))

    async def totals(self) -> dict[str, dict[str, Any]]:
        """The sums of each connector's counts; empty for Kafka Connect's workers. Of the last two seconds."""

        async def ask() -> dict[str, dict[str, Any]]:
            workers = {worker for listed in (await self.connectors()).values() for worker in listed.workers}
            return await self.connect.run(lambda rest: totals(rest, workers))

        return await self.kept("totals", ask)

    async def previewed(self, config: Mapping[str, str]) -> Any:
        """The worker's answer to what a connector of this configuration would do. Raises NotThere for Kafka Connect's own worker."""
        plugin = quote(config.get("connector.class", ""), safe="")
        return await self.connect.call("PUT", f"/tidegate/v1/connector-plugins/{plugin}/config/preview", dict(config))

    async def kept(self, name: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The result of ``ask`` of the last two seconds, or a new one; requests at one time share it.

        A result that took long to get is kept for four times as long, a minute at most.
        """
        known = self._kept.get(name)
        if known is None:
            began = time.monotonic()
            known = self._kept[name] = asyncio.ensure_future(ask())
            known.add_done_callback(lambda asked: self._keep(name, asked, time.monotonic() - began))
        result: T = await asyncio.shield(known)
        return result

    def _keep(self, name: Hashable, asked: asyncio.Future[Any], took_s: float) -> None:
        """Lists of thousands are large: they go when they are old, and errors at once."""
        if asked.cancelled() or asked.exception() is not None:
            self._drop(name, asked)
        else:
            kept_s = min(max(_KEPT_S, _KEPT_TIMES * took_s), _LONGEST_KEPT_S)
            asyncio.get_running_loop().call_later(kept_s, self._drop, name, asked)

    def _drop(self, name: Hashable, asked: asyncio.Future[Any]) -> None:
        if self._kept.get(name) is asked:
            del self._kept[name]

    def forget(self) -> None:
        """After a change: the next question is answered anew."""
        self._kept.clear()
