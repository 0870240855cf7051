"""The operations behind the REST API, with the rules and texts of Kafka Connect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from connect.api import Dataset, PluginType
from connect.errors import AlreadyExists, BadRequest, Conflict, InvalidConnector, NotFound
from connect.given_records import read_records
from connect.herder.herder import Herder
from connect.herder.offset_changes import Changes
from connect.herder.positions import Positions
from connect.plugins.registry import CONNECTORS, PluginRegistry
from connect.stores import RestartRequest, State, TargetState
from connect.stores.configs import StoredConnector
from connect.worker.worker import Worker
from tidegate.kit.logs import get_logger

__all__ = ["Operations"]

logger = get_logger(__name__)

_SOURCE: Final = PluginType.SOURCE.value


class Operations:
    """Changes of one connector come one after another; all values are as the REST face shows them."""

    def __init__(self, herder: Herder, worker: Worker, plugins: PluginRegistry, positions: Positions) -> None:
        self._herder, self._worker, self._plugins, self._positions = herder, worker, plugins, positions
        self._changing: dict[str, asyncio.Lock] = {}

    def _stored(self, name: str) -> StoredConnector:
        stored = self._herder.configs.connectors.get(name)
        if stored is None:
            raise NotFound(f"Connector {name} not found")
        return stored

    def _require_known(self, name: str) -> None:
        """Raises NotFound in the words that restarts have for it."""
        if name not in self._herder.configs.connectors:
            raise NotFound(f"Unknown connector: {name}")

    def names(self) -> list[str]:
        return sorted(self._herder.configs.connectors)

    def type_of(self, config: Mapping[str, str]) -> str:
        plugin = self._plugins.find(config.get("connector.class", ""), *CONNECTORS)
        return plugin.type.value if plugin is not None else "unknown"

    def info(self, name: str) -> dict[str, Any]:
        stored = self._stored(name)
        tasks = [{"connector": name, "task": number} for number in range(len(stored.tasks or []))]
        return {"name": name, "config": stored.config, "tasks": tasks, "type": self.type_of(stored.config)}

    def config(self, name: str) -> dict[str, str]:
        return self._stored(name).config

    def status(self, name: str) -> dict[str, Any]:
        connector_status = self._herder.statuses.connectors.get(name)
        if connector_status is None:
            raise NotFound(f"No status found for connector {name}")
        stored = self._herder.configs.connectors.get(name)
        tasks = self._herder.statuses.tasks.get(name, {})
        return {
            "name": name,
            "connector": connector_status.to_json(),
            "tasks": [{"id": number, **status.to_json()} for number, status in sorted(tasks.items())],
            "type": self.type_of(stored.config) if stored is not None else "unknown",
        }

    def task_status(self, name: str, number: int) -> dict[str, Any]:
        status = self._herder.statuses.tasks.get(name, {}).get(number)
        if status is None:
            raise NotFound(f"No status found for task {name}-{number}")
        return {"id": number, **status.to_json()}

    def tasks(self, name: str) -> list[dict[str, Any]]:
        stored = self._stored(name)
        return [
            {"id": {"connector": name, "task": number}, "config": config}
            for number, config in enumerate(stored.tasks or [])
        ]

    def expanded(self, kinds: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Every connector with its status or info; one that has no status yet is left out, as in Kafka Connect."""
        answer: dict[str, dict[str, Any]] = {}
        for name in self.names():
            if "status" in kinds and name not in self._herder.statuses.connectors:
                continue
            entry: dict[str, Any] = {}
            if "status" in kinds:
                entry["status"] = self.status(name)
            if "info" in kinds:
                entry["info"] = self.info(name)
            answer[name] = entry
        return answer

    async def create(
        self, name: str, config: Mapping[str, str | None], initial: TargetState | None = None, *, owner: str = ""
    ) -> dict[str, Any]:
        """Create a connector for the user who asks. Raises AlreadyExists, InvalidConnector."""
        checked = await self._checked(name, config, owner)
        await self._herder.require_leader()
        async with self._changes_of(name):
            if name in self._herder.configs.connectors:
                raise AlreadyExists(f"Connector {name} already exists")
            await self._herder.configs.put_connector(name, checked, initial, owner=owner)
            return self.info(name)

    async def put(self, name: str, config: Mapping[str, str | None], *, owner: str = "") -> tuple[bool, dict[str, Any]]:
        """Create a connector or replace its configuration; says whether it was created. It is the ``owner``'s from then on."""
        checked = await self._checked(name, config, owner)
        await self._herder.require_leader()
        async with self._changes_of(name):
            created = name not in self._herder.configs.connectors
            await self._herder.configs.put_connector(name, checked, owner=owner)
            return created, self.info(name)

    async def patch(self, name: str, changes: Mapping[str, str | None], *, owner: str = "") -> dict[str, Any]:
        """Change some keys; a null removes one."""
        await self._herder.require_leader()
        merged: dict[str, str | None] = {**self.config(name), **changes}
        kept = {key: value for key, value in merged.items() if value is not None}
        _, info = await self.put(name, kept, owner=owner)
        return info

    async def _checked(self, name: str, config: Mapping[str, str | None], owner: str) -> dict[str, str]:
        """The configuration as it will be stored, found right by its connector."""
        name_in_body = config.get("name")
        if name_in_body is not None and name_in_body != name:
            raise BadRequest(
                f"Connector name configuration ({name_in_body}) doesn't match connector name in the URL ({name})"
            )
        whole = {**config, "name": name}
        judged = await self._worker.validate(whole, owner=owner)
        if judged["errors"]:
            raise InvalidConnector(judged["errors"])
        self._plugins.learn(whole.get("connector.class") or "", judged["type"], judged["version"])
        for key, near in judged["unknown"].items():
            hint = {"nearest": near} if near is not None else {}
            logger.warning("nobody knows this key of the connector", connector=name, key=key, **hint)
        return {key: value for key, value in whole.items() if value is not None}

    def _changes_of(self, name: str) -> asyncio.Lock:
        return self._changing.setdefault(name, asyncio.Lock())

    async def delete(self, name: str) -> None:
        await self._herder.require_leader()
        async with self._changes_of(name):
            self._stored(name)
            await self._herder.configs.remove_connector(name)
        await self._herder.wait_until_reconciled(name)

    async def set_target(self, name: str, target: TargetState) -> None:
        """Pause, resume or stop; a stop waits until it is one."""
        if target is TargetState.STOPPED:
            await self._herder.require_leader()
        async with self._changes_of(name):
            self._stored(name)
            await self._herder.configs.put_target(name, target)
        if target is TargetState.STOPPED:
            await self._herder.wait_until_reconciled(name)

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> dict[str, Any] | None:
        """Restart a connector, its tasks too if asked; the status with what is RESTARTING, None for the connector alone."""
        if not include_tasks and not only_failed:
            self._require_known(name)
            await self._herder.restart_connector(name)
            if (trace := await self._herder.wait_until_started(name)) is not None:
                raise Conflict(f"Failed to start connector: {name}: {trace}")
            return None
        await self._herder.require_leader()
        self._require_known(name)
        shown = self.status(name)
        await self._herder.configs.put_restart(RestartRequest(name, include_tasks, only_failed))
        failed = State.FAILED.value
        for part in (shown["connector"], *(shown["tasks"] if include_tasks else ())):
            if not only_failed or part["state"] == failed:
                part["state"] = State.RESTARTING.value
                part.pop("trace", None)
        return shown

    async def restart_task(self, name: str, number: int) -> None:
        self._require_known(name)
        stored = self._stored(name)
        if number >= len(stored.tasks or []):
            raise NotFound(f"Unknown task: {name}-{number}")
        await self._herder.restart_task(name, number)

    async def run_job(self, name: str) -> None:
        """Have the tasks of a job run before their time. Raises BadRequest for what is no job or does not run."""
        stored = self._stored(name)
        ordered = [await self._herder.run_job(name, number) for number in range(len(stored.tasks or []))]
        if not any(ordered):
            raise BadRequest(
                f"Connector {name} has no job that runs: only a connector that runs in jobs, such as Spark's, has one"
            )

    async def cancel_job(self, name: str) -> None:
        """Have the run of a job end that is under way. Raises BadRequest where there is none."""
        stored = self._stored(name)
        ordered = [await self._herder.cancel_job(name, number) for number in range(len(stored.tasks or []))]
        if not any(ordered):
            raise BadRequest(f"Connector {name} has no run of a job under way that could be cancelled")

    async def offsets(self, name: str) -> dict[str, Any]:
        """How far a connector has come."""
        stored = self._stored(name)
        await self._learn(stored)
        if self.type_of(stored.config) != _SOURCE:
            return {"offsets": await self._positions.of_sink(name, stored)}
        offsets = await self._positions.of_source(name, stored)
        return {"offsets": [{"partition": offset["partition"], "offset": offset["offset"]} for offset in offsets]}

    async def _learn(self, stored: StoredConnector) -> None:
        """Have a task host say what a connector is that nobody declares."""
        class_name = stored.config.get("connector.class", "")
        if self._plugins.find(class_name, *CONNECTORS) is None:
            judged = await self._worker.validate(stored.config, owner=stored.owner)
            self._plugins.learn(class_name, judged["type"], judged["version"])

    async def change_offsets(self, name: str, changes: Changes | None) -> dict[str, str]:
        """Set and forget positions of a stopped connector, all of them where ``changes`` is None."""
        await self._herder.require_leader()
        async with self._changes_of(name):
            stored = self._stored(name)
            if stored.target is not TargetState.STOPPED or stored.tasks:
                raise BadRequest(
                    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
                    f"specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
                )
            await self._learn(stored)
            is_source = self.type_of(stored.config) == _SOURCE
            change = self._positions.change_source if is_source else self._positions.change_sink
            return {"message": await change(name, stored, changes)}

    def topics(self, name: str) -> dict[str, Any]:
        """The topics that a connector has used; none for one that is not there, as in Kafka Connect."""
        return {name: {"topics": sorted(self._herder.statuses.topics.get(name, ()))}}

    @property
    def kafka_namespace(self) -> str:
        """The namespace of the log's topics in OpenLineage."""
        return Dataset.of_topic(self._worker.bootstrap_servers, "").namespace

    def lineage(self, name: str) -> list[dict[str, Any]]:
        """The flows of a connector between topics and datasets, as its tasks told them."""
        stored = self._stored(name)
        flows = self._herder.statuses.flows.get(name, {}).values()
        kind = self.type_of(stored.config)
        return [
            {"connector": name, "type": kind, **flow}
            for flow in sorted(flows, key=lambda flow: (flow["topic"], json.dumps(flow["dataset"])))
        ]

    async def reset_topics(self, name: str) -> None:
        await self._herder.statuses.forget_topics(name)

    def progress(self, name: str) -> dict[str, Any]:
        """The progress of long work that the tasks of a connector reported last."""
        self._stored(name)
        told = sorted((task[1], said) for task, said in self._worker.progress.items() if task[0] == name)
        return {"name": name, "tasks": [said for _, said in told]}

    def statistics(self) -> dict[str, Any]:
        """The statistics of the tasks on this worker by connector, and the memory of the task host that each runs in."""
        hosts, memory = self._worker.hosts, self._worker.host_memory
        counted: dict[str, list[dict[str, Any]]] = {}
        for (name, number), groups in sorted(self._worker.statistics.items()):
            where: dict[str, Any] = {}
            if (host := hosts.get((name, number))) is not None:
                sharing = list(hosts.values()).count(host)
                where = {"host": host, "host_memory_bytes": memory[host], "tasks_in_host": sharing}
            lags = [{"topic": t, "partition": p, "lag": lag} for t, p, lag in groups.get("lags", ())]
            told = self._worker.progress.get((name, number))
            more = {"progress": told} if told is not None else {}
            counted.setdefault(name, []).append({"id": number, **where, **groups, "lags": lags, **more})
        return {"worker_id": self._herder.worker_id, "connectors": counted}

    def plugins(self, *, connectors_only: bool) -> list[dict[str, str]]:
        listed = self._plugins.listed(CONNECTORS) if connectors_only else self._plugins.listed()
        return [{"class": plugin.name, "type": plugin.type.value, "version": plugin.version} for plugin in listed]

    async def plugin_keys(self, name: str) -> list[dict[str, Any]]:
        if self._plugins.find(name) is None:
            raise NotFound(f"Unknown plugin {name}.")
        return await self._worker.plugin_keys(name)

    async def validate(self, plugin: str, config: Mapping[str, str | None], *, owner: str = "") -> dict[str, Any]:
        """The ConfigInfos of a configuration for the plugin in the URL."""
        _require_class(config, plugin)
        judged = await self._worker.validate(config, owner=owner)
        infos: dict[str, Any] = judged["infos"]
        return infos

    async def preview(
        self, plugin: str, config: Mapping[str, str | None], rows: int, *, owner: str = ""
    ) -> dict[str, Any]:
        """Show what a connector of this configuration would do, with its first rows; nothing is written (``connect.preview``)."""
        _require_class(config, plugin)
        given = {"name": "preview", **{key: value for key, value in config.items() if value is not None}}
        return await self._worker.preview(given, rows, owner=owner)

    async def preview_of_records(self, name: str, records: list[dict[str, Any]], *, owner: str = "") -> dict[str, Any]:
        """Show what a sink that there is would do with these records (``connect.given_records``); nothing is written."""
        config = self.config(name)
        read_records(records)  # raises BadRequest before a process is started
        return await self._worker.preview(config, len(records), records, owner=owner)

    async def unknown_keys(self, config: Mapping[str, str | None], *, owner: str = "") -> dict[str, str | None]:
        """Keys of a configuration that nobody reads, each with the nearest one that there is."""
        unknown: dict[str, str | None] = (await self._worker.validate(config, owner=owner))["unknown"]
        return unknown


def _require_class(config: Mapping[str, str | None], plugin: str) -> None:
    """Raises BadRequest where a configuration is not for the plugin in the URL."""
    class_name = config.get("connector.class")
    if class_name is not None and _cut(class_name) != _cut(plugin) and not class_name.endswith(plugin):
        raise BadRequest(f"Included connector type {class_name} does not match request type {plugin}")


def _cut(class_name: str) -> str:
    return class_name.rpartition(".")[2].removesuffix("Connector")
