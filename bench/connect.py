"""Connect workers over one Apache Kafka: the file source beside Kafka Connect's, and the JDBC source, for which no JVM
original can be had from Maven Central (docs/explanation/benchmarks.md names the recorded figures it is held against)."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import requests
from rich.console import Console

from bench.paired import Case, Measured, measure, show
from broker.client import ClientConfig, TopicPartition
from broker.client.blocking import Admin
from tests.servers.kafka import FOR_SPEED, KafkaBroker, KafkaConnect
from tests.servers.process import ServerProcess, free_ports, wait_until

__all__ = ["Memory", "Worker", "end_of", "kafka_worker", "main", "our_worker"]

ROWS = 1_000_000
LINE = "2013-01-01T10:00:00Z,UA1545,N14228,EWR,IAH,517,515,2,830,819,11,227,1400," + "x" * 75
STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


class Memory:
    """The most that a process and its children held while inside, in MB."""

    def __init__(self, pid: int) -> None:
        self._process, self._over = psutil.Process(pid), threading.Event()
        self.most = 0.0

    def __enter__(self) -> Memory:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            with contextlib.suppress(psutil.NoSuchProcess):
                processes = [self._process, *self._process.children(recursive=True)]
                self.most = max(self.most, sum(p.memory_full_info().pss for p in processes) / 1e6)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def end_of(admin: Admin, topic: str) -> int:
    """How many records the one partition of a topic has; none where there is no such topic."""
    partition = TopicPartition(topic, 0)
    return admin.end_offsets([partition])[partition] if topic in admin.list_topics() else 0


@dataclass
class Worker:
    """A Connect worker under measurement."""

    url: str
    pid: int
    bootstrap: str
    registry: str = ""
    """The address of a schema registry, if there is one."""

    def cpu_s(self) -> float:
        process = psutil.Process(self.pid)
        times = [p.cpu_times() for p in (process, *process.children(recursive=True))]
        return sum(t.user + t.system for t in times)

    @contextlib.contextmanager
    def connector(self, name: str, config: dict[str, str]) -> Iterator[str]:
        """A connector while inside, by its address."""
        answer = requests.post(f"{self.url}/connectors", json={"name": name, "config": config}, timeout=60)
        assert answer.status_code == 201, answer.text
        try:
            yield f"{self.url}/connectors/{name}"
        finally:
            requests.delete(f"{self.url}/connectors/{name}", timeout=60)

    def run_source(self, config: dict[str, str], topic: str, rows: int) -> Measured:
        """Post a source, wait until ``rows`` are in ``topic``, delete it; rates from the first record on."""
        name = f"bench-{uuid.uuid4().hex[:8]}"
        before = self.cpu_s()
        with Admin(ClientConfig(self.bootstrap)) as admin, self.connector(name, config):
            wait_until(lambda: end_of(admin, topic) > 0, "the first record", timeout_s=120, pause_s=0.005)
            first, began = end_of(admin, topic), time.perf_counter()
            wait_until(lambda: end_of(admin, topic) >= rows, "all records", timeout_s=300, pause_s=0.01)
            seconds = time.perf_counter() - began
            cpu = self.cpu_s() - before
        return {"rows/s": (rows - first) / seconds, "worker CPU s per 1M rows": cpu / rows * 1e6}


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.ConnectionError:
        return False


@contextlib.contextmanager
def our_worker(folder: Path, bootstrap: str, *, registry: bool = True) -> Iterator[Worker]:
    """A worker by its own command; with ``registry`` a schema registry beside it. TIDEGATE_PYTHON is a Python with Tidegate alone:
    beside the tests' packages Arrow and ADBC load pandas and polars, which takes each process 80 MB."""
    (port, registry_port) = free_ports(2)
    folder.mkdir(parents=True)
    serve = [os.environ.get("TIDEGATE_PYTHON", sys.executable), "-m", "tidegate.cli", "serve"]
    settings = {
        "listeners": f"http://127.0.0.1:{port}",
        "bootstrap.servers": bootstrap,
        "group.id": "bench-ours",
        "config.storage.topic": "ours-configs",
        "offset.storage.topic": "ours-offsets",
        "status.storage.topic": "ours-status",
        "key.converter": STRING,
        "value.converter": STRING,
        "replication.factor.fit": "true",
        "value.converter.schema.registry.url": f"http://127.0.0.1:{registry_port}",
    }
    registry_settings = {
        "listeners": f"http://127.0.0.1:{registry_port}",
        "kafkastore.bootstrap.servers": bootstrap,
        "kafkastore.topic.replication.factor": "1",
    }
    processes = [
        ServerProcess(
            name,
            [*serve, name, *(a for key, value in properties.items() for a in ("--set", f"{key}={value}"))],
            log=folder / f"{name}.log",
            ready=lambda url=url: answers(url),
        )
        for name, properties, url in (
            ("registry", registry_settings, f"http://127.0.0.1:{registry_port}/subjects"),
            ("connect", settings, f"http://127.0.0.1:{port}/"),
        )
        if registry or name == "connect"
    ]
    with contextlib.ExitStack() as running:
        for process in processes:
            process.start()
            running.callback(process.stop)
        yield Worker(
            f"http://127.0.0.1:{port}",
            processes[-1].pid,
            bootstrap,
            f"http://127.0.0.1:{registry_port}" if registry else "",
        )


@contextlib.contextmanager
def kafka_worker(folder: Path, bootstrap: str, settings: dict[str, str] | None = None) -> Iterator[Worker]:
    worker = KafkaConnect(folder, bootstrap, settings, heap="2G", jvm=FOR_SPEED)
    worker.process.start()
    try:
        yield Worker(worker.url, worker.process.pid, bootstrap)
    finally:
        worker.process.stop()


def file_source(worker: Worker, file: Path) -> Measured:
    topic = f"lines-{uuid.uuid4().hex[:8]}"
    config = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(file),
        "topic": topic,
        "tasks.max": "1",
        "key.converter": STRING,
        "value.converter": STRING,
    }
    return worker.run_source(config, topic, ROWS)


def jdbc_source(worker: Worker, database: Path, converter: dict[str, str]) -> Measured:
    prefix = f"b{uuid.uuid4().hex[:8]}_"
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "connection.url": f"jdbc:sqlite:{database}",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": "rows",
        "topic.prefix": prefix,
        "batch.max.rows": "10000",
        "tasks.max": "1",
        "key.converter": STRING,
        **converter,
    }
    return worker.run_source(config, f"{prefix}rows", ROWS)


def make_database(path: Path) -> None:
    """1,000,000 rows of eight mixed columns, about 150 bytes each."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE rows (id INTEGER PRIMARY KEY, a INTEGER NOT NULL, b BIGINT, price DOUBLE, "
            "flag BOOLEAN, name VARCHAR(40) NOT NULL, note VARCHAR(90), moment TIMESTAMP)"
        )
        rows = (
            (
                n,
                n % 1000,
                n * 7919,
                n / 3,
                n % 2,
                f"name {n % 5000}",
                "x" * 80 if n % 4 else None,
                "2013-01-01 10:00:00.000",
            )
            for n in range(1, ROWS + 1)
        )
        database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        database.commit()


JDBC_CASES = {
    "Avro": {"value.converter": "io.confluent.connect.avro.AvroConverter"},
    "JSON without schemas": {"value.converter": JSON, "value.converter.schemas.enable": "false"},
    "JSON with schemas": {"value.converter": JSON, "value.converter.schemas.enable": "true"},
}


def main(folder: Path, runs: int, console: Console) -> None:
    lines = folder / "lines.txt"
    lines.write_text(f"{LINE}\n" * ROWS)
    make_database(folder / "rows.db")
    broker = KafkaBroker(folder / "kafka", heap="1G", jvm=FOR_SPEED)
    broker.start()
    try:
        bootstrap = broker.bootstrap_servers
        with our_worker(folder / "ours", bootstrap) as ours, kafka_worker(folder / "theirs", bootstrap) as theirs:
            case = Case("file source", lambda: file_source(ours, lines), lambda: file_source(theirs, lines))
            show("Connect worker: ours and Kafka Connect 4.3.1", {case.name: measure(case, runs, console)}, console)
            for name, converter in JDBC_CASES.items():
                with console.status(f"JDBC source, {name}"):
                    figures = [jdbc_source(ours, folder / "rows.db", converter) for _ in range(runs)]
                rates = sorted(f["rows/s"] for f in figures)
                cpu = sorted(f["worker CPU s per 1M rows"] for f in figures)
                console.print(
                    f"JDBC source, SQLite, {name}: {rates[len(rates) // 2]:,.0f} rows/s, {cpu[len(cpu) // 2]:.2f} CPU s per 1M rows"
                )
    finally:
        broker.stop()
