"""A Connect worker that has little to do: time until it is ready, memory with ten connectors before and after they run."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import requests
from rich.console import Console

from bench.connect import STRING, our_worker
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker

__all__ = ["main"]

CONNECTORS = 10
SETTLING_S = 3.0


def pss_mb(pid: int) -> tuple[float, int]:
    """The proportional share of memory of a process and its children in MB, and how many they are."""
    worker = psutil.Process(pid)
    processes = [worker, *worker.children(recursive=True)]
    return sum(process.memory_full_info().pss for process in processes) / 1e6, len(processes)


def main(folder: Path, runs: int, console: Console) -> None:
    broker = TidegateBroker(folder / "broker")
    broker.start()
    ready: list[float] = []
    try:
        for number in range(runs):
            began = time.perf_counter()
            with our_worker(folder / f"ours{number}", broker.bootstrap_servers, registry=False) as worker:
                ready.append(time.perf_counter() - began)
                if number + 1 == runs:
                    _memory(worker.url, worker.pid, folder, console)
    finally:
        broker.stop()
    console.print(
        f"ready: {sorted(ready)[len(ready) // 2]:.2f} s, of {', '.join(f'{one:.2f}' for one in sorted(ready))}"
    )


def _memory(url: str, pid: int, folder: Path, console: Console) -> None:
    names = [f"lines-{number}" for number in range(CONNECTORS)]
    for name in names:
        file = folder / f"{name}.txt"
        file.write_text("a line\n")
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(file),
            "topic": name,
            "key.converter": STRING,
            "value.converter": STRING,
        }
        body = {"name": name, "config": config, "initial_state": "STOPPED"}
        assert requests.post(f"{url}/connectors", json=body, timeout=60).status_code == 201
    time.sleep(SETTLING_S)
    console.print("before the first task: {:.0f} MB in {} processes".format(*pss_mb(pid)))
    for name in names:
        assert requests.put(f"{url}/connectors/{name}/resume", timeout=60).status_code == 202

    def running() -> bool:
        shown = requests.get(f"{url}/connectors?expand=status", timeout=60).json().values()
        states = [task["state"] for one in shown for task in one["status"]["tasks"]]
        return states == ["RUNNING"] * CONNECTORS

    wait_until(running, "all tasks running", 120, pause_s=0.1)
    time.sleep(SETTLING_S)
    console.print(f"{CONNECTORS} tasks running: " + "{:.0f} MB in {} processes".format(*pss_mb(pid)))
