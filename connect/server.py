"""The connect service: stores, herder, worker and REST face, put together."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from connect.clients import worker_client
from connect.config import WorkerConfig
from connect.herder import Herder
from connect.metrics import WorkerCollector
from connect.operations import Operations
from connect.plugins import load_plugins
from connect.routes import all_routes
from connect.routes.connectors import ConnectorRoutes
from connect.routes.plugins import PluginRoutes
from connect.routes.requests import render_error
from connect.routes.root import RootRoutes
from connect.stores import ConfigStore, OffsetStore, StatusStore, TopicClients
from connect.worker import Worker
from tidegate.kit.config import parse
from tidegate.kit.errors import TidegateError
from tidegate.kit.http import HttpServer, face
from tidegate.kit.logs import logger
from tidegate.kit.metrics import Metrics

if TYPE_CHECKING:
    from broker.client import Admin, BatchProducer, NewTopic

__all__ = ["ConnectServer"]

log = logger(__name__)

_RETRY_S: Final = 0.5
_PRODUCER: Final = {"client.id": "connect-worker", "acks": "all", "delivery.timeout.ms": "10000"}
"""A request that the log does not take within this time is answered with an error; nobody waits for longer."""


class ConnectServer:
    """A Service (tidegate.kit.service). ``properties`` are worker properties as text; ``plugin_modules`` are import paths
    of modules with a ``register_plugins`` hook beside this package's own.

    ``start`` waits until the log can be reached, and says in its log that it does.
    """

    def __init__(self, properties: Mapping[str, str], plugin_modules: Sequence[str] = ()) -> None:
        self._config = parse(WorkerConfig, properties)
        self._properties, self._plugin_modules = dict(properties), tuple(plugin_modules)
        self._admin: Admin | None = None
        self._producer: BatchProducer | None = None
        self._stores: list[ConfigStore | OffsetStore | StatusStore] = []
        self._herder: Herder | None = None
        self._http: HttpServer | None = None
        self._cluster_id = ""

    async def start(self) -> Mapping[str, str]:
        plugins = load_plugins(self._plugin_modules)
        host, port = self._config.listen
        worker = Worker(
            self._properties,
            self._plugin_modules,
            processes=self._config.host_processes,
            stop_timeout_ms=self._config.task_stop_timeout_ms,
        )
        herder = self._herder = Herder(
            worker, plugins, worker_id=self._worker_id(port), topic_tracking=self._config.topic_tracking
        )
        admin, clients = await self._connect()
        operations = Operations(herder, worker, plugins, admin)
        configs, offsets, statuses = await self._read_stores(clients, herder)
        metrics = Metrics()
        metrics.collect_from(WorkerCollector(lambda: dict(worker.statistics), lambda: _states(statuses)))
        routes = all_routes(
            RootRoutes(_commit(), lambda: self._cluster_id, self._health),
            ConnectorRoutes(operations, topic_tracking=self._config.topic_tracking),
            PluginRoutes(operations),
        )
        app = face(routes, name="kafka_connect_worker", metrics=metrics, render_error=render_error)
        self._http = HttpServer(app, host, port)
        await self._http.start()
        herder.worker_id = self._worker_id(self._http.port)
        herder.start(configs, offsets, statuses)
        return {"connect": self._http.url}

    async def stop(self) -> None:
        if self._http is not None:
            await self._http.stop()
        if self._herder is not None:
            await self._herder.stop()
        for store in self._stores:
            await store.stop()
        if self._producer is not None:
            await self._producer.stop()
        if self._admin is not None:
            await self._admin.stop()

    def _worker_id(self, port: int) -> str:
        host = self._config.advertised_host or self._config.listen[0]
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        return f"{host}:{self._config.advertised_port or port}"

    async def _connect(self) -> tuple[Admin, TopicClients]:
        from broker.client import Admin, BatchProducer

        while True:
            admin = Admin(worker_client(self._properties, "admin"))
            try:
                self._admin = await admin.start()
                self._cluster_id = await admin.cluster_id()
                producer = worker_client(self._properties, "producer").with_properties(_PRODUCER)
                self._producer = await BatchProducer(producer).start()
                break
            except TidegateError as error:
                await admin.stop()
                self._admin = None
                if not error.retriable:
                    raise
                log.warning("the log cannot be reached; trying again", error=str(error))
                await asyncio.sleep(_RETRY_S)
        consumer = worker_client(self._properties, "consumer").with_properties({"isolation.level": "read_committed"})
        return admin, TopicClients(admin, self._producer, consumer, self._config.replication_fit)

    async def _read_stores(self, clients: TopicClients, herder: Herder) -> tuple[ConfigStore, OffsetStore, StatusStore]:
        from broker.client import NewTopic

        def topic(name: str, partitions: int, replication: int) -> NewTopic:
            return NewTopic(name, partitions, replication, {"cleanup.policy": "compact"})

        config = self._config
        configs = ConfigStore(clients, topic(config.config_topic, 1, config.config_replication), herder.wake)
        offsets = OffsetStore(clients, topic(config.offset_topic, config.offset_partitions, config.offset_replication))
        statuses = StatusStore(clients, topic(config.status_topic, config.status_partitions, config.status_replication))
        self._stores = [configs, offsets, statuses]
        await asyncio.gather(*(store.start() for store in self._stores))
        return configs, offsets, statuses

    def _health(self) -> tuple[int, str, str]:
        for store in self._stores:
            if store.failure is not None:
                return 500, "unhealthy", f"Worker cannot follow its internal topics: {store.failure}"
        return 200, "healthy", "Worker has completed startup and is ready to handle requests."


def _states(statuses: StatusStore) -> Iterable[tuple[str, int | None, str]]:
    for name, status in statuses.connectors.items():
        yield name, None, status.state.value
    for name, tasks in statuses.tasks.items():
        for number, status in tasks.items():
            yield name, number, status.state.value


def _commit() -> str:
    try:
        return f"tidegate-{version('tidegate')}"
    except PackageNotFoundError:
        return "tidegate"
