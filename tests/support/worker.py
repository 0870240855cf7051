"""A Connect worker in a separate process, with the toy connectors."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests

from connect.testing.worker import settled, worker_properties
from tests.servers.process import ServerProcess, answer_when, free_ports, wait_until

__all__ = ["ConnectWorker", "settled"]

_TOYS = "tests.support.toy_plugins"


class ConnectWorker:
    """Start, ask, stop or kill; a start after that is the same worker again."""

    def __init__(
        self, directory: Path, bootstrap_servers: str, settings: Mapping[str, str] | None = None, *, name: str = "w"
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._properties, self._ready = directory / "worker.json", directory / "ready.json"
        defaults = {"listeners": f"http://127.0.0.1:{free_ports(1)[0]}", "task.host.processes": "2"}
        self.properties = worker_properties(name, bootstrap_servers, {**defaults, **(settings or {})})
        self._properties.write_text(json.dumps(self.properties))
        self.process = ServerProcess(
            "connect worker",
            [sys.executable, "-m", "connect.testing.worker", *map(str, (self._properties, self._ready)), _TOYS],
            log=directory / "worker.log",
            ready=self._ready.exists,
            environment={"PYTHONPATH": str(Path(__file__).parents[2])},
        )

    def start(self) -> None:
        self._ready.unlink(missing_ok=True)
        self.process.start()

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    @property
    def url(self) -> str:
        return str(json.loads(self._ready.read_text())["addresses"]["connect"])

    def ask(self, method: str, path: str, body: Any = None, expect: int | None = None) -> Any:
        """The answer as JSON. Where a status is expected, a worker that is sharing out work is asked again."""

        def once() -> requests.Response:
            return requests.request(method, self.url + path, json=body, timeout=60)

        if expect is None:
            answer = once()
        else:
            answer = answer_when(settled, once, f"{method} {path}")
            assert answer.status_code == expect, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def create(self, name: str, **config: str) -> Any:
        named = {key.replace("__", "-").replace("_", "."): value for key, value in config.items()}
        return self.ask("POST", "/connectors", {"name": name, "config": named}, expect=201)

    def fill(self, topic: str, total: int, *, source: str = "numbers", **config: str) -> None:
        """Write this many more numbers to a topic, with a separate connector (``toys.NumbersConnector``); returns when
        they are there.
        """
        defaults = {"connector_class": "org.toys.NumbersConnector", "topic": topic, "total": str(total), "batch": "10"}
        self.create(f"{topic}-{source}", **defaults, **config)
        path = f"/connectors/{topic}-{source}/offsets"
        wait_until(
            lambda: [entry["offset"] for entry in self.ask("GET", path)["offsets"]] == [{"n": total}],
            f"{topic} filled",
        )

    def committed(self, sink: str) -> dict[str, int]:
        """The offsets that a sink has committed, by topic; its topics have one partition."""
        listed = self.ask("GET", f"/connectors/{sink}/offsets")["offsets"]
        return {entry["partition"]["kafka_topic"]: entry["offset"]["kafka_offset"] for entry in listed}

    def state(self, name: str) -> dict[str, Any]:
        """States by part: ``connector``, 0, 1...; nothing while there is no status."""
        answer = requests.get(f"{self.url}/connectors/{name}/status", timeout=60)
        if not answer.ok:
            return {}
        shown = answer.json()
        return {"connector": shown["connector"]["state"]} | {task["id"]: task["state"] for task in shown["tasks"]}

    def wait_for(self, name: str, **states: str) -> None:
        """Wait until the connector and its tasks (``task0="RUNNING"``) are in these states."""
        expected = {int(k.removeprefix("task")) if k.startswith("task") else k: v for k, v in states.items()}
        try:
            wait_until(lambda: self.state(name) == expected, f"{name} {states}")
        except TimeoutError as error:
            shown = requests.get(f"{self.url}/connectors/{name}/status", timeout=60).text
            raise AssertionError(f"{error}; it is {shown}") from None
