"""Records that cannot be handled, through a real worker: skipped, reported, or failing the task."""

from __future__ import annotations

import json
import re
import uuid
from contextlib import closing
from pathlib import Path

import adbc_driver_sqlite.dbapi
import pytest

from broker.client import Admin, BatchProducer, ClientConfig
from broker.client.blocking import BatchConsumer, call
from tests.servers.process import answer_when, wait_until
from tests.support.toys import rows_of
from tests.support.worker import ConnectWorker

BASE = {"connector.class": "org.toys.RowsConnector", "key.converter": "StringConverter"}
RENAME = "org.apache.kafka.connect.transforms.ReplaceField$Value"


@pytest.fixture(scope="module", params=["tidegate_broker", "apache_kafka"])
def worker(request, tmp_path_factory):
    broker = request.getfixturevalue(request.param)
    made = ConnectWorker(tmp_path_factory.mktemp("worker"), broker.bootstrap_servers, name=f"e{uuid.uuid4().hex[:8]}")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def name():
    return f"t-{uuid.uuid4().hex[:8]}"


def produce(worker, topic, values):
    async def send():
        async with BatchProducer(ClientConfig(worker.properties["bootstrap.servers"])) as producer:
            for n, value in enumerate(values):
                await producer.send(topic, f"k{n}".encode(), value, [("h", b"1")])

    async def create():
        from broker.client import NewTopic

        async with Admin(ClientConfig(worker.properties["bootstrap.servers"])) as admin:
            await admin.create_topics([NewTopic(topic)])

    call(create())
    call(send())


def records(worker, topic, count):
    config = ClientConfig(worker.properties["bootstrap.servers"], {"auto.offset.reset": "earliest"})
    consumer = BatchConsumer(config)
    consumer.start()
    try:
        consumer.assign([(topic, 0)])
        values = []
        wait_until(
            lambda: values.extend(r for part in consumer.fetch(200) for r in part.records()) or len(values) >= count,
            f"{count} records in {topic}",
        )
        return values
    finally:
        consumer.stop()


def values(file: Path):
    return [row["value"] for row in rows_of(file)]


def offset(worker, name):
    offsets = worker.ask("GET", f"/connectors/{name}/offsets")["offsets"]
    return offsets[0]["offset"]["kafka_offset"] if offsets else 0


DASHBOARDS = Path(__file__).with_name("dashboard_metrics.txt")
"""The metrics of Kafka Connect that the dashboards of Strimzi (for the JMX exporter and for its own reporter) and of
Confluent's jmx-monitoring-stacks use, and those of producers and consumers that Confluent's use, except those that
docs/how-to/connect-watching.md lists as missing.
"""

BAD = [b'{"n":0}', b"{not json", b'{"n":2}', b"[1]", b'{"n":4}']


def test_tolerated_records_go_to_the_dead_letter_queue_with_their_story(worker, name, tmp_path):
    produce(worker, name, BAD)
    config = {
        **BASE, "topics": name, "file": str(tmp_path / "out"),
        "transforms": "r", "transforms.r.type": RENAME, "transforms.r.renames": "n:number",
        "errors.tolerance": "all", "errors.log.enable": "true", "errors.log.include.messages": "true",
        "errors.deadletterqueue.topic.name": f"{name}-dlq",
        "errors.deadletterqueue.context.headers.enable": "true",
    }  # fmt: skip
    worker.ask("POST", "/connectors", {"name": name, "config": config}, expect=201)
    wait_until(lambda: offset(worker, name) == 5, "all offsets committed")
    assert values(tmp_path / "out") == [{"number": 0}, {"number": 2}, {"number": 4}]
    letters = records(worker, f"{name}-dlq", 2)
    assert [(letter.key, letter.value) for letter in letters] == [(b"k1", b"{not json"), (b"k3", b"[1]")]
    told = [dict(letter.headers) for letter in letters]
    assert [header["h"] for header in told] == [b"1", b"1"]
    prefix = "__connect.errors."
    assert [header[f"{prefix}stage"] for header in told] == [b"VALUE_CONVERTER", b"TRANSFORMATION"]
    assert [header[f"{prefix}offset"] for header in told] == [b"1", b"3"]
    assert told[0][f"{prefix}topic"] == name.encode() and told[0][f"{prefix}partition"] == b"0"
    assert told[0][f"{prefix}connector.name"] == name.encode() and told[0][f"{prefix}task.id"] == b"0"
    assert b"broken JSON" in told[0][f"{prefix}exception.message"]
    assert told[0][f"{prefix}class.name"] == b"org.apache.kafka.connect.json.JsonConverter"
    assert told[0][f"{prefix}exception.class.name"] == b"org.apache.kafka.connect.errors.DataException"
    assert told[0][f"{prefix}exception.stacktrace"].startswith(b"Traceback (most recent call last)")
    assert [key for key, _ in letters[0].headers] == ["h", *(prefix + part for part in PARTS)]


PARTS = ["topic", "partition", "offset", "connector.name", "task.id", "stage", "class.name", "exception.class.name",
         "exception.message", "exception.stacktrace"]  # fmt: skip


def test_a_sink_reports_records_when_it_likes(worker, name, tmp_path):
    produce(worker, name, [b'{"n":%d}' % n for n in range(5)])
    config = {
        **BASE, "topics": name, "file": str(tmp_path / "out"), "report.at.flush": "3", "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{name}-dlq",
        "errors.deadletterqueue.context.headers.enable": "true",
    }  # fmt: skip
    worker.ask("POST", "/connectors", {"name": name, "config": config}, expect=201)
    wait_until(lambda: offset(worker, name) == 5, "all offsets committed")
    (letter,) = records(worker, f"{name}-dlq", 1)
    assert (letter.key, letter.value) == (b"k3", b'{"n":3}')
    told = dict(letter.headers)
    assert told["__connect.errors.stage"] == b"TASK_PUT"
    assert told["__connect.errors.class.name"] == b"org.apache.kafka.connect.sink.SinkTask"
    assert told["__connect.errors.exception.message"] == b"this one is not wanted"


def test_without_tolerance_the_task_fails_and_names_the_record(worker, name, tmp_path):
    produce(worker, name, BAD)
    config = {**BASE, "topics": name, "file": str(tmp_path / "out")}
    worker.ask("POST", "/connectors", {"name": name, "config": config}, expect=201)
    worker.wait_for(name, connector="RUNNING", task0="FAILED")
    trace = worker.ask("GET", f"/connectors/{name}/tasks/0/status")["trace"]
    assert f"connector {name}, task 0, topic {name}, partition 0, offset 1" in trace
    assert "stage VALUE_CONVERTER (JsonConverter)" in trace
    assert offset(worker, name) == 0


def test_metrics_count_what_was_left_out(worker, name, tmp_path):
    import requests

    produce(worker, name, BAD)
    config = {**BASE, "topics": name, "file": str(tmp_path / "out"), "errors.tolerance": "all"}
    worker.ask("POST", "/connectors", {"name": name, "config": config}, expect=201)
    line = f'kafka_connect_task_error_total_records_skipped{{connector="{name}",task="0"}} 1.0'
    wait_until(lambda: line in requests.get(f"{worker.url}/metrics", timeout=60).text, "the counter")
    numbers = {"connector.class": "org.toys.NumbersConnector", "topic": f"{name}-numbers", "total": "50", "batch": "10"}
    worker.ask("POST", "/connectors", {"name": f"{name}-n", "config": numbers}, expect=201)
    written = f'kafka_connect_source_task_source_record_write_total{{connector="{name}-n",task="0"}} 50.0'
    wait_until(lambda: written in requests.get(f"{worker.url}/metrics", timeout=60).text, "50 records")
    client = f'clientid="connector-consumer-{name}-0"'
    network = f'kafka_consumer_connection_count{{clientid="connector-consumer-{name}-0"}}'
    lines = {
        f'kafka_connect_connector_status{{connector="{name}",status="running"}} 1.0',
        f'kafka_connect_worker_connector_failed_task_count{{connector="{name}"}} 0.0',
        f'kafka_connect_sink_task_metrics_sink_record_lag_max{{connector="{name}",task="0"}} 0.0',
        f'kafka_consumer_fetch_manager_records_lag{{{client},partition="0",topic="{name}"}} 0.0',
    }

    def missing():
        shown = requests.get(f"{worker.url}/metrics", timeout=60).text.splitlines()
        names = {sample.partition("{")[0].partition(" ")[0] for sample in shown}
        names |= {network} & {sample.partition(" ")[0] for sample in shown}
        return ({*DASHBOARDS.read_text().split(), network} - names) | (lines - set(shown))

    answer_when(lambda names: names == set(), missing, "no metric missing")


def test_a_task_that_is_restarted_and_does_nothing_is_measured_again(worker, name, tmp_path):
    """Its statistics are those of the task before, which the worker has forgotten."""
    import requests

    def shown(text):
        lines = requests.get(f"{worker.url}/metrics", timeout=60).text.splitlines()
        return next((float(line.rpartition(" ")[2]) for line in lines if line.startswith(text)), None)

    ratio = f'kafka_connect_connector_task_running_ratio{{connector="{name}",task="0"}}'
    started = "kafka_connect_worker_task_startup_success_total "
    config = {**BASE, "topics": name, "file": str(tmp_path / "out")}
    worker.ask("POST", "/connectors", {"name": name, "config": config}, expect=201)
    for _ in range(3):
        wait_until(lambda: shown(ratio) is not None, "the task is measured")
        before = shown(started)
        worker.ask("POST", f"/connectors/{name}/tasks/0/restart", expect=204)
        wait_until(lambda before=before: shown(started) > before, "the task runs again")


def test_a_row_that_the_log_refuses_is_left_out_alone(worker, name):
    config = {
        "connector.class": "org.toys.NumbersConnector",
        "topic": name,
        "total": "50",
        "batch": "10",
        "big.at": "25",
    }
    config |= {"producer.override.max.request.size": "4000000", "errors.tolerance": "all"}
    worker.ask("POST", "/connectors", {"name": name, "config": config}, expect=201)
    offsets = f"/connectors/{name}/offsets"
    wait_until(lambda: [offset["offset"] for offset in worker.ask("GET", offsets)["offsets"]] == [{"n": 50}], "its end")
    numbers = [json.loads(record.value)["n"] for record in records(worker, name, 49)]
    assert sorted(numbers) == [n for n in range(50) if n != 25]
    other = name + "-strict"
    config |= {"topic": other, "errors.tolerance": "none"}
    worker.ask("POST", "/connectors", {"name": other, "config": config}, expect=201)
    worker.wait_for(other, connector="RUNNING", task0="FAILED")
    (task,) = worker.ask("GET", f"/connectors/{other}/status")["tasks"]
    told = task["trace"].splitlines()[0]
    size = re.search(r"10 records of ([0-9,]+) bytes, more than max\.message\.bytes=1048588 of topic", told)
    assert size is not None and int(size[1].replace(",", "")) > 1_048_588, told
    assert "read up to {'n': 30}" in told and f"raise max.message.bytes of topic {other}, or lower " in told


def test_a_value_of_a_database_that_no_message_may_hold_goes_where_errors_say(worker, name, tmp_path):
    with closing(adbc_driver_sqlite.dbapi.connect(str(tmp_path / "rows.db"), autocommit=True)) as database:
        with closing(database.cursor()) as cursor:
            cursor.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, note TEXT)")
            cursor.execute("INSERT INTO t VALUES (1, 'a'), (2, hex(zeroblob(1000000))), (3, 'c')")
    config = {
        "connector.class": "JdbcSourceConnector", "connection.url": f"jdbc:sqlite:{tmp_path / 'rows.db'}",
        "mode": "incrementing", "topic.prefix": f"{name}-", "poll.interval.ms": "100", "errors.tolerance": "all",
    }  # fmt: skip
    worker.ask("POST", "/connectors", {"name": name, "config": config}, expect=201)
    ids = [json.loads(record.value)["id"] for record in records(worker, f"{name}-t", 2)]
    assert sorted(ids) == [1, 3]
    config |= {"topic.prefix": f"{name}-strict-", "errors.tolerance": "none"}
    worker.ask("POST", "/connectors", {"name": f"{name}-strict", "config": config}, expect=201)
    worker.wait_for(f"{name}-strict", connector="RUNNING", task0="FAILED")
    trace = worker.ask("GET", f"/connectors/{name}-strict/tasks/0/status")["trace"]
    assert "max.request.size" in trace or "larger" in trace
