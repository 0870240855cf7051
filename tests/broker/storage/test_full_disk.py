"""A real small file system fills up: producers get retriable errors, no acknowledged record is lost, and work resumes
when there is space.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker

SIZE_MB = 12
RECORDS = 600


class SmallDisk:
    """A tmpfs in a mount namespace of the broker's own; ``inside`` shows its files to us."""

    def __init__(self, broker: TidegateBroker, path: Path) -> None:
        self.broker = broker
        self.path = path

    @property
    def inside(self) -> Path:
        return Path(f"/proc/{self.broker.process.pid}/root{self.path}")


def confined(command: list[str], path: Path) -> list[str]:
    mount = f'mount -t tmpfs -o size={SIZE_MB}m none {path} && exec "$@"'
    return ["unshare", "--mount", "--map-root-user", "sh", "-c", mount, "sh", *command]


@pytest.fixture
def disk(tmp_path: Path) -> SmallDisk:
    path = tmp_path / "disk"
    path.mkdir()
    probe = confined(["true"], path)
    if sys.platform != "linux" or not shutil.which("unshare") or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("a file system of its own cannot be mounted here")
    settings = {"log.dirs": str(path / "log"), "log.segment.bytes": "1048576", "file.delete.delay.ms": "0"}
    broker = TidegateBroker(tmp_path, settings)
    broker.process._command = confined(broker.process._command, path)
    return SmallDisk(broker, path)


def test_a_full_disk_refuses_and_goes_on_when_there_is_room(disk: SmallDisk) -> None:
    broker = disk.broker
    broker.start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("t", 2)])["t"].result(60)
        filler = disk.inside / "filler"
        filler.write_bytes(bytes((SIZE_MB - 4) << 20))
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "enable.idempotence": True,
                "batch.num.messages": 5,
                "linger.ms": 1,
                "retry.backoff.ms": 50,
                "log_level": 0,
            }
        )
        acknowledged: dict[tuple[int | None, int | None], int] = {}
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                acknowledged[message.partition(), message.offset()] = int(message.value() or b"")
            else:
                failed.append(error)

        def load() -> None:
            for number in range(RECORDS):
                producer.produce("t", b"%-10000d" % number, partition=number % 2, on_delivery=delivered)
                producer.poll(0)
            producer.flush(60)

        loading = threading.Thread(target=load)
        loading.start()
        wait_until(lambda: os.statvfs(disk.inside).f_bavail * 4096 <= 100_000, "the disk to be full")
        assert len(acknowledged) < RECORDS
        # Topics cannot be made either, and what fails leaves nothing behind.
        with pytest.raises(KafkaException):
            admin.create_topics([NewTopic("more", 500)])["more"].result(60)
        filler.unlink()
        loading.join(60)
        assert failed == []
        assert len(acknowledged) == RECORDS
        check(broker, acknowledged)
    finally:
        broker.stop()


def check(broker: TidegateBroker, acknowledged: dict[tuple[int | None, int | None], int]) -> None:
    for partition in range(2):
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "check", "check.crcs": True})
        consumer.assign([TopicPartition("t", partition, 0)])
        consumed: list[Message] = []
        while len(consumed) < RECORDS // 2:
            messages = consumer.consume(RECORDS // 2 - len(consumed), 60)
            assert messages, f"{len(consumed)} of {RECORDS // 2} records came"
            consumed += messages
        consumer.close()
        assert [int(message.value() or b"") for message in consumed] == list(range(partition, RECORDS, 2))
        assert all(acknowledged[partition, message.offset()] == int(message.value() or b"") for message in consumed)
