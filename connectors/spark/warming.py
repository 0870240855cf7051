"""Loads before the first job of a session what that would load: classes of the JVM, and the processes of Python that plan and read."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from connectors.spark import files
from connectors.spark.job import Job
from connectors.spark.load import Load
from connectors.spark.query_views import queried

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["warm"]

_VIEW: Final = "tidegate_warming"
_SQL: Final = f"SELECT a.*, b.name AS other FROM {_VIEW} a LEFT JOIN {_VIEW} b ON a.id = b.id"


def warm(spark: SparkSession, job: Job | Load) -> None:
    """Read made-up rows as a job reads a topic, join them, and with a local Spark write them to a folder beside the driver."""
    from pyspark_tidegate.warming import WarmingSource

    spark.dataSource.register(WarmingSource)
    rows = queried(spark, _SQL, {_VIEW: spark.read.format(WarmingSource.name()).load()})
    writes_files = isinstance(job, Job) and job.topic is None and not job.into_table
    if not writes_files or not job.master.startswith("local"):
        rows.write.format("noop").mode("overwrite").save()
    else:
        assert isinstance(job, Job)
        folder = Path("warming").absolute()
        like = dataclasses.replace(
            job, run_id="warming", mode="append", partition_by=["month"][: len(job.partition_by)]
        )
        files.write(spark, like, [rows], folder.as_uri())
        shutil.rmtree(folder)
    spark.catalog.dropTempView(_VIEW)
