"""A task host: plugins, connectors and tasks live here; the worker says what to do and hears what became of it."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

from connect.config.worker import WorkerConfig
from connect.errors import NotFound
from connect.metrics.clients import clients_of_process
from connect.plugins.config_providers import resolved
from connect.plugins.path import hook_modules, python_folders
from connect.plugins.registry import PluginRegistry, load_plugins
from connect.validation.unknown_keys import unknown_keys
from connect.validation.validation import key_infos, validate_connector
from connect.worker.host.connectors import ConnectorSetup, HostedConnector
from connect.worker.host.memory import resident_bytes
from connect.worker.host.tasks import HostedTask, TaskSetup
from connect.worker.link import ThreadedLink
from connect.worker.loggers import set_level
from tidegate.kit.config import keys_of, parse
from tidegate.kit.file_access import limit_files
from tidegate.kit.logs import get_logger
from tidegate.kit.scrubbing import noted, noted_config
from tidegate.kit.users import Right

__all__ = ["TaskHost"]

logger = get_logger(__name__)

_CLIENTS_EVERY: Final = 5
"""Seconds between what Kafka clients have counted: a sink's are never at rest."""


class TaskHost:
    """Answers the worker's calls; each comes in a thread of its own, those about one task one after another."""

    def __init__(self, sock: socket.socket) -> None:
        handlers = {
            name: getattr(self, name)
            for name in (
                "setup",
                "set_file_rights",
                "validate",
                "preview",
                "plugin_keys",
                "alter_offsets",
                "set_level",
                "start_connector",
                "plan",
                "stop_connector",
                "start_task",
                "stop_task",
                "pause_task",
                "resume_task",
                "run_job",
                "cancel_job",
                "shutdown",
            )
        }
        self._link = ThreadedLink(sock, handlers)
        self._connectors: dict[str, HostedConnector] = {}
        self._tasks: dict[tuple[str, int], HostedTask] = {}
        self._plugins: PluginRegistry
        self._worker: dict[str, str]
        self._replace_rights: Callable[[Sequence[Right]], None]
        self._stats: threading.Thread | None = None

    def serve(self) -> None:
        self._link.serve()

    def setup(
        self,
        plugin_modules: list[str],
        worker: dict[str, str],
        levels: dict[str, str],
        files: dict[str, Any] | None,
    ) -> None:
        """``files`` limits this process to the files of a user: ``user``, ``rights`` as text, ``readable`` files, ``hidden`` folders."""
        for namespace, level in levels.items():
            set_level(namespace, level)
        config = parse(WorkerConfig, worker)
        # Bytecode is told from newer sources by the second only, which is too coarse for whoever writes and tries.
        sys.dont_write_bytecode = sys.dont_write_bytecode or config.plugin_reload
        self._plugins = load_plugins(plugin_modules, hook_modules=hook_modules(python_folders(config.plugin_path)))
        self._worker = worker
        if files is not None:
            readable = [*files["readable"], *config.plugin_path]
            self._replace_rights = limit_files(
                files["user"], _rights(files["rights"]), readable=map(Path, readable), hidden=map(Path, files["hidden"])
            )
        self._stats = threading.Thread(target=self._tell_statistics, name="statistics", daemon=True)
        self._stats.start()

    def set_file_rights(self, rights: list[str]) -> None:
        self._replace_rights(_rights(rights))

    def validate(self, properties: dict[str, str | None]) -> dict[str, Any]:
        """The ConfigInfos of a configuration; ``type``, ``errors`` and ``unknown`` keys beside them are for the worker."""
        resolved_config = resolved(
            self._worker, {name: value for name, value in properties.items() if value is not None}
        )
        noted_config(resolved_config)
        infos = validate_connector(self._plugins, {**properties, **resolved_config}, worker=self._worker)
        infos.scrub()
        for name, value in resolved_config.items():
            if value != properties[name]:
                infos.hide(name, value, str(properties[name]))
        version = self._plugins.connector(resolved_config.get("connector.class", "")).version
        return {
            "infos": infos.to_json(),
            "type": infos.type.value,
            "version": version,
            "errors": infos.errors,
            "unknown": dict(unknown_keys(infos, properties)),
        }

    def preview(
        self, properties: dict[str, str], rows: int, timeout_s: float, records: list[dict[str, Any]] | None
    ) -> dict[str, Any]:
        """Show what a connector would do, with the rights of this host's owner (``connect.preview``). Nothing is written."""
        from connect.given_records import raw_batches
        from connect.preview import json_facts, preview

        given = None if records is None else raw_batches(records)
        return json_facts(preview(self._plugins, self._worker, properties, rows=rows, timeout_s=timeout_s, given=given))

    def alter_offsets(self, properties: dict[str, str], offsets: list[list[Any]]) -> bool:
        """The answer of the connector's class to a user's positions; see ``SourceConnector.alter_offsets``."""
        resolved_config = resolved(self._worker, properties)
        noted_config(resolved_config)
        cls = self._plugins.connector(resolved_config.get("connector.class", "")).load()
        for declared in keys_of(cls.config_class):
            if declared.secret and (value := resolved_config.get(declared.name)):
                noted(value)
        return bool(cls.alter_offsets(resolved_config, [(partition, offset) for partition, offset in offsets]))

    def set_level(self, namespace: str, level: str) -> None:
        """Set the level of loggers in this process."""
        set_level(namespace, level)

    def plugin_keys(self, name: str) -> list[dict[str, Any]]:
        plugin = self._plugins.find(name)
        if plugin is None:
            raise NotFound(f"Unknown plugin {name}.")
        return key_infos(plugin.load().config_class)

    def start_connector(self, name: str, attempt: int, properties: dict[str, str]) -> None:
        """Start a connector in a thread of its own; what becomes of it comes as events."""
        setup = ConnectorSetup(name, attempt, properties, self._worker)
        hosted = self._connectors[name] = HostedConnector(setup, self._plugins, self._link)
        hosted.start()

    def plan(self, name: str) -> None:
        """Have a connector planned; the tasks come as an event."""
        if name not in self._connectors:
            raise NotFound(f"connector {name} does not run in this task host")
        self._connectors[name].plan()

    def stop_connector(self, name: str, timeout_s: float) -> bool:
        """Ask a connector to stop; whether it did in time."""
        hosted = self._connectors.pop(name, None)
        return hosted is None or hosted.stop(timeout_s)

    def start_task(
        self,
        *,
        connector: str,
        task: int,
        attempt: int,
        config: dict[str, str],
        properties: dict[str, str],
        paused: bool,
        offsets: list[dict[str, Any]],
    ) -> None:
        """Start a task in a thread of its own; its states come as events, also that it cannot be started."""
        setup = TaskSetup(
            connector=connector,
            task=task,
            attempt=attempt,
            config=config,
            properties=properties,
            offsets=offsets,
            worker=self._worker,
        )
        hosted = HostedTask(setup, self._plugins, self._link, paused=paused)
        self._tasks[connector, task] = hosted
        hosted.start()

    def stop_task(self, connector: str, task: int, timeout_s: float) -> bool:
        """Ask a task to stop; whether it did in time."""
        hosted = self._tasks.get((connector, task))
        if hosted is None:
            return True
        stopped = hosted.stop(timeout_s)
        if stopped and self._tasks.get((connector, task)) is hosted:
            del self._tasks[connector, task]
        return stopped

    def pause_task(self, connector: str, task: int) -> None:
        if (connector, task) in self._tasks:
            self._tasks[connector, task].pause()

    def resume_task(self, connector: str, task: int) -> None:
        if (connector, task) in self._tasks:
            self._tasks[connector, task].resume()

    def run_job(self, connector: str, task: int) -> bool:
        """Whether the task is a job, which runs now."""
        return (connector, task) in self._tasks and self._tasks[connector, task].run_job()

    def cancel_job(self, connector: str, task: int) -> bool:
        """Whether a run of the task's job was under way, which ends now."""
        return (connector, task) in self._tasks and self._tasks[connector, task].cancel_job()

    def shutdown(self) -> None:
        """End this process; tasks were stopped before."""
        threading.Timer(0.05, os._exit, (0,)).start()

    def _tell_statistics(self) -> None:
        """Once a second: that this process lives, what it takes, what has changed, and who hangs."""
        told: dict[tuple[str, int], tuple[object, Mapping[str, Any]]] = {}
        pause = threading.Event()
        for second in count():
            pause.wait(1)
            clients = {"clients": clients_of_process()} if second % _CLIENTS_EVERY == 0 else {}
            self._link.event("alive", memory_bytes=resident_bytes(), **clients)
            for connector in list(self._connectors.values()):
                connector.watch()
            tasks = dict(self._tasks)
            told = {key: known for key, known in told.items() if known[0] is tasks.get(key)}
            for key, hosted in tasks.items():
                hosted.watch()
                now = hosted.statistics()
                # The worker has forgotten those of an earlier task by this name, even if they were the same.
                if key not in told or now != told[key][1]:
                    told[key] = hosted, now
                    self._link.event("statistics", connector=key[0], task=key[1], values=now)


def _rights(texts: list[str]) -> list[Right]:
    return [Right.parse(text) for text in texts]
