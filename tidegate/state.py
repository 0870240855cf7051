"""The state of a platform on this machine as ``tidegate up`` records it: its components, their addresses and memory."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["State", "component_state", "read_state", "with_memory"]


@dataclass
class State:
    """The state that ``up`` records in DATA/run/platform.json."""

    pid: int
    started: float
    bootstrap_servers: str
    components: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def addresses(self) -> dict[str, str]:
        """Every face's address by name."""
        return {name: address for c in self.components.values() for name, address in c["addresses"].items()}

    @property
    def running(self) -> bool:
        """Whether that process is still running: after a crash or a reboot its id may belong to another program, and in a
        container it may stay listed for ever, because nobody waits for it."""
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.pid)
            return process.create_time() <= self.started + 1 and process.status() != psutil.STATUS_ZOMBIE
        return False


def read_state(data: Path) -> State | None:
    """The state recorded by the running, or the last, platform on ``data``; None if there was none."""
    try:
        return State(**json.loads((data / "run" / "platform.json").read_text()))
    except (OSError, json.JSONDecodeError, TypeError):
        return None


def component_state(component: Mapping[str, Any]) -> str:
    return "late" if component.get("silent_since") else "ready" if component["ready"] else "starting"


def with_memory(component: Mapping[str, Any]) -> dict[str, Any]:
    return {**component, "memory_mb": _memory_mb(component["pid"])}


def _memory_mb(pid: int | None) -> float:
    """PSS of a process and its descendants, in MB; RSS if the system does not report PSS."""
    import psutil

    if pid is None:
        return 0.0
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    total = 0
    for member in family:
        try:
            info = member.memory_full_info()
            total += getattr(info, "pss", 0) or info.rss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return round(total / 1e6, 1)
