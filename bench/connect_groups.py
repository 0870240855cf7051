"""Groups of three Connect workers over one Apache Kafka, ours and Kafka Connect's: a worker joins and one leaves in order,
with 100 connectors of one task each; and, ours alone, 1,000 connectors created at once.

No delay holds back what a worker that leaves has had (scheduled.rebalance.max.delay.ms=0, on both sides); the keys of
heartbeats are Kafka Connect's defaults. Seconds are from the order to all tasks RUNNING where they belong, evenly.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import psutil
import requests
from rich.console import Console

from bench.paired import Case, Measured, measure, show
from tests.servers.kafka import FOR_SPEED, KafkaBroker, KafkaConnect
from tests.servers.process import ServerProcess, free_ports, wait_until

__all__ = ["main"]

CONNECTORS, CROWD, WORKERS = 100, 1000, 3
_NUMBERS = count()


class OurWorker:
    """A worker of ours in a process of its own, as ``KafkaConnect`` is one of theirs."""

    def __init__(self, folder: Path, bootstrap: str, settings: Mapping[str, str]) -> None:
        folder.mkdir(parents=True)
        (port,) = free_ports(1)
        self.url, ready = f"http://127.0.0.1:{port}", folder / "ready"
        properties = {
            "bootstrap.servers": bootstrap,
            "listeners": self.url,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            **settings,
        }
        (folder / "worker.properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        command = [sys.executable, "-m", "tidegate.cli", "serve", "connect", str(folder / "worker.properties")]
        self.process = ServerProcess(
            "our worker", [*command, "--ready-file", str(ready)], log=folder / "log", ready=ready.exists
        )

    def start(self) -> None:
        self.process.start()

    def stop(self) -> None:
        self.process.stop()


def settings() -> dict[str, str]:
    """Of a group of its own."""
    group = f"bench-{next(_NUMBERS)}"
    topics = {f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")}
    factors = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    return {"group.id": group, **topics, **factors, "scheduled.rebalance.max.delay.ms": "0"}


@contextmanager
def workers(kind: type[Any], folder: Path, bootstrap: str, number: int) -> Iterator[list[Any]]:
    """``number`` workers, made and not started."""
    properties, made = settings(), []
    for n in range(number):
        data = folder / f"{properties['group.id']}-{n}"
        more = {"jvm": FOR_SPEED} if kind is KafkaConnect else {}
        made.append(kind(data, bootstrap, properties, **more))
    try:
        yield made
    finally:
        for worker in made:
            worker.stop()


def create(url: str, names: Sequence[str], folder: Path) -> None:
    """Create file sources, many at a time; again where the group says that it is rebalancing."""
    file = folder / "lines"
    file.write_text("line\n")
    config = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": str(file)}

    def one(name: str) -> None:
        body = {"name": name, "config": {**config, "topic": "bench-lines"}}
        for _ in range(200):
            answer = requests.post(f"{url}/connectors", json=body, timeout=120)
            if answer.status_code == requests.codes.created or "already exists" in answer.text:
                return
            time.sleep(0.25)
        raise AssertionError(f"{name}: {answer.status_code} {answer.text}")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, names))


def running(url: str) -> Counter[str]:
    """How many tasks run on each worker."""
    with suppress(requests.RequestException, ValueError):
        shown = requests.get(f"{url}/connectors?expand=status", timeout=60).json()
        tasks = (task for entry in shown.values() for task in entry["status"]["tasks"])
        return Counter(task["worker_id"] for task in tasks if task["state"] == "RUNNING")
    return Counter()


def wait_even(url: str, total: int, over: int) -> float:
    """Wait until ``total`` tasks run, evenly, on so many workers; returns the seconds."""
    began = time.monotonic()
    least = total // over

    def even() -> bool:
        on = running(url)
        return sum(on.values()) == total and len(on) == over and set(on.values()) <= {least, least + 1}

    wait_until(even, f"{total} tasks on {over} workers", 300, pause_s=0.1)
    return time.monotonic() - began


def join_and_leave(kind: type[Any], folder: Path, bootstrap: str) -> Measured:
    with workers(kind, folder, bootstrap, WORKERS) as group:
        for worker in group[:2]:
            worker.start()
        create(group[0].url, [f"lines-{n}" for n in range(CONNECTORS)], folder)
        wait_even(group[0].url, CONNECTORS, 2)
        group[2].start()  # returns when it answers; its start is not what is measured
        joined_s = wait_even(group[0].url, CONNECTORS, 3)
        began = time.monotonic()
        group[2].stop()
        wait_even(group[0].url, CONNECTORS, 2)
        memory = sum(_pss(worker.process.pid) for worker in group[:2]) / 2
        return {
            "s, a third worker joins": joined_s,
            "s, it leaves in order": time.monotonic() - began,
            "MB a worker, 50 tasks": memory / 1e6,
        }


def crowd(folder: Path, bootstrap: str, number: int, over: int) -> dict[str, float]:
    """So many connectors at once on so many workers: rebalances, seconds, memory."""
    with workers(OurWorker, folder, bootstrap, over) as group:
        for worker in group:
            worker.start()
        time.sleep(3)
        before, began = _epoch(group[0].url), time.monotonic()
        create(group[0].url, [f"crowd-{n}" for n in range(number)], folder)
        created_s = time.monotonic() - began
        wait_even(group[0].url, number, over)
        return {
            "s to create": created_s,
            "s until all run": time.monotonic() - began,
            "rebalances": _epoch(group[0].url) - before,
            "MB, all workers": sum(_pss(worker.process.pid) for worker in group) / 1e6,
        }


def _epoch(url: str) -> float:
    text = requests.get(f"{url}/metrics", timeout=30).text
    line = next(line for line in text.splitlines() if line.startswith("kafka_connect_worker_rebalance_epoch "))
    return float(line.split()[1])


def _pss(pid: int) -> int:
    """Memory of a process and its children, what they share counted once."""
    process = psutil.Process(pid)
    return sum(member.memory_full_info().pss for member in (process, *process.children(recursive=True)))


def main(folder: Path, runs: int, console: Console) -> None:
    kafka = KafkaBroker(folder / "kafka", jvm=FOR_SPEED)
    kafka.start()
    try:
        bootstrap = kafka.bootstrap_servers
        case = Case(
            f"{CONNECTORS} connectors, 3 workers",
            lambda: join_and_leave(OurWorker, folder / "ours", bootstrap),
            lambda: join_and_leave(KafkaConnect, folder / "theirs", bootstrap),
        )
        show("Connect groups", {case.name: measure(case, runs, console)}, console)
        for number, over in ((100, 1), (CROWD, 1), (CROWD, 3)):
            figures = crowd(folder / "ours", bootstrap, number, over)
            told = ", ".join(f"{value:.3g} {name}" for name, value in figures.items())
            console.print(f"{number} connectors created at once, {over} worker(s) of ours: {told}")
    finally:
        kafka.stop()
