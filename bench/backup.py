"""MB a second of backup and restore beside a copy of the log's files: ``python -m bench.backup [MB of records]``.

The brokers are processes of their own; backup and restore run here, in one thread. The copy is Python's ``shutil`` with fsync. Records
are JSON of 500 bytes, uncompressed, in four partitions. MB are those of keys and values.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin
from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table
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
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.snapshot*", "*.tmp"))
    for path in target.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())


def told(megabytes: int, began: float, cpu: float) -> tuple[float, float]:
    """MB a second by the clock, and by this process's CPU time."""
    taken, busy = time.perf_counter() - began, time.process_time() - cpu
    return megabytes / taken, megabytes / max(busy, 1e-9)


def measured(folder: Path, megabytes: int) -> dict[str, tuple[float, float]]:
    source, target = TidegateBroker(folder / "source"), TidegateBroker(folder / "target")
    figures = {}
    source.start()
    target.start()
    try:
        config = ClientConfig(source.bootstrap_servers)
        with Admin(config) as admin:
            admin.create_topics([NewTopic("bench", _PARTITIONS, 1)])
            filled(source.bootstrap_servers, megabytes)
            began, cpu = time.perf_counter(), time.process_time()
            copied(folder / "source", folder / "copy")
            figures["copy of the files"] = told(megabytes, began, cpu)
            store = BackupStore(str(folder / "backup"))
            point = begin_point(admin)
            reading = config.with_properties(READING)
            began, cpu = time.perf_counter(), time.process_time()
            take_records(reading, admin, store, point, ["bench"], full=True, progress=lambda *_: None)
            figures["backup"] = told(megabytes, began, cpu)
        there = ClientConfig(target.bootstrap_servers)
        with Admin(there) as admin:
            make_topics(admin, point, 1)
            began, cpu = time.perf_counter(), time.process_time()
            restore_records(there, store, point, check_target(admin, point, resume=False), lambda *_: None)
            figures["restore"] = told(megabytes, began, cpu)
    finally:
        source.stop()
        target.stop()
    return figures


def main(folder: Path, runs: int, console: Console, megabytes: int = 500) -> None:
    rounds = [measured(folder / str(number), megabytes) for number in range(runs)]
    table = Table(
        "MB a second, medians", "by the clock", "per CPU second", title=f"backup of {megabytes} MB, {runs} runs"
    )
    for what in rounds[0]:
        clock, busy = (statistics.median(each[what][at] for each in rounds) for at in (0, 1))
        table.add_row(what, f"{clock:,.0f}", f"{busy:,.0f}")
    console.print(table)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch), 1, Console(width=120), int(sys.argv[1]) if len(sys.argv) > 1 else 500)
