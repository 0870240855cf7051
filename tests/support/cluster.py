"""Several Connect workers as one group."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests

from tests.servers.process import wait_until
from tests.support.worker import ConnectWorker

__all__ = ["WorkerCluster"]

QUICK = {
    "heartbeat.interval.ms": "500",
    "session.timeout.ms": "6000",
    "scheduled.rebalance.max.delay.ms": "0",
    "task.host.processes": "1",
    "offset.storage.partitions": "2",
}


class WorkerCluster:
    """``workers`` by name; each keeps its address over restarts."""

    def __init__(
        self,
        directory: Path,
        bootstrap_servers: str,
        group: str,
        settings: Mapping[str, str] | None = None,
        count: int = 3,
    ) -> None:
        worker_settings = {**QUICK, **(settings or {})}
        self.workers = [
            ConnectWorker(directory / f"worker-{n}", bootstrap_servers, worker_settings, name=group)
            for n in range(count)
        ]

    def start(self) -> None:
        for worker in self.workers:
            worker.start()
        wait_until(lambda: len(self.members()) == len(self.workers), "all workers in the group")

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()

    def members(self) -> set[str]:
        """The workers that say they are healthy; each waits for the group to answer."""
        return {worker.url for worker in self.workers if self._answers(worker)}

    def _answers(self, worker: ConnectWorker) -> bool:
        try:
            return requests.get(f"{worker.url}/health", timeout=5).status_code == 200
        except (OSError, requests.RequestException):
            return False

    def running(self, name: str, at: ConnectWorker | None = None) -> Counter[str]:
        """The number of a connector's tasks on each worker."""
        answer = requests.get(f"{(at or self.workers[0]).url}/connectors/{name}/status", timeout=60)
        shown: dict[str, Any] = answer.json() if answer.ok else {"tasks": []}
        return Counter(task["worker_id"] for task in shown["tasks"] if task["state"] == "RUNNING")

    def places(self, name: str, at: ConnectWorker | None = None) -> dict[int, str]:
        """The worker of each running task."""
        answer = requests.get(f"{(at or self.workers[0]).url}/connectors/{name}/status", timeout=60)
        shown: dict[str, Any] = answer.json() if answer.ok else {"tasks": []}
        return {task["id"]: task["worker_id"] for task in shown["tasks"] if task["state"] == "RUNNING"}

    def wait_spread(self, name: str, *counts: int, at: ConnectWorker | None = None, timeout_s: float = 90) -> float:
        """Wait until the tasks run on as many workers as there are counts, with so many on each; returns the seconds."""
        began = time.monotonic()
        try:
            wait_until(lambda: sorted(self.running(name, at).values()) == sorted(counts), f"{name} {counts}", timeout_s)
        except TimeoutError as error:
            raise AssertionError(f"{error}; it is {self.running(name, at)}") from None
        return time.monotonic() - began
