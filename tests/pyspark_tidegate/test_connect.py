"""The data source through Spark Connect: the client has no JVM, and the server finds the format itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pyspark_tidegate.test_reading import FLIGHT, Topic
from tests.support.broker import BrokerThread
from tests.support.registry import RegistryThread
from tests.support.spark import connect_server

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.timeout(600)]

# A client of its own process: a session of Connect and one with a JVM can't be in one process.
CLIENT = """
import json, sys
from pyspark.sql import SparkSession

url, read, write = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
spark = SparkSession.builder.remote(url).getOrCreate()  # as in docs/how-to/spark/data-source.md
assert "connect" in type(spark).__module__
frame = spark.read.format("tidegate").options(**read).load()
rows = frame.selectExpr("value.id", "value.month * 2 as month")
rows.write.format("tidegate").options(**write).mode("append").save()
back = spark.read.format("tidegate").options(**(read | {"subscribe": write["topic"]})).load().select("value.*")
found = sorted([row.id, row.month] for row in back.collect())
query = (
    spark.readStream.format("tidegate").options(**read, startingOffsets="earliest").load().selectExpr("value.id")
    .writeStream.format("memory").queryName("seen").trigger(processingTime="0 seconds").start()
)
query.processAllAvailable()
query.stop()
print("RESULT", json.dumps([found, spark.table("seen").count()]))
spark.stop()
"""


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    with connect_server(folder) as address:
        yield address


@pytest.mark.long
def test_a_client_without_a_jvm_reads_writes_and_streams(
    server: str, broker: BrokerThread, registry: RegistryThread, folder: Path
) -> None:
    topic, copy = Topic(broker, registry), Topic(broker, registry)
    topic.write(FLIGHT, [{"id": n, "month": n} for n in range(5)])
    write = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "schema.registry.url": registry.url,
        "topic": copy.name,
    }
    client = subprocess.run(
        [sys.executable, "-c", CLIENT, server, json.dumps(topic.options()), json.dumps(write)],
        capture_output=True, text=True, timeout=300, check=False, cwd=folder, env={**os.environ, "JAVA_HOME": "/nowhere"},
    )  # fmt: skip
    assert client.returncode == 0, client.stderr[-3000:]
    result = next(line.removeprefix("RESULT ") for line in client.stdout.splitlines() if line.startswith("RESULT "))
    assert json.loads(result) == [[[n, 2 * n] for n in range(5)], 5]
