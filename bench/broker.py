"""Produce and consume with Kafka's own Java perf tools, against our broker and Apache Kafka, page-cache durability on both."""

from __future__ import annotations

import contextlib
import re
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from rich.console import Console

from bench.paired import Case, Measured, measure, show
from tests.servers.kafka import FOR_SPEED, KafkaBroker, kafka_tool, metadata_answers
from tests.servers.process import ServerProcess, free_ports

__all__ = ["main", "our_broker"]


@dataclass
class Side:
    """A broker under measurement."""

    bootstrap: str
    pid: int

    def cpu_s(self) -> float:
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system


@contextlib.contextmanager
def our_broker(folder: Path, **settings: str) -> Iterator[Side]:
    port, metrics = free_ports(2)
    given = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(folder),
        "metrics.listen": f"127.0.0.1:{metrics}",
        "acks.all.durability": "page-cache",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    arguments = [argument for name, value in given.items() for argument in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "tidegate.cli", "serve", "broker", *arguments]
    process = ServerProcess("our broker", command, log=folder / "broker.log", ready=lambda: metadata_answers(port))
    folder.mkdir(parents=True, exist_ok=True)
    process.start()
    try:
        yield Side(f"127.0.0.1:{port}", process.pid)
    finally:
        process.stop()


@contextlib.contextmanager
def apache_broker(folder: Path) -> Iterator[Side]:
    broker = KafkaBroker(folder, heap="1G", jvm=FOR_SPEED)
    broker.start()
    try:
        yield Side(broker.bootstrap_servers, broker.process.pid)
    finally:
        broker.stop()


def produce(side: Side, *, records: int, size: int, acks: str, more: tuple[str, ...] = ()) -> tuple[str, Measured]:
    """Fill a new topic of four partitions; returns its name and the figures."""
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    kafka_tool("kafka-topics", "--bootstrap-server", side.bootstrap, "--create", "--topic", topic, "--partitions", "4")
    before = side.cpu_s()
    printed = kafka_tool(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", str(records), "--record-size", str(size),
        "--throughput", "-1", "--producer-props", f"bootstrap.servers={side.bootstrap}", f"acks={acks}", *more,
        timeout_s=300, jvm=FOR_SPEED,
    )  # fmt: skip
    last = printed.strip().splitlines()[-1]
    rate = re.search(r"([\d.]+) records/sec", last)
    p99 = re.search(r"([\d.]+) ms 99th", last)
    assert rate and p99, last
    cpu = (side.cpu_s() - before) * 1e6 / records
    return topic, {"records/s": float(rate[1]), "p99 ms": float(p99[1]), "broker CPU µs/record": cpu}


def consume(side: Side, topic: str, records: int) -> Measured:
    before = side.cpu_s()
    printed = kafka_tool(
        "kafka-consumer-perf-test", "--bootstrap-server", side.bootstrap, "--topic", topic, "--messages", str(records),
        "--timeout", "60000", timeout_s=300, jvm=FOR_SPEED,
    )  # fmt: skip
    columns = [text.strip() for text in printed.strip().splitlines()[-1].split(",")]
    return {"fetch MB/s": float(columns[8]), "broker CPU s": side.cpu_s() - before}


def main(folder: Path, runs: int, console: Console, *, records: int = 1_000_000) -> None:
    with our_broker(folder / "ours") as ours, apache_broker(folder / "apache") as theirs:
        results = {}
        for size, acks, n in ((100, "all", records), (100, "1", records), (1024, "all", records // 4)):
            case = Case(
                f"produce {size} B, defaults, acks={acks}",
                lambda n=n, size=size, acks=acks: produce(ours, records=n, size=size, acks=acks)[1],
                lambda n=n, size=size, acks=acks: produce(theirs, records=n, size=size, acks=acks)[1],
            )
            results[case.name] = measure(case, runs, console)
        topics = [produce(side, records=records, size=100, acks="1")[0] for side in (ours, theirs)]
        case = Case(
            "consume 100 B",
            lambda: consume(ours, topics[0], records),
            lambda: consume(theirs, topics[1], records),
        )
        results[case.name] = measure(case, runs, console)
        show("Broker: ours and Apache Kafka 4.3.1", results, console)
