"""A Spark driver of its own, for tests that kill it or that need another master: ``python -m tests.pyspark_tidegate.driver JSON``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[2]


class Driver:
    """The process, with the processes that it starts in its group."""

    def __init__(
        self,
        folder: Path,
        work: str,
        master: str = "local[2]",
        *,
        python: str = sys.executable,
        environment: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        job = {"work": work, "master": master, "folder": str(folder), **more}
        self._log = folder / "driver.log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [python, "-m", "tests.pyspark_tidegate.driver", json.dumps(job)],
                cwd=ROOT, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **(environment or {})},
            )  # fmt: skip

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(60)

    def ended(self) -> int:
        return self.process.wait(240)

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")


def _session(job: dict[str, Any]) -> SparkSession:
    import pyspark
    from pyspark.sql import SparkSession

    from connectors.spark.java import find_java

    folder = Path(job["folder"])
    # Workers of local-cluster have their folders below Spark's.
    home = folder / "home"
    home.mkdir(exist_ok=True)
    for part in ("bin", "jars", "python"):
        if not (home / part).exists():
            (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    os.environ |= {
        "JAVA_HOME": str(find_java(folder)),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT)),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
    }
    builder = SparkSession.builder.master(job["master"]).config("spark.executorEnv.PYTHONPATH", str(ROOT))
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        **job.get("conf", {}),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def copy(spark: SparkSession, job: dict[str, Any]) -> None:
    """A stream that ends when it has read everything: to files, or to a topic."""
    folder = Path(job["folder"])
    rows = spark.readStream.format("tidegate").options(**job["source"]).load().selectExpr("value.id", "value.month")
    if "fail" in job:
        rows = rows.selectExpr(f"if(id = {job['fail']}, raise_error('row {job['fail']}'), id) as id", "month")
    stream = rows.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    if "sink" in job:
        query = stream.format("tidegate").options(**job["sink"]).start()
    else:
        query = stream.format("parquet").start(str(folder / "out"))
    query.processAllAvailable()
    query.stop()


def copy_and_tell(spark: SparkSession, job: dict[str, Any]) -> None:
    """Copy a topic, and write down where the executors' packages came from."""
    rows = spark.read.format("tidegate").options(**job["source"]).load().select("value.*")
    rows.write.format("tidegate").options(**job["sink"]).mode("append").save()

    def origins(_: int) -> list[str]:
        import pyarrow

        import broker.client

        return [str(broker.client.__file__), str(pyarrow.__file__)]

    told = spark.sparkContext.parallelize([0], 1).flatMap(origins).collect()
    Path(job["folder"], "origins.json").write_text(json.dumps(told))


def read_files(spark: SparkSession, job: dict[str, Any]) -> None:
    rows = spark.read.parquet(f"{job['folder']}/out").collect()
    Path(job["folder"], "ids.json").write_text(json.dumps([row.id for row in rows]))


def write_twice(spark: SparkSession, job: dict[str, Any]) -> None:
    """Write rows of which one task must be computed a second time: its first attempt fails."""
    for sink in job["sinks"]:
        _twice(spark).write.format("tidegate").options(**sink).mode("append").save()


def _twice(spark: SparkSession) -> DataFrame:
    def again(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        first = context.partitionId() == 0 and context.attemptNumber() == 0
        for batch in batches:
            yield batch
            if first:
                raise RuntimeError("the first attempt fails")

    return spark.range(2000, numPartitions=4).mapInArrow(again, "id BIGINT")


def main() -> None:
    job = json.loads(sys.argv[1])
    spark = _session(job)
    try:
        globals()[job["work"]](spark, job)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
