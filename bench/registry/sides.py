"""The registries under measurement, each a process of its own over the same broker."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import requests

from tests.servers.process import free_ports

__all__ = ["Side", "karapace", "karapace_python", "ours"]


@dataclass
class Side:
    """A registry under measurement, ready to write.

    ``ready_s`` is how long it took from its start to answering a question about what the log holds.
    """

    url: str
    pid: int
    ready_s: float

    def cpu_s(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system

    def memory_mb(self) -> float:
        """Memory of its own (PSS: shared libraries counted in part)."""
        return psutil.Process(self.pid).memory_full_info().pss / 1e6


Start = Callable[[Path, str, str, str], contextlib.AbstractContextManager[Side]]


@contextlib.contextmanager
def ours(folder: Path, bootstrap: str, topic: str, asked: str = "/subjects") -> Iterator[Side]:
    """Our registry, as ``tidegate serve registry`` runs it."""
    (port,) = free_ports(1)
    properties = folder / "registry.properties"
    settings = {
        "listeners": f"http://127.0.0.1:{port}",
        "kafkastore.bootstrap.servers": bootstrap,
        "kafkastore.topic": topic,
        "kafkastore.topic.replication.factor": "1",
        "schema.registry.group.id": topic,
    }
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = [sys.executable, "-m", "tidegate.cli", "serve", "registry", str(properties)]
    with _running(command, {}, folder / "registry.log", f"http://127.0.0.1:{port}", asked) as side:
        yield side


def karapace_python() -> str | None:
    """The Python in which Karapace is installed, from KARAPACE_PYTHON; Karapace is not on the package index."""
    return os.environ.get("KARAPACE_PYTHON")


@contextlib.contextmanager
def karapace(folder: Path, bootstrap: str, topic: str, asked: str = "/subjects") -> Iterator[Side]:
    (port,) = free_ports(1)
    settings = {
        "KARAPACE_BOOTSTRAP_URI": bootstrap,
        "KARAPACE_HOST": "127.0.0.1",
        "KARAPACE_PORT": str(port),
        "KARAPACE_ADVERTISED_HOSTNAME": "127.0.0.1",
        "KARAPACE_TOPIC_NAME": topic,
        "KARAPACE_GROUP_ID": topic,
        "KARAPACE_REPLICATION_FACTOR": "1",
        "KARAPACE_LOG_LEVEL": "WARNING",
    }
    command = [str(karapace_python()), "-m", "karapace"]
    with _running(command, settings, folder / "karapace.log", f"http://127.0.0.1:{port}", asked) as side:
        yield side


@contextlib.contextmanager
def _running(command: list[str], settings: Mapping[str, str], log: Path, url: str, asked: str) -> Iterator[Side]:
    began = time.monotonic()
    with log.open("ab") as file:
        process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=file, stderr=file)
    try:
        _until(lambda: requests.get(url + asked, timeout=60).status_code == 200, process, log)
        side = Side(url, process.pid, time.monotonic() - began)
        body = {"schema": '"string"'}
        _until(lambda: requests.post(f"{url}/subjects/first/versions", json=body, timeout=60).ok, process, log)
        yield side
    finally:
        process.terminate()
        process.wait(30)


def _until(succeeds: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(requests.RequestException):
            if succeeds():
                return
        time.sleep(0.01)
    raise RuntimeError(f"the registry did not get ready:\n{log.read_text()[-2000:]}")
