"""Compaction beside clients: records/s of a round in its own process, and what it does to the p99 of produce requests."""

from __future__ import annotations

import os
import random
import re
import socket
import statistics
import time
import uuid
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.recovery import now_ms, produce_request, receive
from broker.log import compaction
from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.metadata.image import ClusterMetadata
from broker.protocol.records import Record, encode_batch
from tests.servers.tidegate_broker import TidegateBroker
from tidegate.kit.config import parse

RECORDS = 2_000_000
KEYS = 200_000
RATE = 200
CONFIG = {"cleanup.policy": "compact", "segment.bytes": str(32 << 20)}


def main(folder: Path, runs: int, console: Console) -> None:
    table = Table("compaction", "figure", "median")
    rates, ratios, quiet, busy = [], [], [], []
    for run in range(runs):
        rates.append(alone(folder / f"alone-{run}"))
        without, beside = produced_beside(folder / f"beside-{run}")
        quiet.append(without * 1000)
        busy.append(beside * 1000)
        ratios.append(beside / without)
    table.add_row(f"{RECORDS:,} records of 100 B, {KEYS:,} keys", "records/s", f"{statistics.median(rates):,.0f}")
    table.add_row(f"{RATE} produce requests/s of 10 kB, acks=1", "p99 ms without", f"{statistics.median(quiet):.2f}")
    table.add_row("", "p99 ms during compaction", f"{statistics.median(busy):.2f}")
    table.add_row("", "ratio", f"{statistics.median(ratios):.2f}")
    console.print(table)


def fill(path: Path, topics: int) -> LogDirectory:
    directory = LogDirectory(path)
    directory.open()
    metadata = ClusterMetadata.open(directory)
    metadata.create_topic("load")
    chosen, now = random.Random(1), now_ms()  # noqa: S311 - the same keys each time
    for number in range(topics):
        metadata.create_topic(f"table{number}", configs=CONFIG)
        (log,) = metadata.logs(f"table{number}")
        for _ in range(0, RECORDS // topics, 200):
            made = [Record(b"key-%08d" % chosen.randrange(KEYS), b"v" * 80, (), now) for _ in range(200)]
            log.append(encode_batch(made), now_ms=now, from_client=False)
    return directory


def alone(path: Path) -> float:
    directory = LogDirectory(path)
    directory.open()
    log = directory.create("t", 0, uuid.uuid4(), parse(LogConfig, CONFIG))
    now = now_ms()
    for _ in range(0, RECORDS // 4, 200):
        made = [Record(b"key-%08d" % random.randrange(KEYS), b"v" * 80, (), now) for _ in range(200)]  # noqa: S311
        log.append(encode_batch(made), now_ms=now, from_client=False)
    log.appender.roll()
    work = compaction.plan_compaction(log, now + 1)
    assert work is not None
    began = time.perf_counter()
    done = compaction.run(work)
    taken = time.perf_counter() - began
    directory.close()
    return done.records_before / taken


def produced_beside(path: Path) -> tuple[float, float]:
    """p99 in seconds of an open loop of produce requests: without compaction, and while it runs."""
    fill(path / "log", 2).close()
    settings = {"log.cleaner.backoff.ms": "15000", "acks.all.durability": "page-cache"}
    broker = TidegateBroker(path, settings)
    broker.start()
    try:
        without = latencies(broker.port, 8, lambda: False)
        text = path / "server.log"
        while "compacted" not in text.read_text() and not started(broker.process.pid):
            time.sleep(0.01)
        during = latencies(broker.port, 60, lambda: len(re.findall('"event": "compacted"', text.read_text())) >= 2)
    finally:
        broker.stop()
    return p99(without), p99(during)


def started(pid: int) -> bool:
    """Whether the broker has a process for compaction."""
    return any(path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/children"))


def latencies(port: int, seconds: float, ended: object) -> list[float]:
    """Measured from when a request was due, so that a stall counts for all that had to wait."""
    assert callable(ended)
    request = produce_request([0], encode_batch([Record(None, os.urandom(10_000), (), now_ms())]))
    latencies_ms: list[float] = []
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = due = time.perf_counter()
        while due - began < seconds:
            time.sleep(max(0.0, due - time.perf_counter()))
            sock.sendall(request)
            receive(sock)
            latencies_ms.append(time.perf_counter() - due)
            due += 1 / RATE
            if len(latencies_ms) % RATE == 0 and ended():
                break
    return latencies_ms


def p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]
