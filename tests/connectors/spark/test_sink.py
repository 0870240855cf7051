"""The Spark sink in a real worker: its statuses, its positions and its dead letter queue."""

from __future__ import annotations

import json
import uuid

import pyarrow.dataset as ds
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.servers.process import wait_until
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.servers, pytest.mark.proof]

BASE = {
    "connector.class": "SparkSink",
    "spark.master": "local[1]",
    "spark.value.format": "json",
    "spark.value.schema": "id BIGINT",
    "job.interval.ms": "500",
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
    wait_until(
        lambda: seen.extend(m for m in consumer.consume(count, 0.5) if m.error() is None) or len(seen) >= count,
        f"{count} records in {topic}",
    )
    consumer.close()
    return seen


def state(worker, name):
    tasks = worker.ask("GET", f"/connectors/{name}/status").get("tasks")  # 404 until the worker has heard of it
    return tasks[0] if tasks else {"state": "NONE"}


def offset(worker, name):
    offsets = worker.ask("GET", f"/connectors/{name}/offsets")["offsets"]
    return offsets[0]["offset"]["kafka_offset"] if offsets else 0


def test_a_record_that_is_none_goes_to_the_dead_letters_with_the_headers_of_connect(worker, topic, tmp_path):
    letters = f"{topic}-dead"
    config = BASE | {
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
    wait_until(lambda: offset(worker, topic) == 3, "the run committed")
    assert ds.dataset(tmp_path / "out").to_table().to_pylist() == [{"id": 0}, {"id": 2}]
    progress = worker.ask("GET", f"/tidegate/v1/connectors/{topic}/progress")
    assert "left 1 records out" in json.dumps(progress)


def test_without_tolerance_the_task_fails_and_names_the_record(worker, topic, tmp_path):
    config = BASE | {"topics": topic, "spark.output.path": str(tmp_path / "out")}
    worker.ask("POST", "/connectors", {"name": topic, "config": config}, expect=201)
    wait_until(lambda: state(worker, topic)["state"] == "FAILED", "the task failed", timeout_s=120)
    assert f"topic {topic} partition 0 offset 1" in state(worker, topic)["trace"]
    assert offset(worker, topic) == 0
