"""Changes of a topic merged into a table, Iceberg and Delta: a job of the Spark sink beside a ``MERGE`` written by hand.

``python -m bench spark_merge``: 1,000,000 changes, nine of ten of rows that are there, into 10,000,000 rows; ROWS=1000000
CHANGES=100000 for less. Both read the topic with the data source ``tidegate``, in one session and in turn, and begin with the same
table. The one by hand takes the newest change of each key by ``row_number``. The sink also checks keys, commits the offsets with the
rows, and, in Iceberg, writes to a branch first. Processor time is that of broker, JVM and Python together.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from bench.paired import Case, Measured, measure, show
from bench.spark_read import PARTITIONS, SCHEMA, cpu_s, fill
from bench.spark_write import COLUMNS
from broker.client import ClientConfig, NewTopic, TopicPartition
from broker.client.blocking import Admin
from connectors.spark import driver
from connectors.spark.jars import PACKAGES, fetch_jars
from connectors.spark.java import environment, find_java
from connectors.spark.job import Input, Job, Merge
from registry.client import RegistryClient
from tests.support.broker import BrokerThread, settings
from tests.support.registry import RegistryThread
from tests.support.spark import lake_conf

ROWS = int(os.environ.get("ROWS", "10000000"))
CHANGES = int(os.environ.get("CHANGES", "1000000"))
NEW = CHANGES // 10
TABLE = "lake.db.flights"


def main(folder: Path, runs: int, console: Console) -> None:
    with ExitStack() as stack:
        broker = stack.enter_context(BrokerThread(settings(folder / "kafka")))
        registry = stack.enter_context(RegistryThread())
        admin = stack.enter_context(Admin(ClientConfig(broker.bootstrap_servers)))
        admin.create_topics([NewTopic("flights", PARTITIONS, 1)])
        with RegistryClient.from_properties({"schema.registry.url": registry.url}) as client:
            schema_id = client.register("flights-value", SCHEMA)
        chance = np.random.default_rng(23)
        ids = np.concatenate([chance.choice(ROWS, CHANGES - NEW, replace=False), np.arange(ROWS, ROWS + NEW)])
        fill(broker.bootstrap_servers, schema_id, chance.permutation(ids).tolist())
        ends = admin.end_offsets([TopicPartition("flights", n) for n in range(PARTITIONS)])
        stops = {str(partition.partition): end for partition, end in ends.items()}
        input_ = Input("flights", dict.fromkeys(stops, 0), stops, "avro", topic_id="1")
        java = find_java(folder)
        jars = [str(jar) for name in ("iceberg", "delta") for jar in fetch_jars(java, folder, PACKAGES[name])]
        os.environ.update(environment(java, folder, local=True))
        os.chdir(folder)
        kafka, of_registry = {"bootstrap.servers": broker.bootstrap_servers}, {"schema.registry.url": registry.url}

        def job(format_: str, path: str, table: str) -> Job:
            return Job(
                run_id=uuid.uuid4().hex[:16], name="bench", inputs=[input_], sql=None, path=path, format=format_, mode="merge",
                options={}, partition_by=[], files=0, file_bytes=0, metadata_columns=False, master="local[2]", jars=jars,
                tolerates_errors=False, conf=lake_conf(folder) | {"spark.driver.memory": "2g"}, kafka=kafka, registry=of_registry,
                connector="bench", table=table, merge=Merge(keys=["id"]),
            )  # fmt: skip

        spark = driver._session(job("iceberg", "", TABLE))
        spark.sparkContext.setLogLevel("ERROR")
        tables = spark.range(0, ROWS, numPartitions=PARTITIONS * 2).selectExpr(*COLUMNS)
        tables.writeTo(TABLE).using("iceberg").create()
        base = spark.sql(f"SELECT snapshot_id FROM {TABLE}.snapshots").collect()[0][0]
        tables.write.format("delta").save(str(folder / "base"))

        def fresh(format_: str) -> str:
            """The name in SQL of a table that has the rows alone."""
            if format_ == "iceberg":
                spark.sql(f"CALL lake.system.set_current_snapshot('db.flights', {base})")
                return TABLE
            shutil.rmtree(folder / "changed", ignore_errors=True)
            spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
            shutil.copytree(folder / "base", folder / "changed", copy_function=os.link)
            return f"delta.`{folder / 'changed'}`"

        def timed(name: str, merge: Any) -> Measured:
            used, began = cpu_s(), time.perf_counter()
            merge()
            took, used = time.perf_counter() - began, cpu_s() - used
            assert spark.table(name).count() == ROWS + NEW
            return {"s": took, "CPU s": used}

        def ours(format_: str) -> Measured:
            name = fresh(format_)
            path, table = (str(folder / "changed"), "") if format_ == "delta" else ("", TABLE)
            return timed(name, lambda: driver._run(spark, job(format_, path, table), driver._Descriptions()))

        def by_hand(format_: str) -> Measured:
            name = fresh(format_)
            options = {f"kafka.{key}": value for key, value in kafka.items()} | of_registry | {"subscribe": "flights"}
            changes = spark.read.format("tidegate").options(**options).load().select("value.*", "offset")
            changes.createOrReplaceTempView("changes")
            newest = (
                "SELECT * EXCEPT (n, offset) FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY offset DESC) n FROM changes) "
                "WHERE n = 1"
            )
            sql = f"MERGE INTO {name} t USING ({newest}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            return timed(name, lambda: spark.sql(sql))

        results = {}
        for format_ in ("iceberg", "delta"):
            ours(format_), by_hand(format_)  # all are warm
            case = Case(
                f"{format_}: {CHANGES:,} changes into {ROWS:,} rows, local[2]",
                lambda format_=format_: ours(format_),
                lambda format_=format_: by_hand(format_),
            )
            results[case.name] = measure(case, runs, console)
        show("Spark merges changes of a topic; theirs is MERGE by hand", results, console)
        spark.stop()
