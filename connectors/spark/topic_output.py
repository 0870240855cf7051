"""The result of a job as records of a topic, written by the data source ``tidegate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.spark.job import Job
from pyspark_tidegate.sink import was_committed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["write"]


def write(job: Job, frame: DataFrame, run_id: str) -> bool:
    """Write the rows to the job's topic, as the run of this id. False: a transaction of that run has been committed, so that nothing
    is written."""
    output = job.topic
    assert output is not None
    options = {f"kafka.{name}": value for name, value in job.kafka.items()} | {
        "topic": output.topic,
        "value.format": output.value_format,
        "key.format": output.key_format,
        "key.fields": ",".join(output.key_columns),
    }
    options = {**job.registry, **options, **job.options}
    if output.once:
        # One task, so that the rows and the id of their run are in one transaction.
        options |= {"transactions": "true", "transactions.group": output.group, "transactions.note": run_id}
        if was_committed(options):
            return False
        frame = frame.repartition(1)
    frame.write.format("tidegate").options(**options).mode("append").save()
    return True
