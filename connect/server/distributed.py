"""The connect service: assembles stores, herder, worker, membership and REST API."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.routing import BaseRoute

from connect.config.worker import WorkerConfig
from connect.group.fencing import ZombieFencing
from connect.group.leadership import FencingLeaderWriter, Leadership
from connect.group.membership import Membership
from connect.group.metrics import RebalanceCollector
from connect.group.peers import Peers
from connect.herder.herder import Herder
from connect.herder.metrics import WorkerCollector, connectors_here
from connect.herder.operations import Operations
from connect.herder.positions import Positions
from connect.plugins.path import ModuleGraph, hook_modules, python_folders, watch
from connect.plugins.registry import PluginRegistry, load_plugins
from connect.rest.connectors import ConnectorRoutes
from connect.rest.forwarding import Forwarding
from connect.rest.internal import InternalRoutes
from connect.rest.listeners import Faces, peer_tls
from connect.rest.loggers import LoggerRoutes
from connect.rest.plugins import PluginRoutes
from connect.rest.requests import render_error
from connect.rest.root import KAFKA_VERSION, RootRoutes
from connect.rest.routes import admin_routes, all_routes
from connect.rest.users import user_guards
from connect.stores import CompactedTopic, ConfigStore, OffsetStore, StatusStore, TopicClients
from connect.task.clients import TaskClients, worker_client
from connect.task.exactly_once import transactional_ids
from connect.worker.loggers import Loggers
from connect.worker.owners import Owners
from connect.worker.worker import Worker
from tidegate.kit.config import parse
from tidegate.kit.errors import TidegateError
from tidegate.kit.http import face
from tidegate.kit.logs import get_logger
from tidegate.kit.metrics import Metrics

if TYPE_CHECKING:
    from broker.client import Admin, BatchProducer
    from broker.client.fenced import FencedWriter

__all__ = ["ConnectServer"]

logger = get_logger(__name__)

_RETRY_S: Final = 0.5
_FIRST_ROUND_S: Final = 1.0
"""How long a start waits for the group's first round, because connectors can be created only after it."""
_HEALTH_S: Final = 10.0
_REPLICATION_KEYS: Final = tuple(f"{store}.storage.replication.factor" for store in ("config", "offset", "status"))
_PRODUCER: Final = {"client.id": "connect-worker", "acks": "all", "delivery.timeout.ms": "10000"}
"""A request that the log does not accept within this time is answered with an error."""


class ConnectServer:
    """A Service (tidegate.kit.service): a worker of a group. ``properties`` are worker properties as text;
    ``plugin_modules`` are import paths of further modules with a ``register_plugins`` hook.

    ``start`` waits, with a log message, until the log is reachable, then a moment for its group.
    """

    def __init__(self, properties: Mapping[str, str], plugin_modules: Sequence[str] = ()) -> None:
        self._config = parse(WorkerConfig, properties)
        self._properties, self._plugin_modules = dict(properties), tuple(plugin_modules)
        self._admin: Admin | None = None
        self._producer: BatchProducer | None = None
        self._fenced: FencedWriter | None = None
        self._stores: list[ConfigStore | OffsetStore | StatusStore] = []
        self._herder: Herder | None = None
        self._membership: Membership | None = None
        self._leadership: Leadership | None = None
        self._peers = Peers(tls=peer_tls(self._properties, self._config))
        self._faces: Faces | None = None
        self._cluster_id = ""
        self._reloading: asyncio.Task[None] | None = None

    async def start(self) -> Mapping[str, str]:
        folders = python_folders(self._config.plugin_path)
        sys.path += [str(folder) for folder in folders if str(folder) not in sys.path]  # task hosts get the same
        plugins = load_plugins(self._plugin_modules, hook_modules=hook_modules(folders))
        faces = self._faces = Faces(self._properties, self._config)
        guards = user_guards(self._config)
        worker = Worker(
            self._properties,
            self._plugin_modules,
            processes=self._config.host_processes,
            stop_timeout_ms=self._config.task_stop_timeout_ms,
        )
        herder = self._herder = Herder(
            worker,
            plugins,
            worker_id=self._worker_id(),
            topic_tracking=self._config.topic_tracking,
            exactly_once=self._config.exactly_once_source.lower() == "enabled",
        )
        clients = await self._connect()
        await self._read_stores(clients, herder)
        positions = Positions(self._properties, worker, herder.fence, lambda: herder.offsets)
        operations = Operations(herder, worker, plugins, positions)
        metrics = Metrics()
        about = {"version": KAFKA_VERSION, "commit_id": _commit()}
        metrics.collect_from(
            WorkerCollector(
                worker,
                lambda: connectors_here(herder, plugins),
                lambda: {**about, "client_id": f"connect-{herder.worker_id}-{self._config.group_id}"},
            )
        )
        routes = all_routes(
            RootRoutes(_commit(), lambda: self._cluster_id, self._health),
            ConnectorRoutes(operations, topic_tracking=self._config.topic_tracking),
            PluginRoutes(operations),
        )
        routes = self._group_routes(routes, herder, plugins)
        if self._membership is not None:
            metrics.collect_from(RebalanceCollector(self._membership))
        loggers = self._loggers(herder, worker)
        if self._config.admin_urls is None:
            routes = [*routes, *loggers]
        name, middleware = "kafka_connect_worker", self._config.middleware()
        sites = self._config.sites()
        app = face(
            routes,
            name=name,
            metrics=metrics,
            render_error=render_error,
            guards=guards,
            middleware=middleware,
            sites=sites,
        )
        admin = face(
            loggers,
            name=f"{name}_admin",
            metrics=Metrics(),
            render_error=render_error,
            guards=guards,
            middleware=middleware,
            sites=sites,
        )
        addresses = await faces.start(app, admin)
        herder.worker_id = self._worker_id()
        await self._take_part(herder, worker, operations)
        if self._config.plugin_reload and folders:
            self._reloading = asyncio.create_task(_reload(herder, plugins, folders), name="reload plugins")
        return addresses

    @staticmethod
    def _loggers(herder: Herder, worker: Worker) -> list[BaseRoute]:
        loggers = Loggers()

        def set_level(namespace: str, level: str) -> None:
            loggers.set(namespace, level)
            worker.set_logger_level(namespace, level)

        herder.set_logger_level = set_level
        return admin_routes(LoggerRoutes(loggers, worker.set_logger_level, herder.configs.put_logger_level))

    def _group_routes(self, routes: list[BaseRoute], herder: Herder, plugins: PluginRegistry) -> list[BaseRoute]:
        """The routes of a worker in a group: with those for its leader, and with forwarding."""
        membership = self._membership = Membership(
            self._config,
            worker_client(self._properties),
            self._config.group_id,
            configs=herder.configs,
            work=herder,
            peers=self._peers,
        )
        herder.group = membership
        routes += InternalRoutes(herder, membership, plugins, self._config).routes()
        return Forwarding(self._peers).over(routes)

    async def _take_part(self, herder: Herder, worker: Worker, operations: Operations) -> None:
        """Join the group; this worker's share starts with its first round."""
        assert self._membership is not None and self._admin is not None
        membership = self._membership
        membership.url = f"{self._config.advertised.scheme}://{herder.worker_id}/"
        leadership = self._leadership = Leadership(self._config, membership, herder.configs)
        if self._config.leads_transactionally:
            leadership.writer = await self._leader_writer(membership)
            herder.configs.leader_writer = leadership.writer
        herder.on_led = leadership.lead
        fencing = ZombieFencing(
            herder.configs,
            lambda name, count: self._end_producers(herder.configs, worker.owners, name, count),
            sync_timeout_s=self._config.worker_sync_timeout_ms / 1000,
        )
        herder.fencing = fencing.fence
        herder.start(membership)
        await membership.meet(self._admin)
        await membership.start()
        # A group with work assigns part of it to a new worker.
        worker.expect(sum(len(stored.tasks or ()) for stored in herder.configs.connectors.values()))
        await membership.wait_settled_for(_FIRST_ROUND_S)

    async def stop(self) -> None:
        if self._reloading is not None:
            self._reloading.cancel()
        if self._faces is not None:
            await self._faces.stop()
        if self._herder is not None:
            await self._herder.stop()
        if self._membership is not None:
            await self._membership.stop()
        if self._leadership is not None:
            await self._leadership.stop()
        self._peers.stop()
        for store in self._stores:
            await store.stop()
        for client in (self._fenced, self._producer, self._admin):
            if client is not None:
                await client.stop()

    def _worker_id(self) -> str:
        host = self._config.advertised_host or self._config.advertised.host
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        port = self._faces.advertised_port if self._faces is not None else self._config.advertised.port
        return f"{host}:{port}"

    async def _connect(self) -> TopicClients:
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
                logger.warning("the log cannot be reached; trying again", error=str(error))
                await asyncio.sleep(_RETRY_S)
        consumer = worker_client(self._properties, "consumer").with_properties({"isolation.level": "read_committed"})
        return TopicClients(admin, self._producer, consumer, self._config.replication_fit)

    async def _read_stores(self, clients: TopicClients, herder: Herder) -> StatusStore:
        from broker.client import NewTopic
        from broker.client.errors import InvalidReplicationFactor

        def topic(name: str, partitions: int, replication: int) -> CompactedTopic:
            return CompactedTopic(clients, NewTopic(name, partitions, replication, {"cleanup.policy": "compact"}))

        config = self._config
        configs = ConfigStore(topic(config.config_topic, 1, config.config_replication), herder)
        offsets = OffsetStore(topic(config.offset_topic, config.offset_partitions, config.offset_replication))
        statuses = StatusStore(
            topic(config.status_topic, config.status_partitions, config.status_replication), herder.on_status
        )
        self._stores = [configs, offsets, statuses]
        herder.configs, herder.offsets, herder.statuses = configs, offsets, statuses
        try:
            await asyncio.gather(*(store.start() for store in self._stores))
        except InvalidReplicationFactor as error:
            raise InvalidReplicationFactor(
                f"{error}. The worker's {', '.join(_REPLICATION_KEYS)} may be the number of brokers at most; "
                "replication.factor.fit=true lowers them to it"
            ) from error
        return statuses

    async def _leader_writer(self, membership: Membership) -> FencingLeaderWriter:
        from broker.client import TopicPartition
        from broker.client.fenced import FencedWriter

        client = worker_client(self._properties, "producer").with_properties(_PRODUCER)
        partition = TopicPartition(self._config.config_topic, 0)
        self._fenced = await FencedWriter(client, partition, f"connect-cluster-{self._config.group_id}").start()
        return FencingLeaderWriter(self._fenced, lambda: membership.is_leader)

    async def _end_producers(self, configs: ConfigStore, owners: Owners, name: str, count: int) -> None:
        """Lock out the producers of tasks 0 to count - 1 of a source, in the cluster that its records go to."""
        from broker.client import Admin

        stored = configs.connectors[name]
        clients = TaskClients(owners.properties(stored.owner), name, 0, stored.config)
        async with Admin(clients.own_offsets_admin()) as admin:
            await admin.fence_producers(transactional_ids(self._config.group_id, name, count))

    async def _health(self) -> tuple[int, str, str]:
        """Kafka Connect's RootResource (KIP-1017): waits a while for a worker that is starting."""
        unable = "Worker was unable to handle this request and may be unable to handle other requests."
        for store in self._stores:
            if store.failure is not None:
                return 500, "unhealthy", f"{unable} It cannot follow its internal topics: {store.failure}"
        membership = self._membership
        if membership is not None and membership.failure is not None:
            return 500, "unhealthy", f"{unable} Its group does not take it: {membership.failure}"
        if membership is not None and not await membership.wait_settled_for(_HEALTH_S):
            if not membership.rounds:
                return 503, "starting", "Worker is still starting up. The worker is joining its group."
            return 500, "unhealthy", f"{unable} A rebalance of its group has not ended for {_HEALTH_S:g} s."
        troubles = self._herder.troubles if self._herder is not None else {}
        told = "".join(f" Connector {name} waits: {trace}" for name, trace in sorted(troubles.items()))
        return 200, "healthy", f"Worker has completed startup and is ready to handle requests.{told}"


async def _reload(herder: Herder, plugins: PluginRegistry, folders: Sequence[Path]) -> None:
    """Restart connectors whose modules changed. Those with an unreadable module keep running."""

    async def on_change(files: list[str]) -> None:
        modules = ModuleGraph(folders)
        changed, kept = modules.of_files(files), list[str]()

        def concerns(config: Mapping[str, str]) -> bool:
            needed = modules.needed(config, plugins)
            if not needed & changed:
                return False
            if needed & modules.broken.keys():
                kept.append(config["name"])
                return False
            return True

        try:
            connectors = await herder.reload(concerns)
        except TidegateError as error:
            logger.error("not everything could be started again with its new code", files=files, error=str(error))
        else:
            logger.info("code has changed; started again", files=files, connectors=connectors)
        for why in (why for name, why in modules.broken.items() if name in changed):
            logger.error("code that cannot be read; the old one goes on", error=why, connectors=kept)

    await watch(folders, on_change)


def _commit() -> str:
    try:
        return f"tidegate-{version('tidegate')}"
    except PackageNotFoundError:
        return "tidegate"
