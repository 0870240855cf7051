"""Fetch: by a raw client that throws the bytes away, by Kafka's perf tool, and a whole compacted topic."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from bench.wire import exactly
from bench.broker.produce import produce
from bench.broker.sides import Side, both
from bench.paired import Case, Measured, measure, show
from broker.client import BatchConsumer, ClientConfig
from tests.servers.kafka import FOR_SPEED, kafka_tool

__all__ = ["main"]

_PRODUCTS = 1_000_000
_FETCH_BYTES = 8 * 1024 * 1024
_RAW_RECORDS = 500_000


def _fill(side: Side, size: int, records: int, partitions: int) -> str:
    topic = side.create_topic(partitions)
    produce(side, topic, records=records, size=size, acks="1", more=("batch.size=131072", "linger.ms=10"))
    return topic


def _raw(side: Side, topic: str) -> Measured:
    """Fetch (v11) 8 MiB at a time along one partition, four times over; the kernel drops the bytes (MSG_TRUNC)."""
    host, port = side.bootstrap.split(":")
    before, began, taken = side.cpu_s(), time.perf_counter(), 0
    with socket.create_connection((host, int(port))) as sock:
        for offset in list(range(0, _RAW_RECORDS, _FETCH_BYTES // 1200)) * 4:
            body = struct.pack(">hhih", 1, 11, 1, -1)
            body += struct.pack(">iiiibii", -1, 100, 1, 1 << 30, 0, 0, -1) + struct.pack(">i", 1)
            body += struct.pack(">h", len(topic)) + topic.encode() + struct.pack(">i", 1)
            body += struct.pack(">iiqqi", 0, -1, offset, -1, _FETCH_BYTES) + struct.pack(">ih", 0, 0)
            sock.sendall(struct.pack(">i", len(body)) + body)
            (size,) = struct.unpack(">i", exactly(sock, 4))
            left = size
            while left:
                left -= sock.recv_into(_NOWHERE, min(left, len(_NOWHERE)), socket.MSG_TRUNC)
            taken += size
    assert taken > 4 * _RAW_RECORDS * 1024, "the fetches did not bring the whole topic"
    seconds = time.perf_counter() - began
    return {"MB/s": taken / 1e6 / seconds, "broker CPU s": side.cpu_s() - before}


_NOWHERE = bytearray(4 * 1024 * 1024)


def _perf_consume(side: Side, topic: str, records: int) -> Measured:
    before = side.cpu_s()
    printed = kafka_tool(
        "kafka-consumer-perf-test", "--bootstrap-server", side.bootstrap, "--topic", topic, "--messages", str(records),
        "--timeout", "60000", timeout_s=300, jvm=FOR_SPEED,
    )  # fmt: skip
    columns = [text.strip() for text in printed.strip().splitlines()[-1].split(",")]
    return {"fetch MB/s": float(columns[8]), "broker CPU s": side.cpu_s() - before}


def _products(side: Side) -> str:
    """A compacted topic of 1,000,000 keys with values of 100 B."""
    topic = side.create_topic(1, cleanup_policy="compact")
    producer = Producer({"bootstrap.servers": side.bootstrap, "log_level": 0, "linger.ms": 20, "batch.size": 500_000})
    for number in range(_PRODUCTS):
        while True:
            try:
                producer.produce(topic, key=b"%08d" % number, value=b"p" * 100)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return topic


def _read_products(side: Side, topic: str) -> Measured:
    """Into our own columnar consumer: seconds until the last record is there."""

    async def read() -> float:
        began, count = time.perf_counter(), 0
        async with BatchConsumer(ClientConfig(side.bootstrap, {"auto.offset.reset": "earliest"})) as consumer:
            await consumer.assign([(topic, 0)])
            while count < _PRODUCTS:
                count += sum(len(part.columns()) for part in await consumer.fetch())
        return time.perf_counter() - began

    return {"seconds": asyncio.run(read())}


def main(folder: Path, runs: int, console: Console) -> None:
    with both(folder) as (ours, theirs):
        results = {}
        topics = [_fill(side, 1024, _RAW_RECORDS, 1) for side in (ours, theirs)]
        case = Case(
            "fetch 1 partition, bytes thrown away",
            lambda: _raw(ours, topics[0]),
            lambda: _raw(theirs, topics[1]),
        )
        results[case.name] = measure(case, runs, console)
        for size, records in ((100, 2_000_000), (1024, 500_000)):
            filled = [_fill(side, size, records, 4) for side in (ours, theirs)]
            case = Case(
                f"consume {size} B, 4 partitions",
                lambda t=filled[0], n=records: _perf_consume(ours, t, n),
                lambda t=filled[1], n=records: _perf_consume(theirs, t, n),
            )
            results[case.name] = measure(case, runs, console)
        products = [_products(side) for side in (ours, theirs)]
        case = Case(
            "1,000,000 products, Java's ConsumerPerformance",
            lambda: _perf_consume(ours, products[0], _PRODUCTS),
            lambda: _perf_consume(theirs, products[1], _PRODUCTS),
        )
        results[case.name] = measure(case, runs, console)
        _read_products(ours, products[0])  # numpy and pyarrow are loaded here, not in the first run
        case = Case(
            "1,000,000 products, BatchConsumer",
            lambda: _read_products(ours, products[0]),
            lambda: _read_products(theirs, products[1]),
        )
        results[case.name] = measure(case, runs, console)
        show("Fetch: ours and Apache Kafka 4.3.1", results, console)
