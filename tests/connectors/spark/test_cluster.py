"""Jobs on a standalone cluster whose executors have a bare Python and what ``tidegate spark pack`` makes."""

from __future__ import annotations

import dataclasses
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from connectors.spark.client import SparkDriver
from connectors.spark.job import Input, Job, TopicOutput
from tests.connectors.spark.clusters import pack, run_and_kill_an_executor
from tests.servers.spark import SparkCluster
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.registry import RegistryThread
from tests.support.spark import committed, create_topic, fill, make_job

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.long, pytest.mark.timeout(600)]

PARTITIONS, ROWS = 4, 400
SLOW = "CASE WHEN reflect('java.lang.Thread', 'sleep', 40L) IS NULL THEN 0 ELSE 1 END"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    return pack(tmp_path_factory.mktemp("packed"))


@pytest.fixture(scope="module")
def registry() -> Iterator[RegistryThread]:
    with RegistryThread() as started:
        yield started


@pytest.fixture
def job_for(
    tidegate_broker: TidegateBroker,
    registry: RegistryThread,
    cluster: SparkCluster,
    packed: Mapping[str, str],
    tmp_path: Path,
) -> Callable[..., Job]:
    bootstrap = tidegate_broker.bootstrap_servers
    topic = f"cluster_{uuid.uuid4().hex[:6]}"
    fill(bootstrap, topic, [json.dumps({"id": n}) for n in range(ROWS)], PARTITIONS)
    stops = {str(partition): ROWS // PARTITIONS for partition in range(PARTITIONS)}
    input_ = Input(topic, dict.fromkeys(stops, 0), stops, "json", "id BIGINT")

    def made(**changes: Any) -> Job:
        given = {"conf": dict(packed), "master": cluster.url, "registry": {"schema.registry.url": registry.url}}
        sql = f"SELECT id, {SLOW} AS slept FROM {topic}"
        return make_job(bootstrap, [input_], tmp_path / "out", sql=sql, **(given | changes))

    return made


@pytest.fixture(scope="module")
def driver() -> Iterator[SparkDriver]:
    driver = SparkDriver(stopping=threading.Event(), idle_s=60)
    yield driver
    driver.close()


def run_and_lose_a_worker(driver: SparkDriver, job: Job, cluster: SparkCluster) -> Mapping[str, Any]:
    """The worker is killed when the first tasks are done and others run on it."""
    lost = cluster.workers[0]
    killed = threading.Event()

    def look(said: Mapping[str, Any]) -> None:
        if not killed.is_set() and said["unit"] == "tasks" and said["total"] and said["done"]:
            lost.kill()
            killed.set()

    done = driver.run(job, look)
    assert killed.is_set()
    lost.start()
    return done


def test_files_and_a_topic_have_each_row_once_where_a_worker_is_killed(
    driver: SparkDriver,
    job_for: Callable[..., Job],
    cluster: SparkCluster,
    tidegate_broker: TidegateBroker,
    tmp_path: Path,
) -> None:
    driver.warm(job_for(), lambda said: None)
    job = job_for(partition_by=["slept"])
    done = run_and_lose_a_worker(driver, job, cluster)
    (counted,) = done["rows"].values()
    assert counted >= ROWS  # Spark counts what it reads again
    rows = ds.dataset(tmp_path / "out", format="parquet", partitioning="hive").to_table()
    assert sorted(rows["id"].to_pylist()) == list(range(ROWS))

    output = TopicOutput(f"{job.inputs[0].topic}_out", ["id"], "avro", "avro", once=True, group="cluster-output")
    create_topic(tidegate_broker.bootstrap_servers, output.topic, 1)
    into_topic = dataclasses.replace(job, topic=output, partition_by=[], path="")
    run_and_lose_a_worker(driver, into_topic, cluster)
    assert "has the run already" in driver.run(into_topic, lambda said: None)["note"]
    values = [message.value() for message in committed(tidegate_broker.bootstrap_servers, output.topic)]
    assert len(values) == len(set(values)) == ROWS


def test_files_have_each_row_once_and_the_user_is_told_where_an_executor_is_killed(
    driver: SparkDriver, job_for: Callable[..., Job], cluster: SparkCluster, tmp_path: Path
) -> None:
    driver.warm(job_for(), lambda said: None)
    job = job_for(partition_by=["slept"], run_id="abd")
    done = run_and_kill_an_executor(driver, job, lambda: [worker.pid for worker in cluster.workers])
    assert done["lost"].startswith("an executor was lost, and the tasks ran again elsewhere: 127.0.0.1:")
    assert "exited with code 137" in done["lost"] or "disassociated" in done["lost"], done["lost"]
    rows = ds.dataset(tmp_path / "out", format="parquet", partitioning="hive").to_table()
    assert sorted(rows["id"].to_pylist()) == list(range(ROWS))
