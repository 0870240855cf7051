"""The Spark transform in a real worker: the connector of its page, with its lag, its pauses and its end."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.servers.process import wait_until
from tests.support.pages import ROOT, blocks
from tests.support.spark import QUICK_CONF, create_topic, produce
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.servers, pytest.mark.proof]


@pytest.fixture(scope="module")
def worker(tidegate_broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectWorker]:
    made = ConnectWorker(
        tmp_path_factory.mktemp("worker"), tidegate_broker.bootstrap_servers, name=f"t{uuid.uuid4().hex[:8]}"
    )
    made.start()
    yield made
    made.stop()


def of_page(folder: Path) -> dict[str, str]:
    """The connector of the page, with its files below a folder and values in JSON."""
    (block,) = blocks(ROOT / "docs/how-to/connectors/spark-transform.md", "json")
    config = json.loads(block.text)["config"]
    return {name: value.replace("/data/", f"{folder}/") for name, value in config.items()} | {
        "spark.master": "local[1]",
        "spark.value.format": "json",
        "spark.value.schema": "item STRING, name STRING, quantity INT, at TIMESTAMP",
        "spark.output.value.format": "json",
        "spark.output.exactly.once": "true",
        "job.interval.ms": "500",
        **{f"spark.conf.{name}": value for name, value in QUICK_CONF.items()},
        "spark.conf.spark.sql.shuffle.partitions": "1",
    }


def values(worker: ConnectWorker, topic: str) -> list[Any]:
    """The records that readers of committed records see."""
    config = {
        "bootstrap.servers": worker.properties["bootstrap.servers"],
        "group.id": uuid.uuid4().hex,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    consumer, seen = Consumer(config), []
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while (message := consumer.poll(30)) is not None and message.error() is None:
        seen.append(json.loads(message.value()))
    consumer.close()
    return seen


def drivers(worker: ConnectWorker) -> list[str]:
    """The Spark drivers and their JVMs below the worker."""
    below = psutil.Process(worker.process.pid).children(recursive=True)
    named = []
    for process in below:
        try:
            line = " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        if "connectors.spark" in line or "java" in line:
            named.append(line)
    return named


@pytest.mark.long
def test_the_stream_of_the_page_shows_its_lag_and_goes_on_after_a_pause_and_under_its_name(
    worker: ConnectWorker, tmp_path: Path
) -> None:
    name = f"hours-{uuid.uuid4().hex[:8]}"
    bootstrap = worker.properties["bootstrap.servers"]
    config = of_page(tmp_path) | {"spark.output.topic": name, "spark.output.topic.partitions": "1"}
    for topic in ("sales", "items"):
        create_topic(bootstrap, f"{topic}-{name}", 1)
        config = {
            key: value.replace(f" {topic} ", f" `{topic}_{name.replace('-', '_')}` ") for key, value in config.items()
        }
    config |= {"topics": f"sales-{name}", "spark.lookup.topics": f"items-{name}"}
    written = 0

    def sell(*hours: str) -> None:
        nonlocal written
        sales = [
            (0, None, json.dumps({"item": "tea", "quantity": 2, "at": f"2026-01-01T{hour}:00Z"})) for hour in hours
        ]
        produce(bootstrap, f"sales-{name}", sales)
        written += len(sales)

    def committed() -> int:
        offsets = worker.ask("GET", f"/connectors/{name}/offsets")["offsets"]
        return int(offsets[0]["offset"]["kafka_offset"]) if offsets else 0

    def hours(count: int) -> list[tuple[str, str, int]]:
        """The aggregates that are there, once the stream has read everything."""
        wait_until(lambda: committed() == written, "the stream has no lag", timeout_s=240)
        wait_until(lambda: len(values(worker, name)) >= count, f"{count} hours", timeout_s=60)
        return sorted((row["name"], row["hour"][11:16], row["sold"]) for row in values(worker, name))

    produce(bootstrap, f"items-{name}", [(0, "tea", json.dumps({"item": "tea", "name": "Tea"}))])
    sell("10:05", "10:50", "11:30")
    worker.ask("POST", "/connectors", {"name": name, "config": config}, expect=201)
    assert hours(1) == [("Tea", "10:00", 4)]
    (told,) = worker.ask("GET", f"/tidegate/v1/connectors/{name}/progress")["tasks"]
    assert told["done"] == 3 and "micro-batches, 1 rows written" in told["note"], told

    worker.ask("PUT", f"/connectors/{name}/pause", expect=202)
    wait_until(lambda: worker.state(name).get(0) == "PAUSED", "the task is paused")
    wait_until(lambda: drivers(worker) == [], "the driver is gone")
    sell("11:40", "12:30")
    worker.ask("PUT", f"/connectors/{name}/resume", expect=202)
    assert hours(2) == [("Tea", "10:00", 4), ("Tea", "11:00", 4)]

    worker.ask("DELETE", f"/connectors/{name}", expect=204)
    wait_until(lambda: drivers(worker) == [], "the driver is gone")
    sell("12:40", "13:30")
    worker.ask("POST", "/connectors", {"name": name, "config": config}, expect=201)
    assert hours(3) == [("Tea", "10:00", 4), ("Tea", "11:00", 4), ("Tea", "12:00", 4)]
