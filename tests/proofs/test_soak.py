"""100,000 events a second for ten minutes, with a group of consumers that keeps up: no event is lost, and memory use
stays constant.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.proofs import effort
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]

SECONDS: Final = effort(10, 600)
RATE: Final = effort(20_000, 100_000)
"""Events a second; a fifth in the short form, which shares its machine with other tests."""
PARTITIONS: Final = 4
CONSUMERS: Final = 2
"""Each must have half of the partitions before the first record is sent."""
SIZE: Final = 100
GROWTH_BYTES: Final = 24 * 1024 * 1024
RETENTION_BYTES: Final = 512 * 1024 * 1024
"""The size of each partition, limited so that ten minutes need no more disk than one: segments are deleted while others
are written.
"""

# The clients are processes of their own: a Python process that produced and consumed would be the bottleneck.
_PRODUCE: Final = """
import sys, time
from confluent_kafka import Producer
servers, rate, seconds, partitions, size = sys.argv[1], *map(int, sys.argv[2:6])
failed, late = [], 0.0
producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 10, "batch.size": 131072,
                     "queue.buffering.max.messages": 400000})
def delivered(error, message):
    if error is not None:
        failed.append(str(error))
number, step, began = 0, rate // 100, time.monotonic()
value = b"x" * (size - 13)
while number < rate * seconds:
    for number in range(number, number + step):
        while True:
            try:
                producer.produce("soak", b"%012d:" % number + value, partition=number % partitions, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
    number += 1
    producer.poll(0)
    ahead = began + number / rate - time.monotonic()
    late = max(late, -ahead)
    if ahead > 0:
        time.sleep(ahead)
left = producer.flush(120)
print(number, len(failed) + left, round(time.monotonic() - began, 2), round(late, 2), *failed[:1])
"""
_CONSUME: Final = """
import signal, sys, time
from confluent_kafka import Consumer, TopicPartition
servers, total, partitions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
consumer = Consumer({"bootstrap.servers": servers, "group.id": "soak", "auto.offset.reset": "earliest",
                     "auto.commit.interval.ms": 1000, "queued.max.messages.kbytes": 16384})
consumer.subscribe(["soak"])
expected, count, wrong, over = {}, 0, [], []
signal.signal(signal.SIGTERM, lambda *_: over.append(1))
while len(consumer.assignment()) != partitions // 2:
    assert not consumer.consume(1, 0.1)
print("ready", flush=True)
while not over:
    for message in consumer.consume(5000, 0.1):
        if message.error() is not None:
            wrong.append(str(message.error()))
            continue
        value, partition = message.value(), message.partition()
        number = int(value[:12])
        if number < expected.get(partition, number):
            continue  # read again after a rebalance
        if number != expected.get(partition, number) or number % partitions != partition:
            wrong.append(f"{number} in partition {partition}, {expected[partition]} was next")
        expected[partition] = number + partitions
        count += 1
consumer.close()
print(count, len(wrong), *wrong[:1])
"""


def test_a_group_keeps_up_and_memory_stays_flat(tmp_path: Path, record_property: Any) -> None:
    settings = {
        "log.segment.bytes": "67108864",
        "log.retention.bytes": str(RETENTION_BYTES),
        "log.retention.check.interval.ms": "5000",
    }
    broker = TidegateBroker(tmp_path, settings)
    broker.start()
    clients: list[subprocess.Popen[str]] = []

    def client(program: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", program, broker.bootstrap_servers, *map(str, arguments)]
        clients.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        return clients[-1]

    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("soak", PARTITIONS, 1)])["soak"].result(60)
        total = RATE * SECONDS
        consumers = [client(_CONSUME, total, PARTITIONS) for _ in range(CONSUMERS)]
        for consumer in consumers:
            assert consumer.stdout is not None and consumer.stdout.readline() == "ready\n"
        process = psutil.Process(broker.process.pid)
        began, cpu = time.monotonic(), process.cpu_times()
        producer = client(_PRODUCE, RATE, SECONDS, PARTITIONS, SIZE)
        memory, lags = [], []
        while producer.poll() is None:
            time.sleep(min(SECONDS / 20, 5))
            memory.append(process.memory_info().rss)
            lags.append(lag(admin))
        used = sum(process.cpu_times()[:2]) - sum(cpu[:2])
        sent, failed, seconds, late, *first = producer.communicate()[0].split(maxsplit=4)
        caught_up = time.monotonic()
        while lag(admin) and time.monotonic() < caught_up + 60:
            time.sleep(0.2)
        told = []
        for consumer in consumers:
            consumer.terminate()
            told.append(consumer.communicate(timeout=60)[0].split(maxsplit=2))
        half = len(memory) // 2
        early, later = (statistics.median(memory[a:b]) for a, b in ((half // 2, half), (half, len(memory))))
        record_property("events a second", round(int(sent) / float(seconds)))
        record_property("producer behind by at most", f"{late} s")
        record_property("lag", f"median {statistics.median(lags):.0f}, most {max(lags)}")
        record_property(
            "memory", f"{early / 2**20:.0f} MiB, then {later / 2**20:.0f}, at most {max(memory) / 2**20:.0f}"
        )
        record_property("broker CPU", f"{used / (time.monotonic() - began):.2f} of a core")
        assert failed == "0", first
        assert int(sent) == total
        assert all(wrong[1] == "0" for wrong in told), told
        assert sum(int(consumer[0]) for consumer in told) == total
        assert later - early < GROWTH_BYTES
    finally:
        for consumer in clients:
            consumer.kill()
            consumer.wait()
        broker.stop()


def lag(admin: AdminClient) -> int:
    """The group's lag in records according to its commits, once a second."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
    from confluent_kafka.admin import OffsetSpec

    ends = admin.list_offsets({TopicPartition("soak", n): OffsetSpec.latest() for n in range(PARTITIONS)})
    [group] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("soak")]).values()
    done = {partition.partition: max(partition.offset, 0) for partition in group.result(60).topic_partitions or ()}
    return sum(future.result(60).offset - done.get(where.partition, 0) for where, future in ends.items())
