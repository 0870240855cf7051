"""A standalone cluster of Spark on loopback: the master and workers of pyspark's own jars."""

from __future__ import annotations

import importlib.util
import json
import urllib.request
from pathlib import Path
from typing import Any

from tests.servers.java import QUICK, java
from tests.servers.process import ServerProcess, free_ports, wait_until

__all__ = ["SparkCluster"]


class SparkCluster:
    """A master at ``url``, and workers of one core each."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        self._home, self._directory = Path(spec.origin).parent, directory
        (port, self._web) = free_ports(2)
        self.url = f"spark://127.0.0.1:{port}"
        self._master = self._process("master", "master.Master", str(port), str(self._web))
        self.workers = [self._worker(number) for number in range(workers)]

    def _worker(self, number: int) -> ServerProcess:
        port, web = free_ports(2)
        more = [self.url, "--cores", "1", "--memory", "600m", "--work-dir", str(self._directory / f"work-{number}")]
        return self._process(f"worker {number}", "worker.Worker", str(port), str(web), *more)

    def _process(self, name: str, main: str, port: str, web: str, *more: str) -> ServerProcess:
        listen = ["--host", "127.0.0.1", "--port", port, "--webui-port", web]
        return ServerProcess(
            f"Spark's {name}",
            [
                java(),
                "-Xmx256m",
                *QUICK,
                "-cp",
                f"{self._home}/jars/*",
                f"org.apache.spark.deploy.{main}",
                *listen,
                *more,
            ],
            log=self._directory / f"{name}.log",
            ready=lambda: main.startswith("worker") or self._state() is not None,
            # Executors inherit it: they get no Python but the one that a job names.
            environment={
                "SPARK_HOME": str(self._home),
                "SPARK_SCALA_VERSION": "2.13",  # what Spark's scripts find out
                "SPARK_LOCAL_IP": "127.0.0.1",
                "JAVA_HOME": str(Path(java()).resolve().parents[1]),
                "PYTHONPATH": "",
            },
        )

    def start(self) -> None:
        self._master.start()
        for worker in self.workers:
            worker.start()
        wait_until(lambda: self.alive == len(self.workers), "the workers of Spark have registered")

    def stop(self) -> None:
        for process in (*self.workers, self._master):
            process.stop()

    @property
    def alive(self) -> int:
        """How many workers the master knows to be alive."""
        state = self._state()
        return sum(worker["state"] == "ALIVE" for worker in state["workers"]) if state else 0

    def _state(self) -> Any:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._web}/json/", timeout=2) as response:
                return json.load(response)
        except (OSError, ValueError):  # at its start it answers with a page
            return None
