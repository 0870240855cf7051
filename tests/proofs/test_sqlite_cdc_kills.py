"""Changes of SQLite through a worker that is killed while another process writes: the tables rebuilt from the topics equal the
database's. A signal from a topic has them read again on the way."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import requests
from confluent_kafka import Consumer, Producer, TopicPartition

from connectors.debezium.task import snapshot_pending
from tests.proofs import drawn_seed, effort
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.debezium.sqlite_workload import TABLES, SqliteWorkload
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.proof, pytest.mark.servers]


def rebuilt(bootstrap: str, topic: str) -> tuple[dict[Any, Any], int]:
    """A topic with one partition replayed into the rows of its table, and the number of rows that an incremental
    snapshot read.
    """
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "rebuild", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    rows: dict[Any, Any] = {}
    reread = 0
    while (message := consumer.poll(10)) is not None and message.error() is None:
        event = None if message.value() is None else json.loads(message.value())
        if event is not None and event["op"] == "t":
            rows.clear()
            continue
        key = tuple(json.loads(message.key()).values())
        if event is None or event["op"] == "d":
            rows.pop(key, None)
        else:
            rows[key] = event["after"]
            reread += event["source"]["snapshot"] == "incremental"
    consumer.close()
    return rows, reread


def table(path: Path, name: str) -> dict[Any, Any]:
    connection = sqlite3.connect(path, timeout=60)
    table_rows = connection.execute(f"SELECT * FROM {name}")
    columns = [column[0] for column in table_rows.description]
    rows = [dict(zip(columns, row, strict=True)) for row in table_rows]
    connection.close()
    return {tuple(row[k] for k in TABLES[name]): row for row in rows}


def same(ours: dict[Any, Any], truth: dict[Any, Any]) -> bool:
    """A column that was added with a default later is not repeated for rows that rest."""
    return set(ours) == set(truth) and all(
        ours[key][column] == value
        for key, row in truth.items()
        for column, value in row.items()
        if column in ours[key] and not isinstance(value, bytes)
    )


def following(worker: ConnectWorker) -> bool:
    """Whether the worker has stored an offset that is not within the snapshot."""
    stored = requests.get(f"{worker.url}/connectors/cdc/offsets", timeout=30).json()["offsets"]
    return any(not snapshot_pending(each["offset"]) for each in stored)


@pytest.mark.long
def test_tables_of_sqlite_are_rebuilt_whatever_is_killed(tmp_path: Path) -> None:
    seed = drawn_seed()
    dice = random.Random(seed)
    path = tmp_path / "shop.db"
    work = SqliteWorkload(path, seed)
    work.prepare()
    work.connection.close()
    broker = TidegateBroker(tmp_path / "broker")
    broker.start()
    worker = ConnectWorker(tmp_path / "worker", broker.bootstrap_servers)
    worker.start()
    writer = subprocess.Popen([sys.executable, "-m", "tests.support.debezium.sqlite_workload", str(path), str(seed)])
    try:
        signals = Producer({"bootstrap.servers": broker.bootstrap_servers})
        signal = {"id": "1", "type": "execute-snapshot", "data": {"data-collections": [r"main\..*"]}}
        signals.produce("k-signal", key="k", value=json.dumps(signal), partition=0)
        assert signals.flush(60) == 0
        worker.create(
            "cdc",
            connector_class="SqliteCdcSource",
            database_path=str(path),
            database_busy_timeout_ms="60000",
            topic_prefix="k",
            poll_interval_ms="50",
            max_queue_size="500",
            skipped_operations="none",
            signal_enabled_channels="kafka",
            signal_poll_interval_ms="100",
            incremental_snapshot_chunk_size="20",
        )
        # A snapshot that is cut off is made again; rows that were deleted between the two stay in the topic, as with Debezium.
        wait_until(lambda: following(worker), "the snapshot's end stored")
        for _ in range(effort(2, 20)):
            time.sleep(dice.uniform(0.5, 2))
            worker.kill()
            worker.start()
        assert writer.poll() is None
        writer.kill()
        writer.wait(60)

        def converged() -> bool:
            tables = {name: rebuilt(broker.bootstrap_servers, f"k.main.{name}") for name in TABLES}
            return all(same(tables[name][0], table(path, name)) and tables[name][1] > 0 for name in TABLES)

        wait_until(converged, f"the tables rebuilt; {worker.state('cdc')}", timeout_s=240, pause_s=1)
    finally:
        writer.kill()
        worker.kill()
        broker.kill()
