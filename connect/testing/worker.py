"""A Connect worker in a process of its own, for tests: ``python -m connect.testing.worker PROPERTIES READY`` runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

__all__ = ["TestWorker", "eventually"]

_WAIT_S: Final = 90.0
T = TypeVar("T")


def eventually(ask: Callable[[], T], holds: Callable[[T], bool], what: str, timeout_s: float = _WAIT_S) -> T:
    """The first answer that holds; raises AssertionError with the last after the time."""
    deadline = time.monotonic() + timeout_s
    while not holds(answer := ask()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s:g} s; last it was {answer}"
        time.sleep(0.05)
    return answer


class TestWorker:
    """Started by its construction. One task host, so that what is left behind can be counted there; ``folder`` is on its
    import path and has its log."""

    __test__ = False

    def __init__(self, folder: Path, bootstrap_servers: str, settings: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._ready = folder, folder / "ready.json"
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        name = f"faults-{os.getpid()}-{time.time_ns()}"
        json_without_schemas = {"schemas.enable": "false"}
        properties = {
            "bootstrap.servers": bootstrap_servers,
            "group.id": name,
            "config.storage.topic": f"{name}-configs",
            "offset.storage.topic": f"{name}-offsets",
            "status.storage.topic": f"{name}-status",
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "replication.factor.fit": "true",
            "listeners": "http://127.0.0.1:0",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            **{f"{side}.converter.{k}": v for side in ("key", "value") for k, v in json_without_schemas.items()},
            "offset.flush.interval.ms": "300",
            "task.host.processes": "1",
            "task.shutdown.graceful.timeout.ms": "3000",
            "consumer.session.timeout.ms": "6000",
            **(settings or {}),
        }
        (folder / "worker.json").write_text(json.dumps(properties))
        self._log = (folder / "worker.log").open("ab")
        path = os.pathsep.join([str(folder), *(entry or str(Path.cwd()) for entry in sys.path)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "connect.testing.worker", str(folder / "worker.json"), str(self._ready)],
            stdout=self._log,
            stderr=self._log,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": path, "TMPDIR": str(self.scratch)},
        )
        eventually(self._began, bool, f"a worker; its log is {folder / 'worker.log'}")
        self.url = json.loads(self._ready.read_text())["addresses"]["connect"]

    def _began(self) -> bool:
        assert self._process.poll() is None, f"the worker has ended: {(self.folder / 'worker.log').read_text()[-2000:]}"
        return self._ready.exists()

    def close(self) -> None:
        """Stop it; killed after 30 s."""
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def temporary_files(self) -> set[str]:
        """What its processes have in their folder for such things; the folders of task hosts that have ended are among it."""
        host = self.task_host()
        found = {path.relative_to(self.scratch) for path in self.scratch.rglob("*")}
        folders = {path.parts[0] for path in found if len(path.parts) == 1}
        if host is not None and len(folders) == 1:
            found = {path for path in found if len(path.parts) > 1}
        return {str(path) for path in found}

    def task_host(self) -> int | None:
        """The pid of the process with the tasks; None while there is none."""
        import psutil

        found = [p.pid for p in psutil.Process(self._process.pid).children() if "connect.hosts" in p.cmdline()]
        return found[0] if found else None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON; asked again while the worker shares out work. Raises AssertionError where it refuses."""
        import requests

        def once() -> Any:
            return requests.request(method, self.url + path, json=body, timeout=60)

        answer = eventually(once, lambda got: got.status_code not in (409, 500), f"{method} {path}")
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def status(self, name: str) -> tuple[str, list[str], str]:
        """The connector's state, those of its tasks, and what went wrong."""
        import requests

        answer = requests.get(f"{self.url}/connectors/{name}/status", timeout=60)
        if not answer.ok:
            return "", [], ""
        found = answer.json()
        parts = [found["connector"], *found["tasks"]]
        return (
            parts[0]["state"],
            [task["state"] for task in found["tasks"]],
            "\n".join(part["trace"] for part in parts if "trace" in part),
        )


def main() -> int:
    from connect.server import ConnectServer
    from tidegate.kit import logs, service

    logs.configure("INFO", "json")
    server = ConnectServer(json.loads(Path(sys.argv[1]).read_text()), ["connect.testing.refusing"])
    return service.run(server, ready_file=Path(sys.argv[2]))


if __name__ == "__main__":
    sys.exit(main())
