"""A disk that can be slowed down: a file system in a file, and a limit on how often a group of processes writes to it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["SlowDisk", "why_not"]

_BLKIO: Final = Path("/sys/fs/cgroup/blkio")


def why_not() -> str | None:
    """Why no disk can be slowed down here; None if one can be."""
    if not os.access("/dev/loop-control", os.W_OK):
        return "there are no loop devices"
    if not (_BLKIO / "cgroup.procs").exists() or not os.access(_BLKIO, os.W_OK):
        return f"{_BLKIO} (version 1 of control groups) can't be written"
    return None


class SlowDisk:
    """Mounted at ``folder`` in this mount namespace, with which it ends. Processes whose commands were put ``inside`` are slow."""

    def __init__(self, folder: Path, name: str, megabytes: int) -> None:
        image = folder.with_name(f"{folder.name}.img")
        with image.open("wb") as file:
            file.truncate(megabytes << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-o", "loop", str(image), str(folder)], check=True)
        device = folder.stat().st_dev
        self._device = f"{os.major(device)}:{os.minor(device)}"
        self._group = _BLKIO / f"tidegate-{name}"
        self._group.mkdir(exist_ok=True)

    def inside(self, command: Sequence[str]) -> list[str]:
        return ["sh", "-c", f'echo $$ > {self._group}/cgroup.procs; exec "$@"', "sh", *command]

    def slow(self, writes_a_second: int) -> None:
        """0: as fast as it is."""
        (self._group / "blkio.throttle.write_iops_device").write_text(f"{self._device} {writes_a_second}")

    def close(self) -> None:
        """Once its processes have ended."""
        self._group.rmdir()
