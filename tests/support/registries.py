"""Registries in separate processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from pathlib import Path

from tests.servers.process import wait_until

__all__ = ["RegistryProcess"]

_PROGRAM = """
import json, pathlib, sys
from registry.server.config import RegistryConfig
from registry.server.service import RegistryServer
from tidegate.kit import logs
from tidegate.kit.config import parse
from tidegate.kit.service import run
logs.configure("INFO", "json")
sys.exit(run(RegistryServer(parse(RegistryConfig, json.loads(sys.argv[1]))), ready_file=pathlib.Path(sys.argv[2])))
"""


class RegistryProcess:
    """One registry, starting; ``url`` waits until it answers."""

    def __init__(self, directory: Path, settings: dict[str, str]) -> None:
        self._ready = directory / f"ready-{uuid.uuid4().hex}"
        self.log = directory / "registry.log"
        with self.log.open("ab") as log:
            command = [sys.executable, "-c", _PROGRAM, json.dumps(settings), str(self._ready)]
            self.process = subprocess.Popen(command, stderr=log, stdout=log)

    @property
    def url(self) -> str:
        wait_until(lambda: self._ready.exists() or self.process.poll() is not None, "the registry to be ready")
        assert self._ready.exists(), self.log.read_text()
        return str(json.loads(self._ready.read_text())["addresses"]["registry"])

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal; a stopped process is continued first. Returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.send_signal(signal.SIGCONT)
        return self.process.wait(60)
