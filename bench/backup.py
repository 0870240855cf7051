"""MB a second of backup and restore beside a copy of the log's files: ``python -m bench.backup [MB of records]``.

The brokers are processes of their own; backup and restore run here, in one thread. The copy is Python's ``shutil`` with fsync. Records
are JSON of 500 bytes, uncompressed, in four partitions. MB are those of keys and values.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin
from confluent_kafka import Producer
from tests.servers.tidegate_broker import TidegateBroker
from tidegate.backup.restoring import check_target, make_topics, restore_records
from tidegate.backup.store import BackupStore
from tidegate.backup.taking import READING, begin_point, take_records

_PARTITIONS = 4
_RECORD = 500


def filled(servers: str, megabytes: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 50,
            "batch.size": 900_000,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    for n in range(megabytes * 1_000_000 // _RECORD):
        value = f'{{"id": {n}, "text": "{os.urandom(150).hex()}"}}'.ljust(_RECORD - 10)
        producer.produce("bench", value, f"{n:010d}", n % _PARTITIONS)
        if n % 1000 == 0:
            producer.poll(0)
    producer.flush()


def copied(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    for path in target.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())


def told(what: str, megabytes: int, began: float, cpu: float) -> None:
    taken, busy = time.perf_counter() - began, time.process_time() - cpu
    print(f"{what:30} {megabytes / taken:8.0f} MB/s {megabytes / max(busy, 1e-9):8.0f} MB per CPU second")


def main(megabytes: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        source, target = TidegateBroker(folder / "source"), TidegateBroker(folder / "target")
        source.start()
        target.start()
        try:
            config = ClientConfig(source.bootstrap_servers)
            with Admin(config) as admin:
                admin.create_topics([NewTopic("bench", _PARTITIONS, 1)])
                filled(source.bootstrap_servers, megabytes)
                began, cpu = time.perf_counter(), time.process_time()
                copied(folder / "source", folder / "copy")
                told("copy of the files", megabytes, began, cpu)
                store = BackupStore(str(folder / "backup"))
                point = begin_point(admin)
                began, cpu = time.perf_counter(), time.process_time()
                take_records(
                    config.with_properties(READING), admin, store, point, ["bench"], full=True, progress=lambda *_: None
                )
                told("backup", megabytes, began, cpu)
            there = ClientConfig(target.bootstrap_servers)
            with Admin(there) as admin:
                make_topics(admin, point, 1)
                began, cpu = time.perf_counter(), time.process_time()
                restore_records(there, store, point, check_target(admin, point, resume=False), lambda *_: None)
                told("restore", megabytes, began, cpu)
        finally:
            source.stop()
            target.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
