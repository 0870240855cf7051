"""A bulk load whose executors are containers of YARN, with the archive of ``tidegate spark pack``."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pyspark
import pytest

from connectors.spark.client import SparkDriver
from connectors.spark.job import Input
from tests.connectors.spark.clusters import pack, run_and_kill_an_executor
from tests.servers.tidegate_broker import TidegateBroker
from tests.servers.yarn import Yarn
from tests.support.spark import fill, make_job

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.long, pytest.mark.timeout(600)]

PARTITIONS, ROWS = 4, 400
SLOW = "CASE WHEN reflect('java.lang.Thread', 'sleep', 40L) IS NULL THEN 0 ELSE 1 END"


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    yarn = Yarn(tmp_path_factory.mktemp("yarn"))
    try:
        yarn.start()
        yield yarn
    finally:
        yarn.stop()


def test_a_load_on_yarn_has_each_row_once_where_an_executor_is_killed(
    tidegate_broker: TidegateBroker, yarn: Yarn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(yarn.conf))
    jars = Path(pyspark.__file__).parent / "jars"
    conf = pack(tmp_path) | {
        "spark.yarn.jars": f"local:{jars}/*",  # the nodes have Spark: else each session uploads it
        "spark.executor.instances": "2",
        "spark.yarn.am.memory": "512m",
        "spark.yarn.stagingDir": f"file:{tmp_path}/staging",
    }
    topic = f"yarn_{uuid.uuid4().hex[:6]}"
    fill(tidegate_broker.bootstrap_servers, topic, [json.dumps({"id": n}) for n in range(ROWS)], PARTITIONS)
    stops = {str(partition): ROWS // PARTITIONS for partition in range(PARTITIONS)}
    inputs = [Input(topic, dict.fromkeys(stops, 0), stops, "json", "id BIGINT")]
    sql = f"SELECT id, {SLOW} AS slept FROM {topic}"
    job = make_job(
        tidegate_broker.bootstrap_servers, inputs, tmp_path / "out", sql=sql, conf=conf, master="yarn", partition_by=["slept"]
    )  # fmt: skip
    driver = SparkDriver(stopping=threading.Event(), idle_s=60)
    try:
        driver.warm(job, lambda said: None)
        done = run_and_kill_an_executor(driver, job, lambda: [yarn.node_pid])
        (application,) = yarn.applications()
        assert (application["applicationType"], application["state"]) == ("SPARK", "RUNNING")
        assert done["lost"].startswith("an executor was lost"), done["lost"]
        rows = ds.dataset(tmp_path / "out", format="parquet", partitioning="hive").to_table()
        assert sorted(rows["id"].to_pylist()) == list(range(ROWS))
    finally:
        driver.close()
