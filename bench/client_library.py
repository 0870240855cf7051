"""Finished batches through aiokafka and through kafka-python, in turn, against one Apache Kafka:
``python -m bench.client_library [rounds]``.

Rows of 150 bytes in batches of about 1 MB, idempotent, acks=all; Arrow to batch is inside the time of producing, and
fetching ends with the batches split and their CRCs checked. Prints rows a second and CPU time of each, and the
median ratios.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kafka
import kafka.consumer.fetcher as kafka_python_fetcher
import pyarrow as pa
from kafka.producer.producer_batch import ProducerBatch
from kafka.structs import TopicPartition

from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig, EncodedBatch, NewTopic
from broker.client.batches import split
from broker.client.blocking import call
from broker.client.columns import encode_batches
from tests.servers.kafka import KafkaBroker

ROWS_PER_CALL = 20_000
CALLS = 40
ROWS = ROWS_PER_CALL * CALLS
PARTITIONS = 2
VALUES = pa.array([b"%0150d" % row for row in range(ROWS_PER_CALL)])


async def aiokafka_produce(address: str, topic: str) -> None:
    async with BatchProducer(ClientConfig(address)) as producer:
        futures = []
        for number in range(CALLS):
            for batch in encode_batches(None, VALUES):
                futures.append(await producer.send_batch(topic, number % PARTITIONS, batch))
        await asyncio.gather(*futures)


async def aiokafka_fetch(address: str, topic: str) -> None:
    async with BatchConsumer(ClientConfig(address, {"max.partition.fetch.bytes": "4000000"})) as consumer:
        await consumer.assign([(topic, partition) for partition in range(PARTITIONS)])
        await consumer.seek_to_beginning()
        rows = 0
        while rows < ROWS:
            for fetched in await consumer.fetch(5000):
                rows += sum(batch.header.record_count for batch in fetched.batches)


class _Builder:
    """An EncodedBatch in the clothes of kafka-python's MemoryRecordsBuilder."""

    def __init__(self, batch: EncodedBatch) -> None:
        self._batch, self._data = batch, b""
        self.producer_id, self.producer_epoch, self.base_sequence = -1, -1, -1

    def append(self, *_: Any) -> None:
        return None

    def set_producer_state(self, producer_id: int, epoch: int, sequence: int, transactional: bool) -> None:
        self.producer_id, self.producer_epoch, self.base_sequence = producer_id, epoch, sequence

    def close(self) -> None:
        if not self._data:
            state = (self.producer_id, self.producer_epoch, self.base_sequence)
            self._data = self._batch.stamp(*state, transactional=False)

    def buffer(self) -> bytes:
        return self._data

    def next_offset(self) -> int:
        return self._batch.count

    def size_in_bytes(self) -> int:
        return len(self._batch)

    def compression_rate(self) -> float:
        return 1.0

    def is_full(self) -> bool:
        return True


def kafka_python_produce(address: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=address, enable_idempotence=True, acks="all", linger_ms=0)
    producer.partitions_for(topic)
    accumulator = producer._accumulator
    waiting: list[ProducerBatch] = []
    for number in range(CALLS):
        tp = TopicPartition(topic, number % PARTITIONS)
        for encoded in encode_batches(None, VALUES):
            batch = ProducerBatch(tp, _Builder(encoded))
            with accumulator._tp_lock(tp):
                accumulator._batches[tp].append(batch)
                accumulator._incomplete.add(batch)
            producer._sender.wakeup()
            waiting.append(batch)
            if len(waiting) > 2 * PARTITIONS:  # the same bound on memory as aiokafka's one queued batch a partition
                waiting.pop(0).produce_future.wait(60)
    for batch in waiting:
        batch.produce_future.wait(60)
    producer.close()


class _Piece:
    """Stands for a record that kafka-python returns: the bytes of one answer."""

    def __init__(self, data: bytes, offset: int) -> None:
        self.data, self.offset = data, offset


def kafka_python_fetch(address: str, topic: str) -> None:
    original = kafka_python_fetcher.Fetcher.PartitionRecords._unpack_records

    def unpack(self: Any, tp: Any, records: Any, *_: Any) -> Iterator[_Piece]:
        batches = list(split(memoryview(records._buffer), check_crc=True, where=str(tp)))
        self.records_read = sum(batch.header.record_count for batch in batches)
        offset = self.next_fetch_offset
        self.next_fetch_offset = batches[-1].header.last_offset + 1
        yield _Piece(self.records_read, offset)
        self.drain()

    kafka_python_fetcher.Fetcher.PartitionRecords._unpack_records = unpack
    try:
        consumer = kafka.KafkaConsumer(bootstrap_servers=address, max_partition_fetch_bytes=4_000_000)
        consumer.assign([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
        consumer.seek_to_beginning()
        rows = 0
        while rows < ROWS:
            for pieces in consumer.poll(timeout_ms=5000).values():
                rows += sum(piece.data for piece in pieces)
        consumer.close()
    finally:
        kafka_python_fetcher.Fetcher.PartitionRecords._unpack_records = original


def timed(work: Callable[[str, str], Any], address: str, topic: str) -> tuple[float, float]:
    """Rows a second, connecting included, and microseconds of this process's CPU time a row."""
    began, cpu = time.perf_counter(), time.process_time()
    outcome = work(address, topic)
    if asyncio.iscoroutine(outcome):
        asyncio.run(outcome)
    return ROWS / (time.perf_counter() - began), (time.process_time() - cpu) * 1e6 / ROWS


async def _create(address: str, topic: str) -> None:
    async with Admin(ClientConfig(address)) as admin:
        await admin.create_topics([NewTopic(topic, partitions=PARTITIONS)])


def main(rounds: int) -> None:
    rates: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaBroker(Path(folder), heap="1G")
        broker.start()
        try:
            address = broker.bootstrap_servers
            for number in range(rounds + 1):  # the first one warms the broker up and is not counted
                for produce, fetch in (
                    (aiokafka_produce, aiokafka_fetch),
                    (kafka_python_produce, kafka_python_fetch),
                ):
                    topic = f"bench-{uuid.uuid4().hex[:8]}"
                    call(_create(address, topic))
                    for work in (produce, fetch):
                        rate, cost = timed(work, address, topic)
                        if number:
                            rates.setdefault(work.__name__, []).append(rate)
                            costs.setdefault(work.__name__, []).append(cost)
        finally:
            broker.stop()
    for name, measured in rates.items():
        rate, cost = statistics.median(measured), statistics.median(costs[name])
        print(f"{name:24} {rate / 1e6:.2f} million rows/s, {cost:.2f} µs of CPU a row (medians of {len(measured)})")
    for what in ("produce", "fetch"):
        pairs = zip(rates[f"aiokafka_{what}"], rates[f"kafka_python_{what}"], strict=True)
        print(f"{what}: aiokafka / kafka-python = {statistics.median(a / k for a, k in pairs):.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
