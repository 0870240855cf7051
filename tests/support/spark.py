"""Topics and jobs for tests of Spark."""

from __future__ import annotations

import gc
import json
import socket
import sys
import uuid
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyspark
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyiceberg.table import StaticTable

from connectors.spark.java import find_java
from connectors.spark.job import Input, Job
from tests.servers.java import QUICK
from tests.servers.process import ServerProcess, free_ports

__all__ = [
    "QUICK_CONF",
    "collect_connections",
    "committed",
    "connect_server",
    "create_topic",
    "delta_table",
    "fill",
    "iceberg_table",
    "lake_conf",
    "make_job",
    "produce",
]

Bytes = bytes | str | None

QUICK_CONF: Final = {"spark.driver.extraJavaOptions": " ".join(QUICK)}
"""For a Spark that lives for seconds."""


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The ``sc://`` address of a Spark Connect server on loopback, with two cores."""
    home = Path(pyspark.__file__).parent
    (port,) = free_ports(1)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    conf = [argument for name, value in settings.items() for argument in ("--conf", f"{name}={value}")]
    command = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]", *conf]
    process = ServerProcess(
        "Spark Connect",
        [str(home / "bin" / "spark-submit"), *command],
        log=folder / "connect.log",
        ready=lambda: _listens(port),
        environment={
            "JAVA_HOME": str(find_java(folder)),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_DIRS": str(folder),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
    )
    process.start()
    try:
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.stop()


def _listens(port: int) -> bool:
    with socket.socket() as asked:
        return asked.connect_ex(("127.0.0.1", port)) == 0


def create_topic(bootstrap: str, topic: str, partitions: int = 2) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})  # kept until its future is done
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(60)


def produce(bootstrap: str, topic: str, records: Iterable[tuple[int, Bytes, Bytes]], at_ms: int | None = None) -> None:
    """Records are partition, key and value; all have the same time."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition, key, value in records:
        producer.produce(topic, value, key=key, partition=partition, timestamp=at_ms or 0)
    assert producer.flush(60) == 0


def fill(bootstrap: str, topic: str, values: Sequence[Bytes | tuple[Bytes, Bytes]], partitions: int = 2) -> None:
    """A new topic with these values, or keys and values, over its partitions in turn."""
    create_topic(bootstrap, topic, partitions)
    pairs = [value if isinstance(value, tuple) else (None, value) for value in values]
    produce(bootstrap, topic, [(n % partitions, key, value) for n, (key, value) in enumerate(pairs)])


def committed(bootstrap: str, topic: str) -> list[Message]:
    """The records of a topic with one partition that readers of committed records see."""
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": uuid.uuid4().hex,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(config)
    consumer.subscribe([topic])
    read = []
    while True:
        message = consumer.poll(60)
        assert message is not None
        if message.error() is not None:
            consumer.close()
            return read
        read.append(message)


def collect_connections() -> None:
    """Spark's gateway leaves connections to its JVM to the garbage collector: here, and not in the middle of another test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def lake_conf(warehouse: Path) -> dict[str, str]:
    """A session for tables of both formats, with the Iceberg catalog ``lake`` in a folder of the warehouse."""
    from connectors.spark.tables.delta import EXTENSION as OF_DELTA
    from connectors.spark.tables.iceberg import EXTENSION as OF_ICEBERG

    catalog = "spark.sql.catalog.lake"
    return {
        "spark.sql.extensions": f"{OF_ICEBERG},{OF_DELTA}",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.shuffle.partitions": "2",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": str(warehouse / "lake"),
        f"{catalog}.cache-enabled": "false",
    }


def make_job(bootstrap: str, inputs: list[Input], path: Path | str, **changes: Any) -> Job:
    """A job that writes Parquet below ``path`` with two cores, but for the changes."""
    job: dict[str, Any] = {
        "run_id": "abc",
        "name": "test",
        "inputs": inputs,
        "sql": None,
        "path": str(path),
        "format": "parquet",
        "partition_by": [],
        "mode": "append",
        "options": {},
        "files": 0,
        "file_bytes": 0,
        "metadata_columns": False,
        "master": "local[2]",
        "jars": [],
        "tolerates_errors": False,
        "conf": QUICK_CONF,
        "kafka": {"bootstrap.servers": bootstrap},
        "registry": {},
    }
    return Job(**(job | changes))


def delta_table(folder: Path) -> pa.Table:
    """The rows of a Delta table, by its log alone."""
    files: set[str] = set()
    for commit in sorted((folder / "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text().splitlines()):
            files |= {action["add"]["path"]} if "add" in action else set()
            files -= {action["remove"]["path"]} if "remove" in action else set()
    return ds.dataset([str(folder / file) for file in files]).to_table()


def iceberg_table(folder: Path) -> StaticTable:
    """The newest state of an Iceberg table of a Hadoop catalog, by pyiceberg."""
    newest = max(folder.glob("metadata/v*.metadata.json"), key=lambda path: int(path.name.split(".")[0][1:]))
    return StaticTable.from_metadata(str(newest))
