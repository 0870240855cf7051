"""The Spark source in a real worker: its jobs, its positions, and rows that are there once whatever is killed."""

from __future__ import annotations

import json
import os
import random
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.client import ClientConfig, TopicPartition
from broker.client.blocking import Admin
from connect.plugins.registry import load_plugins
from connect.preview import preview
from tests.connectors.spark.test_loads import committed
from tests.servers.process import wait_until
from tests.support.spark import QUICK_CONF
from tests.support.worker import ConnectWorker

pytestmark = [pytest.mark.servers, pytest.mark.proof]

KILLS = 12 if os.environ.get("TIDEGATE_PROOF") == "long" else 2


@pytest.fixture(params=["disabled", pytest.param("enabled", marks=pytest.mark.long)])
def worker(tidegate_broker, tmp_path_factory, request):
    made = ConnectWorker(
        tmp_path_factory.mktemp("worker"),
        tidegate_broker.bootstrap_servers,
        {"exactly.once.source.support": request.param},
        name=f"l{uuid.uuid4().hex[:8]}",
    )
    made.start()
    yield made
    made.stop()


def file(folder, number, rows):
    pq.write_table(pa.table({"id": rows}), folder / f".{number}.parquet")
    (folder / f".{number}.parquet").rename(folder / f"{number}.parquet")


def config(folder, topic, **more):
    return {
        "connector.class": "SparkSource",
        "spark.master": "local[2]",
        **{f"spark.conf.{name}": value for name, value in QUICK_CONF.items()},
        "spark.input.path": str(folder),
        "spark.input.max.files": "1",
        "spark.output.topic": topic,
        "spark.output.value.format": "json",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
        "job.interval.ms": "200",
        **more,
    }


def loaded(worker, topic):
    return [json.loads(message.value())["id"] for message in committed(worker.properties["bootstrap.servers"], topic)]


def task_of(worker, name):
    tasks = worker.ask("GET", f"/connectors/{name}/status").get("tasks")  # 404 until the worker has heard of it
    return tasks[0] if tasks else {"state": "NONE"}


@pytest.mark.long
def test_rows_of_files_are_there_once_whatever_is_killed(worker, tmp_path):
    topic, chance = f"files-{uuid.uuid4().hex[:8]}", random.Random(7)
    (tmp_path / "in").mkdir()
    for number in range(3):
        file(tmp_path / "in", number, range(number * 100, number * 100 + 100))
    given = config(tmp_path / "in", topic)
    seen = preview(load_plugins(), worker.properties, given | {"name": topic}, rows=2)
    assert seen.batches == [] and "id BIGINT" in seen.actions[1] and '{"id":0}' in seen.actions[1]
    worker.ask("POST", "/connectors", {"name": topic, "config": given}, expect=201)
    files = 3
    for kill in range(KILLS):
        wait_until(lambda: len(loaded(worker, topic)) >= (files - 1) * 100, "most files are loaded", timeout_s=240)
        for _ in range(chance.randrange(1, 4)):
            file(tmp_path / "in", files, range(files * 100, files * 100 + 100))
            files += 1
        if kill % 2:
            wait_until(
                lambda: len(loaded(worker, topic)) > (files - 3) * 100, "the next run is under way", timeout_s=240
            )
        worker.kill()
        worker.start()
    wait_until(lambda: len(loaded(worker, topic)) >= files * 100, "all files are loaded", timeout_s=240)
    file(tmp_path / "in", files, range(files * 100, files * 100 + 100))  # the last process runs one at least
    files += 1
    wait_until(lambda: len(loaded(worker, topic)) >= files * 100, "the last file is loaded", timeout_s=240)
    wait_until(
        lambda: "tidegate.pending" not in json.dumps(worker.ask("GET", f"/connectors/{topic}/offsets")),
        "the last run is committed",
    )
    assert sorted(loaded(worker, topic)) == list(range(files * 100))
    (offset,) = worker.ask("GET", f"/connectors/{topic}/offsets")["offsets"]
    assert offset["partition"] == {"input": str(tmp_path / "in")}
    assert worker.ask("GET", f"/connectors/{topic}/topics") == {topic: {"topics": [topic]}}

    def runs():
        """Statistics come some time after a task's start, and after a run."""
        tasks = worker.ask("GET", "/tidegate/v1/connectors")["connectors"].get(topic, [])
        return [run for task in tasks for run in task.get("job", {}).get("runs", [])]

    wait_until(lambda: {run["state"] for run in runs()} == {"done"}, "the runs are done")
    assert {run["records"] for run in runs()} == {100}
    (told,) = worker.ask("GET", f"/tidegate/v1/connectors/{topic}/progress")["tasks"]
    assert (told["done"], told["note"].startswith("wrote 1 file of "), told["note"].endswith(topic)) == (
        100,
        True,
        True,
    )


@pytest.mark.long
def test_a_load_that_can_not_be_fails_in_words_and_is_tried_again_when_asked(worker, tmp_path):
    topic = f"broken-{uuid.uuid4().hex[:8]}"
    given = config(tmp_path / "in", topic, **{"spark.sql": "SELECT idd FROM input"})
    worker.ask("POST", "/connectors", {"name": topic, "config": given}, expect=201)
    wait_until(lambda: task_of(worker, topic)["state"] == "FAILED", "the task failed", timeout_s=120)
    assert "there is no folder" in task_of(worker, topic)["trace"]
    (tmp_path / "in").mkdir()
    file(tmp_path / "in", 1, [1])
    worker.ask("POST", f"/connectors/{topic}/restart?includeTasks=true")
    wait_until(lambda: "idd" in task_of(worker, topic).get("trace", ""), "the query failed", timeout_s=120)
    assert "The query can use: input (id BIGINT)" in task_of(worker, topic)["trace"]
    worker.ask("PUT", f"/connectors/{topic}/config", given | {"spark.sql": "SELECT id FROM input"}, expect=200)
    wait_until(lambda: loaded(worker, topic) == [1], "the file is loaded", timeout_s=120)


@pytest.mark.long
def test_a_load_that_is_stopped_leaves_no_transaction_for_which_readers_wait(worker, tmp_path):
    topic, folder = f"stopped-{uuid.uuid4().hex[:8]}", tmp_path / "in"
    folder.mkdir()
    file(folder, 1, range(1000))
    file(folder, 2, [1000])
    sleepy = "SELECT id, CASE WHEN id = 1000 THEN reflect('java.lang.Thread', 'sleep', 600000L) END AS slept FROM input"
    given = config(folder, topic, **{"spark.input.max.files": "0", "spark.sql": sleepy})
    worker.ask("POST", "/connectors", {"name": topic, "config": given}, expect=201)
    partition = TopicPartition(topic, 0)
    with Admin(ClientConfig(worker.properties["bootstrap.servers"])) as admin:
        wait_until(lambda: topic in admin.list_topics(), "the topic is there", timeout_s=120)
        wait_until(lambda: admin.end_offsets([partition])[partition] >= 1000, "a file is written", timeout_s=240)
        assert admin.end_offsets([partition], committed=True) == {partition: 0}
        worker.ask("PUT", f"/connectors/{topic}/stop", expect=204)
        wait_until(
            lambda: admin.end_offsets([partition], committed=True) == admin.end_offsets([partition]),
            "the transactions are aborted",
        )
    assert loaded(worker, topic) == []
