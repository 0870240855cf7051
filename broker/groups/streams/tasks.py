"""Tasks of a Kafka Streams application: partitions of its subtopologies, in three roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["NOTHING", "NO_TASKS", "Assigned", "TaskEpochs", "Tasks", "TasksByRole", "tasks_of"]

Tasks = Mapping[str, frozenset[int]]
"""Partition numbers by subtopology id."""

TaskEpochs = Mapping[str, Mapping[int, int]]
"""Like ``Tasks``, each with the epoch in which it was assigned."""


@dataclass(frozen=True, slots=True)
class TasksByRole:
    """A member's target: active tasks that it processes, standby and warm-up tasks whose state it copies."""

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Assigned:
    """The tasks that a member currently has."""

    active: TaskEpochs = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    @property
    def roles(self) -> TasksByRole:
        return TasksByRole(tasks_of(self.active), self.standby, self.warmup)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


NO_TASKS: Final = TasksByRole()
NOTHING: Final = Assigned()


def tasks_of(epochs: TaskEpochs) -> Tasks:
    return {subtopology: frozenset(partitions) for subtopology, partitions in epochs.items()}
