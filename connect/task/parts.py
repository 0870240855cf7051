"""The parts of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from connect.api import Task
from connect.config.connector import sub_properties
from connect.config.worker import WorkerConfig
from connect.plugins.registry import PluginRegistry
from connect.task.clients import TaskClients, worker_client
from connect.task.control import TaskControl
from connect.task.lifecycle import TaskState
from connect.task.lineage import Flow
from tidegate.kit.config import parse

__all__ = ["TaskParts", "registry_keys", "registry_settings"]

_REGISTRY_KEYS: Final = ("schema.registry.", "basic.auth.", "bearer.auth.")
"""How keys of a registry client begin."""


@dataclass(frozen=True, slots=True)
class TaskParts:
    """The parts of a task. ``config`` are the connector's properties, ``properties`` the task's."""

    connector: str
    task: int
    task_class: type[Task[Any]]
    task_config: Any
    properties: Mapping[str, str]
    config: Mapping[str, str]
    worker: Mapping[str, str]
    plugins: PluginRegistry
    control: TaskControl
    offsets: Sequence[Mapping[str, Any]]
    on_state: Callable[[TaskState, BaseException | None], None]
    """Hears of each state of the task, with the error where its start is to be repeated."""
    on_topic: Callable[[str], None]
    on_flow: Callable[[Flow], None]
    """Hears what the task moves from where to where."""
    on_progress: Callable[[dict[str, Any]], None]
    ask_worker: Callable[[str], Any]
    """Ask the worker: "fence" (end what forerunners of the connector's tasks can write), "confirm" (the task is still to run
    as it was set up; raises where not), "offsets" (the connector's positions in the worker's topic)."""

    keep_offsets: Callable[[Mapping[bytes, Mapping[str, Any]]], None]
    """Have the worker commit positions, by their keys, where the task cannot (``connect.task.sources.worker_offsets``)."""

    @property
    def clients(self) -> TaskClients:
        return TaskClients(self.worker, self.connector, self.task, self.config)

    def context_arguments(self, worker: WorkerConfig) -> dict[str, Any]:
        return {
            "connector": self.connector,
            "task": self.task,
            "properties": self.properties,
            "stopping": self.control.stopping,
            "kafka": worker_client(self.worker),
            "registry": registry_settings(self.worker),
            "tell_progress": self.on_progress,
        }


def registry_settings(worker: Mapping[str, str]) -> dict[str, str]:
    """The settings of a client of the worker's schema registry; none where it has no registry."""
    url = parse(WorkerConfig, worker).schema_registry_url
    if url is None:
        return {}
    settings = sub_properties(worker, "value.converter.") if "schema.registry.url" not in worker else worker
    return {**registry_keys(settings), "schema.registry.url": url}


def registry_keys(settings: Mapping[str, str]) -> dict[str, str]:
    """Those settings that are a registry client's."""
    return {key: value for key, value in settings.items() if key.startswith(_REGISTRY_KEYS)}
