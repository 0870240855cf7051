"""The keys of task hosts, which Kafka Connect does not have: its tasks share the worker's process."""

from __future__ import annotations

from tidegate.kit.config import KeyType, at_least, config, key

__all__ = ["HostConfig"]


@config
class HostConfig:
    """The number of task hosts, and when one is replaced."""

    host_processes: int = key(
        "task.host.processes",
        default=0,
        type=KeyType.INT,
        check=at_least(0),
        importance="low",
        doc="Task-host processes that share the tasks; 0 means one per processor core.",
    )
    memory_max_bytes: int = key(
        "task.host.memory.max.bytes",
        default=0,
        check=at_least(0),
        importance="low",
        doc="Memory that one task-host process may take. One that takes more is drained and replaced, and its tasks start "
        "again; with task.isolation=process that is the one task that leaks. 0 is no limit.",
    )
    silence_timeout_ms: int = key(
        "task.host.silence.timeout.ms",
        default=60_000,
        check=at_least(0),
        importance="low",
        doc="A task-host process that says nothing for so long (each says every second that it lives) has its stacks "
        "logged, is killed and replaced, and its tasks start again. 0 never.",
    )
