"""From JDBC to the produce request, the number of Python calls does not grow with the rows: Arrow and numpy do the work
per row.
"""

from __future__ import annotations

import sqlite3
import sys
import threading
from concurrent.futures import Future
from contextlib import closing

import pytest
import responses

from connect.api import ConverterContext
from connect.config.connector import SourceConfig
from connect.converters.avro import AvroConverter, AvroConverterConfig
from connect.plugins.registry import load_plugins
from connect.task.error_policy import ErrorPolicy
from connect.task.sources.conversion import Conversion
from connect.task.sources.pipeline import InFlight, SourcePipeline
from connect.testing import Bench
from connect.transforms.chain import TransformChain
from connectors.jdbc.source import JdbcSourceConnector
from tidegate.kit.config import parse

URL = "http://127.0.0.1:8081"
TRANSFORMS = {
    "transforms": "when,key,id",
    "transforms.when.type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "transforms.when.static.field": "origin",
    "transforms.when.static.value": "test",
    "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
    "transforms.key.fields": "id",
    "transforms.id.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
    "transforms.id.field": "id",
}


class Requests:
    """Takes what would be sent; three partitions, so that keys are hashed."""

    def __init__(self):
        self.rows = 0

    def partition_count(self, topic):
        return 3

    def send_batch(self, topic, partition, batch):
        self.rows += batch.count
        future = Future()
        future.set_result(None)
        return future


@pytest.fixture
def registry():
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mock:
        for subject in ("flights-key", "flights-value"):
            mock.post(f"{URL}/subjects/{subject}/versions", json={"id": len(subject)})
        yield mock


@pytest.fixture
def pipeline(registry):
    properties = {"name": "flights", "connector.class": "JdbcSource", **TRANSFORMS}
    config = parse(SourceConfig, properties)
    stopping = threading.Event()
    keys, values = (
        AvroConverter(parse(AvroConverterConfig, {"schema.registry.url": URL}), ConverterContext(is_key))
        for is_key in (True, False)
    )
    sender, policy = Requests(), ErrorPolicy(config, "flights", 0, stopping)
    made = SourcePipeline(
        TransformChain.configured(load_plugins(entry_points=False), config, properties),
        Conversion(keys, values, policy),
        policy=policy,
        sender=sender,
        in_flight=InFlight(1 << 30, stopping),
    )
    yield made, sender
    keys.close()
    values.close()


def database(path, rows):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE flights (id INTEGER PRIMARY KEY, carrier TEXT, distance INTEGER NOT NULL, delay REAL, late BOOLEAN)"
        )
        flights = ((n, f"C{n % 17}", n * 3, None if n % 5 == 0 else n / 2, n % 2) for n in range(rows))
        connection.executemany("INSERT INTO flights VALUES (?, ?, ?, ?, ?)", flights)
    return {
        "connection.url": f"jdbc:sqlite:{path}",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": "flights",
        "topic.prefix": "",
        "batch.max.rows": "10000",
    }


def calls(work):
    """Calls of Python and of C functions that ``work`` makes, in all threads."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return count


def test_ten_times_the_rows_take_no_more_calls(pipeline, tmp_path):
    made, sender = pipeline

    def moved(rows, path):
        with Bench(JdbcSourceConnector, database(path, rows)).task() as running:

            def move():
                batches = running.poll_rows(rows)
                counted.append(len(batches))
                for batch in batches:
                    made.send(batch)

            before, counted = sender.rows, []
            count = calls(move)
            assert sender.rows - before == rows
            # The driver's first chunk is one row short, so 10,000 rows come as a batch and a tiny one.
            (batches,) = counted
            assert batches <= 2
            return count / batches

    moved(10, tmp_path / "warm-up")
    few, many = moved(1_000, tmp_path / "few"), moved(10_000, tmp_path / "many")
    # Keys of more bytes come with more rows (ids to 9,999), and each length is hashed once.
    assert many <= few + 200, f"{few} calls for 1,000 rows, {many} for 10,000"
