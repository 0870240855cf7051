"""A platform started with its own command, and queries that tests send to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import requests

from tests.support.leftovers import left

__all__ = ["RunningPlatform", "running_platform", "tidegate", "until"]


def tidegate(
    *arguments: Any, check: bool = True, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, with these variables beside those of the tests, maybe in another folder."""
    command = [sys.executable, "-m", "tidegate.cli", *map(str, arguments)]
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=variables, cwd=folder)
    assert not check or done.returncode == 0, done.stderr
    return done


def until(condition: Callable[[], Any], what: str = "the condition", timeout_s: float = 120) -> None:
    asked = time.monotonic()
    deadline = asked + timeout_s
    while not condition():
        now = time.monotonic()
        assert now < deadline, f"{what}: not within {timeout_s:g} s"
        time.sleep(
            max(0.05, now - asked)
        )  # a question that starts a process leaves the processor to others half of the time
        asked = time.monotonic()


class RunningPlatform:
    """The services that ``tidegate up`` runs on ``data``."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def status(self) -> dict[str, Any]:
        return json.loads(tidegate("status", "--data", self.data, "--json").stdout)

    @cached_property
    def addresses(self) -> dict[str, str]:
        """The supervisor chooses them once, and components that start again keep them."""
        return self.status()["addresses"]

    @cached_property
    def bootstrap_servers(self) -> str:
        return self.status()["bootstrap_servers"]

    def kill(self, component: str) -> None:
        """SIGKILL; the supervisor starts it again."""
        pid = self.status()["components"][component]["pid"]
        if pid is not None:
            os.kill(pid, signal.SIGKILL)

    def create(self, name: str, **config: Any) -> None:
        """Post a connector and wait until all its tasks run."""
        url = self.addresses["connect"]
        config = {key.replace("__", "."): str(value) for key, value in config.items()}
        answer = requests.post(f"{url}/connectors", json={"name": name, "config": config}, timeout=60)
        assert answer.status_code == 201, answer.text
        until(lambda: self.runs(name), f"connector {name} running")

    def runs(self, name: str) -> bool:
        status = requests.get(f"{self.addresses['connect']}/connectors/{name}/status", timeout=60)
        if status.status_code != 200:
            return False
        body = status.json()
        assert not any(part["state"] == "FAILED" for part in (body["connector"], *body["tasks"])), body
        return bool(body["tasks"]) and all(task["state"] == "RUNNING" for task in body["tasks"])

    def consume(self, topic: str) -> list[dict[str, Any]]:
        """Everything in a topic, decoded; nothing while a source has not made it yet."""
        done = tidegate("consume", topic, "--from-beginning", "--to-end", "--data", self.data, check=False)
        if done.returncode:
            assert "no such topic" in done.stderr, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


@contextlib.contextmanager
def running_platform(folder: Path, *options: str, console: bool = False) -> Iterator[RunningPlatform]:
    """``tidegate up`` on free ports; ``tidegate down`` at the end."""
    data = folder / "data"
    without = () if console else ("--without", "console")
    tidegate("up", "--detach", "--data", data, "--broker-listen", "127.0.0.1:0", *without, *options)
    try:
        yield RunningPlatform(data)
    finally:
        tidegate("down", "--data", data)
        left(data / "broker")
