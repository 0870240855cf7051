"""The Spark sink in a real worker: its statuses, its positions and its dead letter queue."""

from __future__ import annotations

import json
import uuid

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from connect.plugins.registry import load_plugins
from connect.preview import preview
from tests.servers.process import wait_until
from tests.support.pages import ROOT, blocks
from tests.support.spark import QUICK_CONF, create_topic, delta_table, iceberg_table, produce
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.servers, pytest.mark.proof]

BASE = {
    "connector.class": "SparkSink",
    "spark.master": "local[1]",
    **{f"spark.conf.{name}": value for name, value in QUICK_CONF.items()},
    "spark.value.format": "json",
    "spark.value.schema": "id BIGINT",
    "job.interval.ms": "500",
    "consumer.override.isolation.level": "read_committed",
}


@pytest.fixture(scope="module")
def worker(tidegate_broker, tmp_path_factory):
    made = ConnectWorker(
        tmp_path_factory.mktemp("worker"), tidegate_broker.bootstrap_servers, name=f"s{uuid.uuid4().hex[:8]}"
    )
    made.start()
    yield made
    made.stop()


@pytest.fixture
def topic(worker):
    name = f"spark-{uuid.uuid4().hex[:8]}"
    bootstrap = worker.properties["bootstrap.servers"]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(60)
    producer = Producer({"bootstrap.servers": bootstrap})
    for n, value in enumerate([b'{"id": 0}', b"{bad", b'{"id": 2}']):
        producer.produce(name, value, key=f"k{n}", headers=[("mine", b"1")], timestamp=1_700_000_000_000 + n)
    assert producer.flush(60) == 0
    undone = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    undone.init_transactions()
    undone.begin_transaction()
    undone.produce(name, b'{"id": 3}')
    assert undone.flush(60) == 0
    undone.abort_transaction()
    return name


def records(worker, topic, count):
    consumer = Consumer(
        {
            "bootstrap.servers": worker.properties["bootstrap.servers"],
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    seen = []
    try:
        wait_until(
            lambda: seen.extend(m for m in consumer.consume(count, 0.5) if m.error() is None) or len(seen) >= count,
            f"{count} records in {topic}",
            timeout_s=300,  # where others start a Spark, too, a start takes a minute
        )
    except TimeoutError as error:
        raise AssertionError(f"{error}; {worker.ask('GET', '/connectors?expand=status')}") from None
    consumer.close()
    return seen


def state(worker, name):
    tasks = worker.ask("GET", f"/connectors/{name}/status").get("tasks")  # 404 until the worker has heard of it
    return tasks[0] if tasks else {"state": "NONE"}


def offset(worker, name):
    offsets = worker.ask("GET", f"/connectors/{name}/offsets")["offsets"]
    return offsets[0]["offset"]["kafka_offset"] if offsets else 0


@pytest.mark.parametrize(
    ("more", "left_out"),
    [
        ({}, "wrote 1 file, left 1 record out"),
        pytest.param(
            {
                "connector.class": "SparkTransform",
                "spark.mode": "available-now",
                "spark.sql": "SELECT * FROM {view}",
                "spark.checkpoint.path": "{folder}/checkpoint",
            },
            "2 rows written to {folder}/out, 1 left out",
            marks=pytest.mark.long,
        ),
    ],
    ids=["job", "stream"],
)
def test_a_record_that_is_none_goes_to_the_dead_letters_with_the_headers_of_connect(
    worker, topic, tmp_path, more, left_out
):
    letters = f"{topic}-dead"
    names = {"view": topic.replace("-", "_"), "folder": str(tmp_path)}
    config = BASE | {name: value.format(**names) for name, value in more.items()}
    config |= {
        "topics": topic,
        "spark.output.path": str(tmp_path / "out"),
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    worker.ask("POST", "/connectors", {"name": topic, "config": config}, expect=201)
    (letter,) = records(worker, letters, 1)
    assert (letter.key(), letter.value(), letter.timestamp()[1]) == (b"k1", b"{bad", 1_700_000_000_001)
    headers = dict(letter.headers())
    prefix = "__connect.errors."
    named = {
        name: headers[prefix + name].decode()
        for name in ("topic", "partition", "offset", "connector.name", "task.id", "stage")
    }
    assert named == {
        "topic": topic,
        "partition": "0",
        "offset": "1",
        "connector.name": topic,
        "task.id": "0",
        "stage": "VALUE_CONVERTER",
    }
    assert headers["mine"] == b"1"
    assert headers[prefix + "exception.class.name"] == b"org.apache.kafka.connect.errors.DataException"
    assert b"not JSON" in headers[prefix + "exception.message"]
    # Behind the three records are one of an aborted transaction, and its end.
    wait_until(lambda: offset(worker, topic) == 5, "the run committed", timeout_s=300)
    assert ds.dataset(tmp_path / "out").to_table().to_pylist() == [{"id": 0}, {"id": 2}]
    path = f"/tidegate/v1/connectors/{topic}/progress"
    wait_until(lambda: left_out.format(**names) in json.dumps(worker.ask("GET", path)), "the run says what it left out")


@pytest.mark.long
def test_without_tolerance_the_task_fails_and_names_the_record(worker, topic, tmp_path):
    config = BASE | {"topics": topic, "spark.output.path": str(tmp_path / "out")}
    worker.ask("POST", "/connectors", {"name": topic, "config": config}, expect=201)
    wait_until(lambda: state(worker, topic)["state"] == "FAILED", "the task failed", timeout_s=120)
    assert f"topic {topic} partition 0 offset 1" in state(worker, topic)["trace"]
    assert offset(worker, topic) == 0


ROW = "STRUCT<id: BIGINT, name: STRING>"
CHANGES = [
    (1, None, "a", "c"),
    (2, None, "b", "c"),
    (1, "a", "A", "u"),
    (2, "b", None, "d"),
    (3, None, "c", "r"),
]


def of_page(format_, folder):
    """The connector of the page that writes this format, with its files below a folder and values in JSON."""
    page = ROOT / "docs/how-to/connectors/spark.md"
    configs = [json.loads(block.text)["config"] for block in blocks(page, "json")]
    (config,) = [config for config in configs if config.get("spark.output.format") == format_]
    of_page = {name: value.replace("/data/", f"{folder}/") for name, value in config.items()}
    ddl = {"spark.value.schema": f"before {ROW}, after {ROW}, op STRING"}
    return of_page | BASE | ddl | {"spark.key.format": "json", "spark.key.schema": "id BIGINT"}


@pytest.fixture
def changes(worker):
    name = f"changes-{uuid.uuid4().hex[:8]}"
    bootstrap = worker.properties["bootstrap.servers"]
    records = []
    for key, before, after, operation in CHANGES:
        rows = [None if text is None else {"id": key, "name": text} for text in (before, after)]
        value = {"before": rows[0], "after": rows[1], "op": operation}
        records.append((0, json.dumps({"id": key}), json.dumps(value)))
    create_topic(bootstrap, name, 1)
    produce(bootstrap, name, records)
    return name


@pytest.mark.long
@pytest.mark.parametrize("format_", ["iceberg", "delta"])
def test_the_connectors_of_the_page_make_tables_that_others_read(worker, changes, tmp_path, format_):
    config = of_page(format_, tmp_path) | {"topics": changes}
    worker.ask("POST", "/connectors", {"name": changes, "config": config}, expect=201)
    wait_until(lambda: offset(worker, changes) == len(CHANGES), "the run committed", timeout_s=240)
    progress = json.dumps(worker.ask("GET", f"/tidegate/v1/connectors/{changes}/progress"))
    assert "committed to" in progress
    if format_ == "iceberg":
        table = iceberg_table(tmp_path / "lake/shop/customers")
        rows = table.scan().to_arrow()
        stored = json.loads(table.current_snapshot().summary[f"tidegate.{changes}"])
        assert stored["offsets"] == {changes: {"0": len(CHANGES)}}
        wanted = [(1, "A"), (3, "c")]
    else:
        rows = delta_table(tmp_path / "customer_history")
        wanted = [(1, "A"), (1, "a"), (2, "b"), (3, "c")]
        assert sorted(rows.filter(pa.compute.field("is_current"))["id"].to_pylist()) == [1, 3]
    with duckdb.connect() as connection:
        connection.register("customers", rows)
        assert sorted(connection.sql("SELECT id, name FROM customers").fetchall()) == wanted


@pytest.mark.long
def test_a_preview_shows_what_spark_would_do_and_writes_nothing(worker, changes, tmp_path):
    config = of_page("iceberg", tmp_path) | {"name": changes, "topics": changes}
    seen = preview(load_plugins(), worker.properties, config, rows=10)
    assert seen.batches == [] and seen.left_out == []
    head, shown = seen.actions
    assert head.startswith("5 records by Spark on local[1] to iceberg at lake.shop.customers")
    rows = [json.loads(line) for line in shown.splitlines() if line.startswith("  {")]
    assert {(row["id"], row["name"], row["__deleted"]) for row in rows} == {
        (1, "A", False),
        (2, "b", True),
        (3, "c", False),
    }
    assert "CREATE TABLE" in shown
    assert not (tmp_path / "lake").exists()
