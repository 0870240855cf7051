"""connect-standalone: one worker, its connectors from files, its offsets in a file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connect.errors import Unsupported
from connect.group.group import Alone
from connect.herder.operations import Operations
from connect.server.distributed import ConnectServer
from connect.server.standalone.connector_files import read_connector_file
from connect.server.standalone.logs import FileLog, MemoryLog
from connect.stores import ConfigStore, OffsetStore, StatusStore, TargetState
from connect.worker.worker import Worker
from tidegate.kit.errors import ConfigError, Problem, TidegateError, UsageError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from connect.herder.herder import Herder
    from connect.plugins.registry import PluginRegistry
    from connect.stores import TopicClients

__all__ = ["StandaloneServer", "is_standalone"]

logger = get_logger(__name__)

_FILE_KEY = "offset.storage.file.filename"


def is_standalone(properties: Mapping[str, str]) -> bool:
    """Whether worker properties are those of connect-standalone."""
    return _FILE_KEY in properties and "config.storage.topic" not in properties


class StandaloneServer(ConnectServer):
    """A Service. ``connector_files`` are created at the start, in order; if one can't be created, the service ends."""

    def __init__(
        self, properties: Mapping[str, str], connector_files: Sequence[Path] = (), plugin_modules: Sequence[str] = ()
    ) -> None:
        super().__init__(properties, plugin_modules)
        if not properties.get(_FILE_KEY):
            text = f'Missing required configuration "{_FILE_KEY}" which has no default value.'
            raise ConfigError([Problem(_FILE_KEY, text)])
        self._offset_file = Path(properties[_FILE_KEY])
        self._connectors = [(path, read_connector_file(path)) for path in connector_files]

    async def _read_stores(self, clients: TopicClients, herder: Herder) -> StatusStore:
        configs = ConfigStore(MemoryLog("connectors"), herder)
        offsets = OffsetStore(FileLog(self._offset_file))
        statuses = StatusStore(MemoryLog("statuses"), herder.on_status)
        self._stores = [configs, offsets, statuses]
        herder.configs, herder.offsets, herder.statuses = configs, offsets, statuses
        await asyncio.gather(*(store.start() for store in self._stores))
        return statuses

    def _group_routes(self, routes: list[BaseRoute], herder: Herder, plugins: PluginRegistry) -> list[BaseRoute]:
        refused = [
            Route("/connectors/{name}/tasks", _refuse_tasks, methods=["POST"]),
            Route("/connectors/{name}/fence", _refuse_fencing, methods=["PUT"]),
        ]
        return [*routes, *refused]

    async def _take_part(self, herder: Herder, worker: Worker, operations: Operations) -> None:
        herder.start(Alone())
        for path, connector_config in self._connectors:
            try:
                await operations.create(
                    connector_config.name, connector_config.config, connector_config.initial or TargetState.STARTED
                )
            except TidegateError as error:
                raise UsageError(f"Failed to create connector for {path}: {error}") from error
            logger.info("created connector", connector=connector_config.name, file=str(path))


async def _refuse_tasks(_: Request) -> Response:
    raise Unsupported("Kafka Connect in standalone mode does not support externally setting task configurations.")


async def _refuse_fencing(_: Request) -> Response:
    raise Unsupported("Kafka Connect in standalone mode does not support exactly-once source connectors.")
