"""The broker is killed under load: all acknowledged records are there once, in order."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker

PARTITIONS = 3
RECORDS = 30_000


class Load(threading.Thread):
    """An idempotent producer that never gives up, and the result of each record."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.acknowledged: dict[tuple[int, int], int] = {}
        self.failed: list[KafkaError] = []
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 100,
                "retry.backoff.ms": 50,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        for number in range(RECORDS):
            while True:
                try:
                    self.producer.produce(
                        self.topic, str(number), partition=number % PARTITIONS, on_delivery=self.delivered
                    )
                    break
                except BufferError:
                    self.producer.poll(0.1)
            self.producer.poll(0)
        self.producer.flush(240)

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(error)
        else:
            self.acknowledged[message.partition(), message.offset()] = int(message.value())


@pytest.mark.parametrize("durability", ["disk", pytest.param("page-cache", marks=pytest.mark.proof)])
def test_every_acknowledged_record_is_there_once_and_in_order(tmp_path: Path, durability: str) -> None:
    broker = TidegateBroker(tmp_path, {"acks.all.durability": durability, "log.segment.bytes": "1048576"})
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("load", PARTITIONS)])["load"].result(60)
        load = Load(broker.bootstrap_servers, "load")
        load.start()
        for part in (1, 2, 3):
            wait_until(lambda: len(load.acknowledged) > part * RECORDS // 5, "records")
            broker.kill()
            broker.start()
        load.join(250)
        assert not load.is_alive()
        assert load.failed == []
        assert len(load.acknowledged) == RECORDS
        for partition in range(PARTITIONS):
            records = everything(broker.bootstrap_servers, partition)
            assert [value for _, value in records] == list(range(partition, RECORDS, PARTITIONS))
            assert all(load.acknowledged[partition, offset] == value for offset, value in records)
    finally:
        broker.stop()


def everything(bootstrap_servers: str, partition: int) -> list[tuple[int, int]]:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "check", "check.crcs": True})
    where = TopicPartition("load", partition, 0)
    _, end = consumer.get_watermark_offsets(where, 60)
    consumer.assign([where])
    records: list[tuple[int, int]] = []
    while len(records) < end:
        messages = consumer.consume(min(1000, end - len(records)), 60)
        assert messages, f"{len(records)} of {end} records came"
        records += [(message.offset(), int(message.value())) for message in messages]
    consumer.close()
    return records
