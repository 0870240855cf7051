"""The registry as a service: opens the schema log, however long that takes, then answers HTTP."""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import Mapping

from broker.client import ClientConfig
from registry.domain.registry import Registry
from registry.errors import StoreError, StoreMisconfigured
from registry.log.cluster.election import Election
from registry.log.cluster.forwarding import Forwarder
from registry.log.cluster.identity import Identity
from registry.log.cluster.replica import Replica
from registry.log.kafka import KafkaLog
from registry.log.store import Store
from registry.metrics import RegistryMetrics
from registry.server.app import application
from registry.server.config import RegistryConfig
from registry.server.security.faces import Faces
from registry.server.security.users import guards
from tidegate.kit.addresses import warn_of_open
from tidegate.kit.logs import get_logger
from tidegate.kit.tls import client_context

__all__ = ["RegistryServer"]

logger = get_logger(__name__)

_OWN_STORE_KEYS = frozenset({"bootstrap.servers", "topic", "topic.replication.factor", "timeout.ms"})
_FIRST_RETRY_S, _LAST_RETRY_S = 0.1, 2.0


class RegistryServer:
    """A ``tidegate.kit.service.Service``. All state is in the log: a registry that was killed resumes from there."""

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config
        self._metrics = RegistryMetrics()
        self._store: Store | None = None
        self._faces: Faces | None = None
        self._election = Election(
            ClientConfig(config.bootstrap_servers, {"client.id": "registry", **self._client_properties}),
            config.group_id,
            sticky=config.leader_sticky,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
        )
        self._forwarder = Forwarder(_forwarding_tls(config))

    async def start(self) -> Mapping[str, str]:
        """Returns when requests are answered. The election may still be in progress then; writes wait for it.

        While the log is unreachable it keeps trying, with one log message.

        Raises StoreMisconfigured if a retry can't help, and ConfigError for keys with unusable files.
        """
        config = self._config
        self._faces, asked = Faces(config), guards(config)
        source, self._store = await self._open()
        registry = Registry(
            self._store, self._metrics, default_level=config.default_level, mode_mutable=config.mode_mutability
        )
        replica = functools.partial(
            Replica,
            outcome=self._election.outcome,
            store=self._store,
            forwarder=self._forwarder,
            timeout_ms=config.timeout_ms,
        )
        app = application(
            registry,
            self._metrics,
            cluster_id=source.cluster_id,
            group_id=config.group_id,
            guards=asked,
            middleware=[*config.middleware(), replica],
            sites=config.sites(),
            max_body_bytes=config.max_request_bytes,
        )
        warn_of_open("registry", config.open_listeners, "users.file, authentication.method or registry_authfile")
        addresses = await self._faces.start(app)
        # Others reach this registry at its listener, so it can join the election only once its port is known.
        await self._election.start(_identity(config, addresses), self._store.take_office)
        return addresses

    async def stop(self) -> None:
        if self._faces is not None:
            await self._faces.stop()
        await self._election.stop()
        self._forwarder.close()
        if self._store is not None:
            await self._store.stop()

    async def _open(self) -> tuple[KafkaLog, Store]:
        pause_s, said = _FIRST_RETRY_S, False
        while True:
            source = self._log()
            store = Store(source, self._metrics, timeout_ms=self._config.timeout_ms, office=self._election)
            try:
                await store.start()
                return source, store
            except StoreMisconfigured:
                await store.stop()
                raise
            except StoreError as error:
                await store.stop()
                if not said:
                    logger.warning("the schema log cannot be opened yet; trying on", reason=str(error))
                    said = True
            except BaseException:
                await store.stop()
                raise
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LAST_RETRY_S)

    @property
    def _client_properties(self) -> dict[str, str]:
        properties = self._config.client_properties
        return {name: value for name, value in properties.items() if name not in _OWN_STORE_KEYS}

    def _log(self) -> KafkaLog:
        config = self._config
        return KafkaLog(
            config.bootstrap_servers,
            self._client_properties,
            topic=config.topic,
            group_id=config.group_id,
            replication_factor=config.replication_factor,
            timeout_ms=config.timeout_ms,
        )


def _identity(config: RegistryConfig, addresses: Mapping[str, str]) -> Identity:
    """The address for other registries: the listener that is configured for that, otherwise the first with the scheme."""
    listeners = dict(zip(config.listeners, addresses.values(), strict=True))
    listeners_used = [
        candidate for candidate in listeners if candidate.name == config.inter_instance_listener.lower()
    ] or [candidate for candidate in listeners if candidate.scheme == config.inter_instance_protocol.lower()]
    listener = (listeners_used or list(listeners))[0]
    port = int(listeners[listener].rpartition(":")[2])
    host = config.host_name or listener.host.strip("[]")
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    return Identity(host, port, listener.scheme, config.leader_eligible)


def _forwarding_tls(config: RegistryConfig) -> ssl.SSLContext | None:
    """The TLS context for other registries' https listeners: with this one's trust store, and its key store, if any."""
    return client_context(config) if any(listener.scheme == "https" for listener in config.listeners) else None
