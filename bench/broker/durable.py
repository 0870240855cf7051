"""The cost of waiting for the disk: 16 producers with acks=all, our broker with fsync beside our broker with the page
cache.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from bench.broker.sides import Side, our_broker
from bench.paired import Case, Measured, measure, show

__all__ = ["main"]

_PRODUCERS = 16
_RECORDS = 60_000


def _sixteen(side: Side) -> Measured:
    topic = side.create_topic(_PRODUCERS)

    def run(partition: int) -> None:
        producer = Producer({"bootstrap.servers": side.bootstrap, "log_level": 0, "acks": "all", "linger.ms": 5})
        for _ in range(_RECORDS):
            while True:
                try:
                    producer.produce(topic, b"x" * 100, partition=partition)
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.flush()

    began, before = time.perf_counter(), side.cpu_s()
    with ThreadPoolExecutor(_PRODUCERS) as threads:
        list(threads.map(run, range(_PRODUCERS)))
    seconds, cpu = time.perf_counter() - began, side.cpu_s() - before
    side.delete_topic(topic)
    total = _PRODUCERS * _RECORDS
    return {"records/s": total / seconds, "broker CPU µs/record": cpu * 1e6 / total}


def _fsync_ms(folder: Path) -> float:
    """The median of fdatasync behind a write of 16 KiB on this disk, in milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    took = []
    with (folder / "probe").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(os.urandom(16384))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    return sorted(took)[100]


def main(folder: Path, runs: int, console: Console) -> None:
    console.print(f"this disk's fdatasync of 16 KiB: {_fsync_ms(folder / 'probe'):.2f} ms")
    with (
        our_broker(folder / "disk", acks_all_durability="disk") as disk,
        our_broker(folder / "slow", program="bench.broker.slow_disk", acks_all_durability="disk") as slow,
        our_broker(folder / "cache") as cache,
    ):
        cases = (
            Case("16 producers, 100 B, acks=all", lambda: _sixteen(disk), lambda: _sixteen(cache)),
            Case("the same, a disk that takes 1 ms", lambda: _sixteen(slow), lambda: _sixteen(cache)),
        )
        show(
            "Durable producing: ours waiting for the disk, and for the page cache",
            {case.name: measure(case, runs, console) for case in cases},
            console,
        )
