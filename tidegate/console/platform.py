"""The platform on this machine: components with state, address and memory, its disk, and its certificate."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tidegate.state import component_state, read_state, with_memory

__all__ = ["ComponentLine", "Disk", "certificate_days", "components", "disk_of"]

_NO_ADDRESS: Final = "ca"
_LITTLE_SHARE: Final = 0.05
_LITTLE_BYTES: Final = 2_000_000_000


@dataclass(frozen=True)
class ComponentLine:
    """A component of the platform."""

    name: str
    state: str
    """ready, starting, or late: it gives no sign of life."""
    addresses: dict[str, str]
    memory_bytes: float
    restarts: int
    silent_s: float | None


@dataclass(frozen=True)
class Disk:
    """The disk of the data folder."""

    folder: str
    free_bytes: int
    total_bytes: int

    @property
    def is_nearly_full(self) -> bool:
        return self.free_bytes < min(_LITTLE_SHARE * self.total_bytes, _LITTLE_BYTES)


def components(data: Path) -> list[ComponentLine]:
    """The components of the platform on a folder, as its supervisor sees them; none if it does not run."""
    state = read_state(data)
    if state is None or not state.running:
        return []
    return [_line(name, component) for name, component in state.components.items()]


def _line(name: str, component: dict[str, Any]) -> ComponentLine:
    since = component.get("silent_since")
    return ComponentLine(
        name=name,
        state=component_state(component),
        addresses={face: address for face, address in component["addresses"].items() if face != _NO_ADDRESS},
        memory_bytes=with_memory(component)["memory_mb"] * 1e6,
        restarts=component["restarts"],
        silent_s=None if since is None else time.time() - since,
    )


def disk_of(data: Path) -> Disk | None:
    """None for a folder that does not exist."""
    try:
        usage = shutil.disk_usage(data)
    except OSError:
        return None
    return Disk(str(data), usage.free, usage.total)


def certificate_days(pem: Path) -> float | None:
    """In how many days the first certificate of a PEM file ends; None if there is none."""
    from cryptography import x509

    try:
        ends = x509.load_pem_x509_certificate(pem.read_bytes()).not_valid_after_utc
    except (OSError, ValueError):
        return None
    return (ends.timestamp() - time.time()) / 86_400
