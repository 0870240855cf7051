"""Times the parts of a connector's Spark job: the session, the first job on it, and the jobs after that.

``python -m bench spark_jobs``; ROWS=1000000 for more than the 1,000 records with which a job is nothing but its overhead. Each
run starts a driver of its own, as a connector has it, over a topic of Avro on a broker of Tidegate. Figures are seconds to the
end of the job, which reads the topic and writes a Parquet file; the best, the median and the worst of all runs.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.spark_read import PARTITIONS, SCHEMA, fill
from broker.client import ClientConfig, NewTopic, TopicPartition
from broker.client.blocking import Admin
from connectors.spark.client import SparkDriver
from connectors.spark.job import Input, Job
from registry.client import RegistryClient
from tests.support.broker import BrokerThread, settings
from tests.support.registry import RegistryThread

ROWS = int(os.environ.get("ROWS", "1000"))
WARM_JOBS = 10


def main(folder: Path, runs: int, console: Console) -> None:
    with ExitStack() as stack:
        broker = stack.enter_context(BrokerThread(settings(folder / "kafka")))
        registry = stack.enter_context(RegistryThread())
        admin = stack.enter_context(Admin(ClientConfig(broker.bootstrap_servers)))
        admin.create_topics([NewTopic("flights", PARTITIONS, 1)])
        with RegistryClient.from_properties({"schema.registry.url": registry.url}) as client:
            schema_id = client.register("flights-value", SCHEMA)
        fill(broker.bootstrap_servers, schema_id, range(ROWS))
        ends = admin.end_offsets([TopicPartition("flights", n) for n in range(PARTITIONS)])
        stops = {str(partition.partition): end for partition, end in ends.items()}
        input_ = Input("flights", dict.fromkeys(stops, 0), stops, "avro")
        job = Job(
            run_id="0", name="bench", inputs=[input_], sql=None, path=str(folder / "out"), format="parquet", mode="append",
            options={}, partition_by=[], files=0, file_bytes=0, metadata_columns=False, master="local[2]", jars=[],
            tolerates_errors=False, conf={}, kafka={"bootstrap.servers": broker.bootstrap_servers},
            registry={"schema.registry.url": registry.url},
        )  # fmt: skip
        asked = dataclasses.replace(
            job, sql="SELECT carrier, count(*) AS n, avg(delay) AS delay FROM flights GROUP BY carrier"
        )
        took: dict[str, list[float]] = {}
        recording = SparkDriver(stopping=threading.Event(), idle_s=0.01)
        recording.run(job, lambda said: None)
        time.sleep(1)  # it is idle, and writes the archive of classes if there is none; its end waits for that
        recording.close()
        for _ in range(runs):
            names = [("first job, which starts Spark", job), ("second job", job)]
            timed(new_driver(), [*names, *[("a job on a warm session", job)] * WARM_JOBS], took)
            driver, ready = new_driver(), threading.Event()
            began = time.perf_counter()
            driver.warm(job, lambda said: ready.set() if said.get("note") == "Spark is ready" else None)
            ready.wait()
            took.setdefault("Spark's start with spark.warm.start", []).append(time.perf_counter() - began)
            timed(driver, [("first job after it", job), *[("a query on a warm session", asked)] * WARM_JOBS], took)
    table = Table("what", "s, best", "median", "worst", "jobs", title="A job of Spark", title_justify="left", box=None)
    for name, seconds in took.items():
        middle = statistics.median(seconds)
        table.add_row(name, f"{min(seconds):.2f}", f"{middle:.2f}", f"{max(seconds):.2f}", str(len(seconds)))
    console.print(table)


def new_driver() -> SparkDriver:
    return SparkDriver(stopping=threading.Event(), idle_s=600)


def timed(driver: SparkDriver, jobs: list[tuple[str, Job]], took: dict[str, list[float]]) -> None:
    for number, (name, job) in enumerate(jobs):
        began = time.perf_counter()
        driver.run(dataclasses.replace(job, run_id=str(number)), lambda said: None)
        took.setdefault(name, []).append(time.perf_counter() - began)
    driver.close()
