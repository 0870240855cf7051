"""The events service: assembles log, registry, fronts and listeners, and starts and stops them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from starlette.types import ASGIApp

from broker.client import ClientConfig
from events.access import Access
from events.access.grants import Grants
from events.access.ids import user_id
from events.bulk.jobs import BulkJobs
from events.bus.bus import EventBus, Stale
from events.bus.published_ids import PublishedIds
from events.bus.publishing import Publisher
from events.channels.channels import Channels
from events.channels.relay import ChannelRelays
from events.config import EventsConfig
from events.errors import BusUnavailable
from events.fronts.admin.definitions import DefinitionsFront
from events.fronts.admin.entities import EntitiesFront
from events.fronts.admin.health import HealthFront
from events.fronts.admin.subscribers import SubscribersFront
from events.fronts.cometd.front import CometdFront
from events.fronts.login.authorize import AuthorizeFront
from events.fronts.login.oauth import OAuthFront
from events.fronts.login.soap import SoapFront
from events.fronts.rest.bulk import BulkFront
from events.fronts.rest.composite import CompositeFront
from events.fronts.rest.events import RestFront
from events.fronts.rest.tooling import (
    ChannelMemberRecords,
    ChannelRecords,
    ManagedSubscriptionRecords,
    ToolingFront,
    ToolingRecords,
)
from events.limits.limits import Limits
from events.metrics import EventMetrics
from events.server.http import Front, application
from events.store.catalog import Catalog, SchemaStore, TopicStore
from events.store.kafka import KafkaLog
from events.store.registration import RegistrySchemas
from events.store.state import EventState, StateLog
from events.subscriptions.managed import ManagedSubscriptions
from events.triggers.monitor import GroupPositions, Monitor
from events.triggers.states import TriggerStates
from registry.client import RegistryClient
from tidegate.kit.addresses import host_port
from tidegate.kit.certificates import CA_FILE, TlsFiles, certificates
from tidegate.kit.http import HttpServer
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from events.server.grpc_listeners import GrpcServer

__all__ = ["EventLogService", "EventsServer"]

logger = get_logger(__name__)

_FIRST_RETRY_S: Final = 0.1
_LAST_RETRY_S: Final = 2.0


class EventLogService(StateLog, TopicStore, Protocol):
    """A log that can create topics, with a connection to open and close."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


def _clock_ms() -> int:
    return time.time_ns() // 1_000_000


class EventsServer:
    """The events service as a kit ``Service``. The log and the registry may start later."""

    def __init__(
        self,
        config: EventsConfig,
        *,
        event_log: EventLogService | None = None,
        schemas: SchemaStore | None = None,
    ) -> None:
        """``event_log`` and ``schemas`` replace the configured Kafka and registry."""
        self._config = config
        self.metrics = EventMetrics()
        self.access = Access(config, _clock_ms)
        self.limits = Limits(config, _clock_ms)
        client = ClientConfig(config.bootstrap_servers, config.kafka)
        publish_timeout_s = config.publish_timeout_ms / 1000
        self.log = event_log or KafkaLog(client, publish_timeout_s=publish_timeout_s)
        self._registry = RegistryClient.from_properties(config.registry_settings)
        store = schemas or RegistrySchemas(self._registry)
        self.catalog = Catalog(store, self.log, refresh_ms=config.definition_refresh_ms)
        self.bus = EventBus(
            self.log,
            clock_ms=_clock_ms,
            tail_bytes=config.tail_bytes,
            on_skipped=lambda topic: self.metrics.skipped.labels(topic).inc(),
        )
        self.state = EventState(self.log, _clock_ms)
        self._positions = GroupPositions(client)
        self.managed = ManagedSubscriptions(self.state, self.bus)
        self.channels = Channels(self.state, self.catalog, self.log, self.log, config.retention_ms)
        changed_by = user_id(config.user)
        self._relays = None if event_log else ChannelRelays(client, self.channels, self.catalog, commit_user=changed_by)
        self._ids = PublishedIds(config.data_path / "published-ids.sqlite", self.log, _clock_ms)
        self._publisher = Publisher(
            self.catalog, self.bus, self.metrics, _clock_ms, self._ids, self.limits, timeout_s=publish_timeout_s
        )
        users = self.access.user
        self._jobs = BulkJobs(config.data_path / "bulk", self.catalog, self._publisher, users, _clock_ms)
        self._cometd = CometdFront(
            self.catalog, self.channels, self.bus, self.access, config, self.metrics, self.limits
        )
        self._http: list[HttpServer] = []
        self._grpc: GrpcServer | None = None

    async def start(self) -> Mapping[str, str]:
        """Connect and listen. Raises LaterFormat for a log that a later release has written to.

        Returns the addresses by name, and under ``ca`` the CA file that clients of the TLS addresses need.
        """
        config = self._config
        await self._connect()
        self.state.start()
        try:
            await self.state.take_format()
        except BusUnavailable as error:
            logger.warning("the state of the events service cannot be read yet; trying on", reason=str(error))
        self._jobs.start()
        self.limits.start()
        if self._relays is not None:
            self._relays.start()
        hosts = [host_port(address)[0] for address in (config.https_listen, config.pubsub_listen)]
        tls = certificates(config.tls_path, hosts)
        app = self._application()
        self._cometd.start()
        plain = HttpServer(app, *host_port(config.http_listen), tls=tls if config.http_tls else None)
        secure = HttpServer(app, *host_port(config.https_listen), tls=tls)
        for server in (plain, secure):
            await server.start()
            self._http.append(server)
            self.access.audiences.add(server.url)
        pubsub, pubsub_plain = await self._start_grpc(tls)
        return {
            "events": plain.url,
            "events-tls": secure.url,
            "pubsub": pubsub,
            **({"pubsub-plain": pubsub_plain} if pubsub_plain is not None else {}),
            "ca": str((config.tls_path / CA_FILE).resolve()),
        }

    async def stop(self) -> None:
        """Finish running requests, then end subscribers, then close the log."""
        await self._cometd.stop()
        await self._jobs.stop()
        if self._grpc is not None:
            await self._grpc.stop()
        for server in self._http:
            await server.stop()
        if self._relays is not None:
            await self._relays.stop()
        await self.state.stop()
        await self.bus.close()
        with contextlib.suppress(BusUnavailable):
            await self.log.stop()
        await self._positions.stop()
        await self.limits.stop()
        self._registry.close()
        self._ids.close()

    async def _connect(self) -> None:
        """Connect to the log, however long that takes; it may start later."""
        pause_s, said = _FIRST_RETRY_S, False
        while True:
            try:
                await self.log.start()
                return
            except BusUnavailable as error:
                if not said:
                    logger.warning("the log cannot be reached yet; trying on", reason=str(error))
                    said = True
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LAST_RETRY_S)

    def _application(self) -> ASGIApp:
        return application(
            self.metrics, self.limits.requests, self.fronts(), direct=self._cometd, browsers=self._config
        )

    def fronts(self) -> Sequence[Front]:
        """The HTTP fronts, in the order in which they are tried."""
        rest = RestFront(self.catalog, self._publisher, self.access, self._shown_limits, self.channels.entities)
        grants = Grants(self.access)
        return (
            self._cometd,  # first, because routes are tried in order and most requests are its
            rest,
            CompositeFront(self._publisher, self.access, rest.routes),
            BulkFront(self._jobs, self.access),
            SoapFront(self.access, self._publisher),
            OAuthFront(self.access, grants),
            AuthorizeFront(self.access, grants),
            DefinitionsFront(self.catalog, self.access, self._config.retention_ms),
            EntitiesFront(self.channels, self.access),
            SubscribersFront(self.access, Monitor(TriggerStates(self.state), self._positions)),
            ToolingFront(self.access, self._tooling()),
            HealthFront(self.state),
        )

    def _tooling(self) -> Mapping[str, ToolingRecords]:
        return {
            "ManagedEventSubscription": ManagedSubscriptionRecords(self.managed),
            "PlatformEventChannel": ChannelRecords(self.channels),
            "PlatformEventChannelMember": ChannelMemberRecords(self.channels),
        }

    def _shown_limits(self) -> Mapping[str, Mapping[str, int]]:
        return self.limits.shown(self._cometd.sessions)

    async def _start_grpc(self, tls: TlsFiles) -> tuple[str, str | None]:
        from events.fronts.pubsub.service import PubSubFront
        from events.server.grpc_listeners import GrpcServer

        front = PubSubFront(
            self.catalog,
            self.bus,
            self._publisher,
            self.access,
            self.metrics,
            self.limits,
            channels=self.channels,
            managed=self.managed,
            keepalive_s=self._config.keepalive_ms / 1000,
            stale=Stale(self._config.stale_replay),
        )
        self._grpc = GrpcServer(front)
        plain = self._config.pubsub_plain_listen
        return await self._grpc.start(host_port(self._config.pubsub_listen), host_port(plain) if plain else None, tls)
