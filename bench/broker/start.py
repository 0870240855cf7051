"""Starting, idling, and many partitions: seconds to the first metadata answer, memory, and the size of an answer's delay."""

from __future__ import annotations

import contextlib
import socket
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from bench.wire import exactly
from bench.broker.sides import Side, apache_broker, our_broker
from bench.paired import Case, Measured, measure, show

__all__ = ["main"]

_CONNECTIONS = 200
_MANY = 10_000

Start = Callable[[], AbstractContextManager[Side]]


def _started(start: Start) -> Measured:
    """Of a folder that is there: Apache Kafka's is made by another program."""
    with start():
        pass
    began = time.perf_counter()
    with start() as side:
        return {"ready s": time.perf_counter() - began, "memory MB": side.memory_mb()}


def _loaded(start: Start) -> Measured:
    """1,000 partitions, 200 connections, 2,000,000 records of 100 B."""
    with start() as side, contextlib.ExitStack() as stack:
        topic = side.create_topic(1000)
        host, port = side.bootstrap.split(":")
        for _ in range(_CONNECTIONS):
            stack.enter_context(socket.create_connection((host, int(port))))
        producer = Producer(
            {"bootstrap.servers": side.bootstrap, "log_level": 0, "linger.ms": 10, "partitioner": "random"}
        )
        for _ in range(2_000_000):
            while True:
                try:
                    producer.produce(topic, b"x" * 100)
                    break
                except BufferError:
                    producer.poll(0.05)
        producer.flush()
        return {"memory MB": side.memory_mb()}


def _metadata_ms(side: Side) -> float:
    """The quickest of ten answers to Metadata v12 for all topics."""
    host, port = side.bootstrap.split(":")
    body = struct.pack(">hhih", 3, 12, 1, -1) + b"\0" + b"\0" + b"\0\0" + b"\0"
    best = float("inf")
    with socket.create_connection((host, int(port))) as sock:
        for _ in range(10):
            began = time.perf_counter()
            sock.sendall(struct.pack(">i", len(body)) + body)
            (left,) = struct.unpack(">i", exactly(sock, 4))
            exactly(sock, left)
            best = min(best, (time.perf_counter() - began) * 1000)
    return best


def _many(start: Start) -> Measured:
    """A second start with 10,000 partitions, and what Metadata for all of them takes."""
    with start() as side:
        missing = _MANY - sum(len(topic.partitions) for topic in side.topics().values())
        for _ in range(missing // 1000):
            side.create_topic(1000)
    began = time.perf_counter()
    with start() as side:
        return {
            "ready s": time.perf_counter() - began,
            "metadata ms": _metadata_ms(side),
            "memory MB": side.memory_mb(),
        }


def main(folder: Path, runs: int, console: Console) -> None:
    def fresh(broker: Callable[[Path], AbstractContextManager[Side]]) -> Start:
        scratch = Path(tempfile.mkdtemp(dir=folder))
        return lambda: broker(scratch / "data")

    def case(name: str, measured: Callable[[Start], Measured]) -> Case:
        return Case(name, lambda: measured(fresh(our_broker)), lambda: measured(fresh(apache_broker)))

    results = {}
    for bench_case in (
        case("start", _started),
        case("1,000 partitions and 200 connections", _loaded),
        case("10,000 partitions", _many),
    ):
        results[bench_case.name] = measure(bench_case, runs, console)
    show("Start and memory: ours and Apache Kafka 4.3.1", results, console)
