"""A Connect worker that has little to do: time until it is ready, memory with ten connectors before and after they run, and
with a hundred."""

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

CONNECTORS, CROWD = 10, 100
SETTLING_S = 3.0


def pss_mb(pid: int) -> tuple[float, int]:
    """The proportional share of memory of a process and its children in MB, and how many they are."""
    worker = psutil.Process(pid)
    processes = [worker, *worker.children(recursive=True)]
    return sum(process.memory_full_info().pss for process in processes) / 1e6, len(processes)


def main(folder: Path, runs: int, console: Console) -> None:
    broker = TidegateBroker(folder / "broker")
    broker.start()
    ready: list[tuple[float, float]] = []
    try:
        for number in range(runs):
            began = time.perf_counter()
            with our_worker(folder / f"ours{number}", broker.bootstrap_servers, registry=False) as worker:
                ready.append((time.perf_counter() - began, _cpu_s(worker.pid)))
                if number + 1 == runs:
                    _memory(worker.url, worker.pid, folder, console)
    finally:
        broker.stop()
    each = ", ".join(f"{wall_s:.2f}" for wall_s, _ in sorted(ready))
    middle = len(ready) // 2
    cpu_s = sorted(cpu_s for _, cpu_s in ready)[middle]
    console.print(f"ready: {sorted(ready)[middle][0]:.2f} s, of {each}; it takes {cpu_s:.2f} s of processor time")


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)


def _memory(url: str, pid: int, folder: Path, console: Console) -> None:
    names = [f"lines-{number}" for number in range(CROWD)]
    first = names[:CONNECTORS]
    for name in first:
        _create(url, folder, name, state="STOPPED")
    time.sleep(SETTLING_S)
    console.print("before the first task: {:.0f} MB in {} processes".format(*pss_mb(pid)))
    for name in first:
        assert requests.put(f"{url}/connectors/{name}/resume", timeout=60).status_code == 202
    _running(url, pid, len(first), console)
    for name in names[CONNECTORS:]:
        _create(url, folder, name, state="RUNNING")
    _running(url, pid, len(names), console)


def _create(url: str, folder: Path, name: str, *, state: str) -> None:
    file = folder / f"{name}.txt"
    file.write_text("a line\n")
    config = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(file),
        "topic": name,
        "key.converter": STRING,
        "value.converter": STRING,
    }
    body = {"name": name, "config": config, "initial_state": state}
    answer = requests.post(f"{url}/connectors", json=body, timeout=60)
    assert answer.status_code == 201, answer.text


def _running(url: str, pid: int, count: int, console: Console) -> None:
    def running() -> bool:
        shown = requests.get(f"{url}/connectors?expand=status", timeout=60).json().values()
        states = [task["state"] for connector in shown for task in connector["status"]["tasks"]]
        return states == ["RUNNING"] * count

    wait_until(running, "all tasks running", 300, pause_s=0.1)
    time.sleep(SETTLING_S)
    console.print(f"{count} tasks running: " + "{:.0f} MB in {} processes".format(*pss_mb(pid)))
