"""The project of docs/how-to/spark/pipelines.md, run by ``spark-pipelines`` as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer

from connectors.spark.java import find_java
from tests.pyspark_tidegate.driver import ROOT
from tests.pyspark_tidegate.test_reading import FLIGHT, Topic
from tests.pyspark_tidegate.test_writing import messages
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.long, pytest.mark.timeout(600)]

PAGE = (ROOT / "docs/how-to/spark/pipelines.md").read_text()


def test_each_run_of_the_project_writes_what_is_new(
    broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    import pyspark

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
    settings = {
        "JAVA_HOME": str(find_java(folder)),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": "-Dspark.ui.enabled=false",
    }
    for number in (1, 2):
        flights.write(FLIGHT, [{"id": number, "month": number}])
        ran = subprocess.run(
            ["spark-pipelines", "run"], cwd=folder, env=os.environ | settings, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-3000:]
        with SchemaRegistryClient({"url": registry.url}) as client:
            decode = AvroDeserializer(client)
            rows = [decode(message.value(), None) for message in messages(departures)]
        assert sorted(row["month"] for row in rows) == [2 * n for n in range(1, number + 1)]
