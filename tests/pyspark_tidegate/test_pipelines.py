"""The project of docs/how-to/spark/pipelines.md, run by ``spark-pipelines`` as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer

from connectors.spark.java import find_java
from tests.pyspark_tidegate.driver import ROOT
from tests.pyspark_tidegate.test_reading import FLIGHT, Topic
from tests.pyspark_tidegate.test_writing import messages
from tests.support.broker import BrokerThread
from tests.support.platform import tidegate
from tests.support.registry import RegistryThread

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.long, pytest.mark.timeout(600)]

PAGE = (ROOT / "docs/how-to/spark/pipelines.md").read_text()


def test_each_run_of_the_project_writes_what_is_new(
    broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    flights, departures = Topic(broker, registry), Topic(broker, registry)
    (spec,), (code,) = (re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL) for kind in ("yaml", "python"))
    (folder / "transformations").mkdir()
    (folder / "spark-pipeline.yml").write_text(spec.replace("/data", str(folder)))
    addresses = {
        "127.0.0.1:9092": broker.bootstrap_servers,
        "http://127.0.0.1:8081": registry.url,
        'subscribe="flights"': f'subscribe="{flights.name}"',
        '"topic": "departures"': f'"topic": "{departures.name}"',
    }
    for ours, here in addresses.items():
        assert ours in code
        code = code.replace(ours, here)
    (folder / "transformations" / "flights.py").write_text(code)
    for number in (1, 2):
        flights.write(FLIGHT, [{"id": number, "month": number}])
        run(folder, folder)
        rows = rows_of(departures)
        assert sorted(row["month"] for row in rows) == [2 * n for n in range(1, number + 1)]


def test_a_transform_becomes_a_project_that_runs(broker: BrokerThread, registry: RegistryThread, folder: Path) -> None:
    flights, months, output = Topic(broker, registry), Topic(broker, registry), Topic(broker, registry)
    view, lookup = (topic.name.replace("-", "_") for topic in (flights, months))
    connector = {
        "connector.class": "SparkTransform",
        "topics": flights.name,
        "spark.lookup.topics": months.name,
        "spark.sql": f"SELECT f.id, m.month * 2 AS month FROM {view} f JOIN {lookup} m ON m.id = f.month",
        "spark.mode": "available-now",
        "spark.checkpoint.path": str(folder / "checkpoint"),
        "spark.output.topic": output.name,
        "spark.output.key.columns": "id",
        "spark.conf.spark.sql.shuffle.partitions": "2",
    }
    (folder / "months.json").write_text(json.dumps({"name": "months-of-flights", "config": connector}))
    where = ("--bootstrap-servers", broker.bootstrap_servers, "--registry", registry.url)
    project = folder / "project"
    tidegate("spark", "pipeline", str(folder / "months.json"), str(project), *where)
    months.write(FLIGHT, [{"id": 7, "month": 1}, {"id": 7, "month": 10}], keys=["7", "7"])
    for number in (1, 2):
        flights.write(FLIGHT, [{"id": number, "month": 7}])
        run(project, folder)
        assert sorted(row["id"] for row in rows_of(output)) == list(range(1, number + 1))
    assert {row["month"] for row in rows_of(output)} == {20}
    again = tidegate("spark", "pipeline", str(folder / "months.json"), str(project), *where, check=False)
    assert "spark-pipeline.yml exists" in again.stderr


def run(project: Path, folder: Path) -> None:
    import pyspark

    settings = {
        "JAVA_HOME": str(find_java(folder)),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": "-Dspark.ui.enabled=false",
    }
    ran = subprocess.run(
        ["spark-pipelines", "run"], cwd=project, env=os.environ | settings, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]


def rows_of(topic: Topic) -> list[dict[str, Any]]:
    with SchemaRegistryClient({"url": topic.registry.url}) as client:
        decode = AvroDeserializer(client)
        return [decode(message.value(), None) for message in messages(topic)]
