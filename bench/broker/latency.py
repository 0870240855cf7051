"""Latency: the 99th percentile of producing at half of Kafka's highest rate, and records end to end at 100 a second."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer
from rich.console import Console

from bench.broker.produce import PARTITIONS, produce
from bench.broker.sides import Side, both
from bench.paired import Case, Measured, measure, show

__all__ = ["main"]

_SECONDS = 8
_RECORDS, _EVERY_S = 500, 0.01


def _at_rate(side: Side, size: int, rate: int) -> Measured:
    topic = side.create_topic(PARTITIONS)
    measured = produce(side, topic, records=rate * _SECONDS, size=size, acks="all", rate=rate)
    side.delete_topic(topic)
    return {"p99 ms": measured["p99 ms"]}


def _end_to_end(side: Side) -> Measured:
    """One producer and one consumer in this process, linger 0: from before ``produce`` to after ``poll``."""
    topic = side.create_topic(1)
    producer = Producer({"bootstrap.servers": side.bootstrap, "log_level": 0, "linger.ms": 0, "acks": "all"})
    consumer = Consumer(
        {
            "bootstrap.servers": side.bootstrap,
            "log_level": 0,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 500,
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    producer.produce(topic, b"first")
    producer.flush()
    assert consumer.poll(30) is not None
    took = []
    for _ in range(_RECORDS):
        began = time.perf_counter()
        producer.produce(topic, b"x" * 100)
        producer.poll(0)
        message = consumer.poll(10)
        assert message is not None and not message.error()
        took.append((time.perf_counter() - began) * 1000)
        time.sleep(max(0.0, _EVERY_S - (time.perf_counter() - began)))
    consumer.close()
    side.delete_topic(topic)
    return {"p50 ms": statistics.median(took), "p99 ms": statistics.quantiles(took, n=100)[98]}


def main(folder: Path, runs: int, console: Console) -> None:
    with both(folder) as (ours, theirs):
        results = {}
        for size, records in ((100, 1_000_000), (1024, 250_000)):
            rates = []
            for _ in range(3):
                topic = theirs.create_topic(PARTITIONS)
                rates.append(produce(theirs, topic, records=records, size=size, acks="all")["records/s"])
                theirs.delete_topic(topic)
            rate = int(max(rates) / 2)
            case = Case(
                f"produce {size} B at {rate:,} records/s, acks=all",
                lambda s=size, r=rate: _at_rate(ours, s, r),
                lambda s=size, r=rate: _at_rate(theirs, s, r),
            )
            results[case.name] = measure(case, runs, console)
        case = Case("end to end, 100 records/s", lambda: _end_to_end(ours), lambda: _end_to_end(theirs))
        results[case.name] = measure(case, runs, console)
        show("Latency: ours and Apache Kafka 4.3.1", results, console)
