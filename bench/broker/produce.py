"""Produce with Kafka's own Java perf tool: record size x batching x compression x acks, page-cache durability on both sides."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

from rich.console import Console

from bench.broker.sides import Side, both
from bench.paired import Case, Measured, measure, show
from tests.servers.kafka import FOR_SPEED, kafka_tool

__all__ = ["main", "produce"]

BATCHING = {"defaults": (), "128k + 10 ms": ("batch.size=131072", "linger.ms=10")}
PARTITIONS = 4


def produce(
    side: Side, topic: str, *, records: int, size: int, acks: str, more: tuple[str, ...] = (), rate: int = -1
) -> Measured:
    """Run the perf tool once; ``rate`` is a throughput to keep, -1 for as fast as it can."""
    before = side.cpu_s()
    printed = kafka_tool(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", str(records), "--record-size", str(size),
        "--throughput", str(rate), "--producer-props", f"bootstrap.servers={side.bootstrap}", f"acks={acks}", *more,
        timeout_s=600, jvm=FOR_SPEED,
    )  # fmt: skip
    last = printed.strip().splitlines()[-1]
    last_rate = re.search(r"([\d.]+) records/sec", last)
    p99 = re.search(r"([\d.]+) ms 99th", last)
    assert last_rate and p99, last
    cpu = (side.cpu_s() - before) * 1e6 / records
    return {"records/s": float(last_rate[1]), "p99 ms": float(p99[1]), "broker CPU µs/record": cpu}


def _once(side: Side, *, records: int, size: int, acks: str, more: tuple[str, ...]) -> Measured:
    topic = side.create_topic(PARTITIONS)
    measured = produce(side, topic, records=records, size=size, acks=acks, more=more)
    side.delete_topic(topic)
    return measured


def main(folder: Path, runs: int, console: Console) -> None:
    scale = float(os.environ.get("BENCH_SCALE", "1"))
    with both(folder) as (ours, theirs):
        for side in (ours, theirs):  # the JVM compiles what is hot
            _once(side, records=int(1_000_000 * scale), size=100, acks="all", more=())
        results = {}
        for size, (batching, more), codec, acks in itertools.product(
            (100, 1024), BATCHING.items(), ("none", "lz4", "zstd"), ("all", "1")
        ):
            records = int((1_000_000 if size == 100 else 250_000) * scale)
            props = (*more, f"compression.type={codec}")
            case = Case(
                f"{size} B, {batching}, {codec}, acks={acks}",
                lambda n=records, s=size, a=acks, p=props: _once(ours, records=n, size=s, acks=a, more=p),
                lambda n=records, s=size, a=acks, p=props: _once(theirs, records=n, size=s, acks=a, more=p),
            )
            results[case.name] = measure(case, runs, console)
        show("Produce: ours and Apache Kafka 4.3.1", results, console)
