"""A Connect worker in a separate process, for tests: ``python -m connect.testing.worker PROPERTIES READY PLUGINS...``
runs it; PLUGINS are modules with a ``register_plugins`` hook.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    import requests

__all__ = ["TestWorker", "eventually", "settled", "worker_properties"]

_WAIT_S: Final = 90.0
T = TypeVar("T")


def eventually(ask: Callable[[], T], holds: Callable[[T], bool], what: str, timeout_s: float = _WAIT_S) -> T:
    """The first answer for which ``holds`` is true. Raises AssertionError with the last one after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not holds(answer := ask()):
        assert time.monotonic() < deadline, f"{what}: not within {timeout_s:g} s; last it was {answer}"
        time.sleep(0.05)
    return answer


def settled(answer: requests.Response) -> bool:
    """Whether a worker, ours or the original, did not request a retry because of a rebalance.

    The original mostly does so with 409, and with 500 if the rebalance began while the request was waiting.
    """
    return answer.status_code not in (409, 500) or not any(word in answer.text for word in ("rebalance", "momentarily"))


def worker_properties(name: str, bootstrap_servers: str, settings: Mapping[str, str]) -> dict[str, str]:
    """A worker's configuration: its group and topics are named after ``name``, and timeouts are short."""
    json_converters = {f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")}
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": name,
        "config.storage.topic": f"{name}-configs",
        "offset.storage.topic": f"{name}-offsets",
        "status.storage.topic": f"{name}-status",
        "offset.storage.partitions": "3",
        "status.storage.partitions": "2",
        "replication.factor.fit": "true",
        **json_converters,
        **{f"{side}.converter.schemas.enable": "false" for side in ("key", "value")},
        "offset.flush.interval.ms": "300",
        "consumer.session.timeout.ms": "6000",
        **settings,
    }


class TestWorker:
    """Started by its constructor.

    It has one task host, so that leaks can be counted there; ``folder`` is on its import path and has its log.
    """

    __test__ = False

    def __init__(self, folder: Path, bootstrap_servers: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._ready = folder, folder / "ready.json"
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        name = f"faults-{os.getpid()}-{time.time_ns()}"
        settings = {
            "listeners": "http://127.0.0.1:0",
            "task.host.processes": "1",
            "task.shutdown.graceful.timeout.ms": "3000",
        }
        properties = worker_properties(name, bootstrap_servers, settings)
        (folder / "worker.json").write_text(json.dumps(properties))
        self._log = (folder / "worker.log").open("ab")
        path = os.pathsep.join([str(folder), *(entry or str(Path.cwd()) for entry in sys.path)])
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "connect.testing.worker",
                str(folder / "worker.json"),
                str(self._ready),
                "connect.testing.refusing",
            ],
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
        """The temporary files of its processes, including the folders of ended task hosts."""
        files = {path.relative_to(self.scratch) for path in self.scratch.rglob("*")}
        tops = {path for path in files if len(path.parts) == 1}
        if self.task_host() is not None and len(tops) == 1:
            files -= tops  # the folder of the running host
        return {str(path) for path in files}

    def task_host(self) -> int | None:
        """The pid of the process with the tasks; None if there is none."""
        import psutil

        pids = [p.pid for p in psutil.Process(self._process.pid).children() if "connect.worker.host" in p.cmdline()]
        return pids[0] if pids else None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON. Retries while the worker rebalances. Raises AssertionError if it refuses."""
        import requests

        def once() -> Any:
            return requests.request(method, self.url + path, json=body, timeout=60)

        answer = eventually(once, settled, f"{method} {path}")
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def status(self, name: str) -> tuple[str, list[str], str]:
        """The connector's state, those of its tasks, and what went wrong."""
        import requests

        answer = requests.get(f"{self.url}/connectors/{name}/status", timeout=60)
        if not answer.ok:
            return "", [], ""
        status_ = answer.json()
        parts = [status_["connector"], *status_["tasks"]]
        return (
            parts[0]["state"],
            [task["state"] for task in status_["tasks"]],
            "\n".join(part["trace"] for part in parts if "trace" in part),
        )


def main() -> int:
    from connect.server.distributed import ConnectServer
    from tidegate.kit import logs, service

    logs.configure("INFO", "json")
    server = ConnectServer(json.loads(Path(sys.argv[1]).read_text()), sys.argv[3:])
    return service.run(server, ready_file=Path(sys.argv[2]))


if __name__ == "__main__":
    sys.exit(main())
