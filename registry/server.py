"""The registry as a service: opens the schema log, however long that takes, then answers HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from registry.app import application
from registry.config import RegistryConfig
from registry.errors import StoreError, StoreMisconfigured
from registry.log import KafkaLog
from registry.metrics import RegistryMetrics
from registry.registry import Registry
from registry.security.faces import Faces
from registry.security.users import guards
from registry.store import Store
from tidegate.kit.logs import logger

__all__ = ["RegistryServer"]

log = logger(__name__)

_OWN_STORE_KEYS = frozenset({"bootstrap.servers", "topic", "topic.replication.factor", "timeout.ms"})
_FIRST_RETRY_S, _LAST_RETRY_S = 0.1, 2.0


class RegistryServer:
    """A ``tidegate.kit.service.Service``. Stateless but for the log: one that was killed resumes where that ends."""

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config
        self._metrics = RegistryMetrics()
        self._store: Store | None = None
        self._faces: Faces | None = None

    async def start(self) -> Mapping[str, str]:
        """Returns when requests are answered. While the log cannot be reached it keeps trying, and says so once.

        Raises StoreMisconfigured where trying again cannot help, and ConfigError for keys whose files cannot be used.
        """
        config = self._config
        self._faces, asked = Faces(config), guards(config)
        source, self._store = await self._open()
        registry = Registry(
            self._store, self._metrics, default_level=config.default_level, mode_mutable=config.mode_mutability
        )
        app = application(
            registry,
            self._metrics,
            cluster_id=source.cluster_id,
            group_id=config.group_id,
            guards=asked,
            middleware=config.middleware(),
            max_body_bytes=config.max_request_bytes,
        )
        return await self._faces.start(app)

    async def stop(self) -> None:
        if self._faces is not None:
            await self._faces.stop()
        if self._store is not None:
            await self._store.stop()

    async def _open(self) -> tuple[KafkaLog, Store]:
        pause_s, said = _FIRST_RETRY_S, False
        while True:
            source = self._log()
            store = Store(source, self._metrics, timeout_ms=self._config.timeout_ms)
            try:
                await store.start()
                return source, store
            except StoreMisconfigured:
                await store.stop()
                raise
            except StoreError as error:
                await store.stop()
                if not said:
                    log.warning("the schema log cannot be opened yet; trying on", reason=str(error))
                    said = True
            except BaseException:
                await store.stop()
                raise
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LAST_RETRY_S)

    def _log(self) -> KafkaLog:
        config = self._config
        properties = {name: value for name, value in config.client_properties.items() if name not in _OWN_STORE_KEYS}
        return KafkaLog(
            config.bootstrap_servers,
            properties,
            topic=config.topic,
            replication_factor=config.replication_factor,
            timeout_ms=config.timeout_ms,
        )
