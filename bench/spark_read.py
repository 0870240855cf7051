"""A topic of Avro to Parquet in one Spark: our data source beside Spark's Kafka source with ``from_avro``.

``python -m bench spark_read``; ROWS=5000000 for more. Both read the same topic of Apache Kafka in the same session, in turn; Spark's
source is given ``kafka.max.poll.records=20000``, with which it is half as fast again (its default is 500). Processor time is
that of broker, JVM and Python together: on a machine that others use too it says more than the time. Ours reads ``value.*``, and in
the second case all columns, of which the query takes that. In the third a Python source yields ready batches of the same rows: no
Python source can cost less. In the fourth Spark makes the rows, which leaves the writing of the file.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from rich.console import Console

from bench.broker.sides import apache_broker
from bench.paired import Case, Measured, measure, show
from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin
from broker.client.columns import encode_batches
from connectors.spark.jars import fetch_jars
from connectors.spark.java import find_java
from registry.client import AvroSchema, RegistryClient
from registry.serde import encode_columns
from tests.support.registry import RegistryThread

ROWS = int(os.environ.get("ROWS", "1000000"))
PARTITIONS, STEP = 4, 50_000
SPARK_PACKAGES = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.1.1"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.spark", "spark-avro_2.13", "4.1.1"),
    ("org.apache.kafka", "kafka-clients", "3.9.0"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
"""The jars of Spark's own source and ``from_avro``. Maven Central lacks the token provider of 4.1.1."""
COLUMNS = (
    "id", "'UA' as carrier", "'EWR' as origin", "'IAH' as dest", "timestamp_micros(1700000000000000 + id) as at",
    "if(id % 7 = 0, null, id * 0.1D) as delay", "cast(id % 3000 as int) as distance", "repeat('n', 100) as note",
)  # fmt: skip
"""Rows like those of the topic, made by Spark."""
SCHEMA = """{"type": "record", "name": "Flight", "fields": [
  {"name": "id", "type": "long"}, {"name": "carrier", "type": "string"}, {"name": "origin", "type": "string"},
  {"name": "dest", "type": "string"}, {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
  {"name": "delay", "type": ["null", "double"]}, {"name": "distance", "type": "int"}, {"name": "note", "type": "string"}]}"""


def fill(bootstrap: str, schema_id: int, ids: Sequence[int] = range(ROWS)) -> None:
    """A record of about 150 bytes for each id, in batches of at most STEP over the partitions in turn."""
    import asyncio

    from broker.client import BatchProducer

    schema = AvroSchema.parse(SCHEMA)

    async def send() -> None:
        async with BatchProducer(ClientConfig(bootstrap, {"compression.type": "none"})) as producer:
            for start in range(0, len(ids), STEP):
                numbers = list(ids[start : start + STEP])
                rows = pa.RecordBatch.from_pydict(
                    {
                        "id": numbers,
                        "carrier": ["UA"] * len(numbers),
                        "origin": ["EWR"] * len(numbers),
                        "dest": ["IAH"] * len(numbers),
                        "at": pa.array([1_700_000_000_000_000 + n for n in numbers], pa.timestamp("us", "UTC")),
                        "delay": [None if n % 7 == 0 else n * 0.1 for n in numbers],
                        "distance": pa.array([n % 3000 for n in numbers], pa.int32()),
                        "note": ["n" * 100] * len(numbers),
                    }
                )
                values = encode_columns(schema, rows, schema_id)
                acks = [
                    await producer.send_batch("flights", start // STEP % PARTITIONS, batch)
                    for batch in encode_batches(None, values)
                ]
                await asyncio.gather(*acks)

    asyncio.run(send())


def cpu_s() -> float:
    """Processor time of this process and of those below it: broker, JVM and Python workers, ended ones too."""
    total = 0.0
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue  # it ended meanwhile, and its parent has its time
    return total


def session(folder: Path) -> Any:
    """A Spark of two cores with Spark's Kafka and Avro packages."""
    java = find_java(folder)
    jars = fetch_jars(java, folder, SPARK_PACKAGES)
    os.environ |= {"JAVA_HOME": str(java), "PYSPARK_PYTHON": sys.executable}

    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _ready() -> Any:
    """A data source that yields batches of the topic's columns, made once. Spark pickles its classes by value."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

    rows, partitions, step = ROWS, PARTITIONS, STEP

    class Reader(DataSourceReader):
        def partitions(self) -> list[InputPartition]:
            return [InputPartition(n) for n in range(partitions)]

        def read(self, partition: InputPartition) -> Any:
            import pyarrow as pa

            numbers = list(range(step))
            times = pa.array(numbers, pa.timestamp("us", "UTC"))
            batch = pa.RecordBatch.from_pydict(
                {
                    "id": numbers,
                    "carrier": ["UA"] * step,
                    "origin": ["EWR"] * step,
                    "dest": ["IAH"] * step,
                    "at": times,
                    "delay": [None if n % 7 == 0 else n * 0.1 for n in numbers],
                    "distance": pa.array([n % 3000 for n in numbers], pa.int32()),
                    "note": ["n" * 100] * step,
                }
            )
            left = rows // partitions
            while left > 0:
                yield batch.slice(0, left)
                left -= step

    class Ready(DataSource):
        @classmethod
        def name(cls) -> str:
            return "ready"

        def schema(self) -> str:
            return "id BIGINT, carrier STRING, origin STRING, dest STRING, at TIMESTAMP, delay DOUBLE, distance INT, note STRING"

        def reader(self, schema: Any) -> Reader:
            return Reader()

    # Classes of a module are pickled by name, and workers need not have the bench.
    Reader.__module__ = Ready.__module__ = "__main__"
    return Ready


def main(folder: Path, runs: int, console: Console) -> None:
    with ExitStack() as stack:
        bootstrap = stack.enter_context(apache_broker(folder / "kafka")).bootstrap
        registry = stack.enter_context(RegistryThread())
        with Admin(ClientConfig(bootstrap)) as admin:
            admin.create_topics([NewTopic("flights", PARTITIONS, 1)])
        with RegistryClient.from_properties({"schema.registry.url": registry.url}) as client:
            schema_id = client.register("flights-value", SCHEMA)
        fill(bootstrap, schema_id)
        spark = session(folder)

        from pyspark.sql import functions as f
        from pyspark.sql.avro.functions import from_avro

        def timed(frame: Any) -> Measured:
            target = folder / "out.parquet"
            used, began = cpu_s(), time.perf_counter()
            frame.write.mode("overwrite").parquet(str(target))
            took, used = time.perf_counter() - began, cpu_s() - used
            assert spark.read.parquet(str(target)).count() == ROWS
            shutil.rmtree(target)
            return {"rows/s": ROWS / took, "CPU µs/row": used / ROWS * 1e6}

        def of_topic(**more: str) -> Any:
            reader = spark.read.format("tidegate").option("kafka.bootstrap.servers", bootstrap)
            options = {"schema.registry.url": registry.url, "subscribe": "flights"}
            return reader.options(**options, **more).load()

        def ours() -> Measured:
            return timed(of_topic(columns="value.*"))

        def all_columns() -> Measured:
            return timed(of_topic().select("value.*"))

        def theirs() -> Measured:
            reader = spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
            options = {"subscribe": "flights", "startingOffsets": "earliest", "kafka.max.poll.records": "20000"}
            value = from_avro(f.expr("substring(value, 6)"), SCHEMA, {"mode": "FAILFAST"}).alias("value")
            return timed(reader.options(**options).load().select(value).select("value.*"))

        spark.dataSource.register(_ready())

        def ready() -> Measured:
            return timed(spark.read.format("ready").load())

        def nothing_read() -> Measured:
            return timed(spark.range(0, ROWS, numPartitions=PARTITIONS).selectExpr(*COLUMNS))

        ours(), theirs(), ready()  # all are warm
        cases = (
            Case(f"{ROWS:,} records to Parquet, local[2]", ours, theirs),
            Case("the same with all columns of the source", all_columns, theirs),
            Case("the same with ready batches for ours", ready, theirs),
            Case("the same with rows that Spark makes", nothing_read, theirs),
        )
        show("Spark reads a topic", {case.name: measure(case, runs, console) for case in cases}, console)
        spark.stop()
