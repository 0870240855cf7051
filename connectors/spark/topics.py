"""Topics as DataFrames of the driver, read by the data source ``tidegate``."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from connectors.spark.job import Input, Job, Stream
from connectors.spark.tables.changes import changes

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

__all__ = ["Topic", "failures_of", "read"]

_DIVIDED_ROWS: Final = 100_000
"""An input of so many offsets is divided among all cores, even if it has fewer partitions."""
_METADATA: Final = ("topic", "partition", "offset", "timestamp")
_CORRUPT: Final = "__corrupt"
_MOST_COLUMNS: Final = 200
"""The most characters of columns in a reason."""


@dataclass(frozen=True)
class Topic:
    """The records of a topic. ``bad`` are those that can't be decoded, as they lie in the log and with the reason in ``error``; None
    where the first ends the job. ``keys`` are the columns that tell rows apart, where the job merges."""

    frame: DataFrame
    bad: DataFrame | None
    observed: Observation | None
    """The observation that counts the records; None in a stream, whose progress counts them."""
    keys: Sequence[str] = ()
    unavailable: str = ""
    """The text in place of one that the source left out; empty: none."""

    def counts(self) -> tuple[int, int] | None:
        """How many records became rows, and how many could not be decoded, after ``frame`` was computed. None where Spark does not
        tell: of a topic that is read in a subquery alone, or that it saw no need to read."""
        if self.observed is None:
            return None
        self.frame.sparkSession.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        row = self.observed._jo.getRowOrEmpty()
        if row.isEmpty() or not row.get().length():
            return None
        counted = self.observed.get
        return int(counted["rows"]), int(counted["bad"])


def failures_of(input_: Input) -> str:
    """The name of the metric of a stream that counts the topic's records that can't be decoded."""
    return f"left out of {input_.topic}"


def read(spark: SparkSession, job: Job, input_: Input, *, keeps_errors: bool = False) -> Topic:
    """The records of one topic as columns; tombstones are left out. Of a lookup's records with a key, the newest of each key.

    With ``keeps_errors``, for a job that tolerates errors, a record that can't be decoded is a row of nulls. ``__error`` and
    ``__bytes`` are among the metadata columns then, and ``first_bad`` is observed: partition, offset and reason of the first.

    A job that is a stream reads them as a stream, but for lookups, which each micro-batch reads anew.

    With the mode merge they are changes of rows (``tables.changes``), tombstones among them.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f
    from pyspark.sql.types import StructType

    records = _records(spark, job, input_)
    bad, tolerates = None, job.tolerates_errors
    if input_.value_is_ddl:
        records = _parsed(records, input_.value_schema or "", tolerates=tolerates)
    failed = f.col("error").isNotNull() if tolerates else f.lit(False)
    observed = None if job.stream is not None else Observation(input_.topic)
    merges = job.merges and not input_.lookup
    if not input_.lookup and not merges:
        records = records.where(f.col("value").isNotNull() | failed)
    if tolerates:
        bad = records.where(failed).select(
            "topic", "partition", "offset", "timestamp", "key", "bytes", "headers", "error"
        )
    if input_.lookup:
        records = _newest(records, failed)
    rows = ~failed if merges else ~failed & f.col("value").isNotNull()
    if tolerates and job.stream is not None and not input_.lookup:
        records = records.observe(failures_of(input_), f.count_if(failed))
    if observed is not None:
        counts = [f.count_if(rows).alias("rows"), f.count_if(failed).alias("bad")]
        if keeps_errors:
            counts.append(f.min(f.when(failed, f.struct("partition", "offset", "error"))).alias("first_bad"))
        records = records.observe(observed, *counts)
    records = records.where(rows | failed if keeps_errors else rows)
    if merges:
        frame, keys, unavailable = changes(records, job, input_)
        return Topic(frame, bad, observed, keys, unavailable)
    of_struct = isinstance(records.schema["value"].dataType, StructType)
    columns: list[Column | str] = ["value.*" if of_struct else "value"]
    if job.metadata_columns:
        names = [*_METADATA, *(("error", "bytes") if keeps_errors else ())]
        columns += [f.col(name).alias(f"__{name}") for name in names]
    return Topic(records.select(*columns), bad, observed)


def _newest(records: DataFrame, failed: Column) -> DataFrame:
    """The records without a key, and of each key the one with the highest offset, as compaction keeps it. Those that failed stay."""
    from pyspark.sql import functions as f

    versions = records.where(f.col("key").isNotNull() & ~failed)
    newest = (
        versions.groupBy("key").agg(f.max_by(f.struct(*records.columns), "offset").alias("newest")).select("newest.*")
    )
    return newest.unionAll(records.where(f.col("key").isNull() | failed))


def _records(spark: SparkSession, job: Job, input_: Input) -> DataFrame:
    """Columns of the data source; values are decoded, but for JSON whose columns are DDL, which are bytes."""
    options = {f"kafka.{name}": value for name, value in job.kafka.items()} | {
        "value.format": "binary" if input_.value_is_ddl else input_.value_format,
        "value.errors": "null" if job.tolerates_errors else "fail",
        "includeHeaders": str(job.tolerates_errors).lower(),
    }
    if not input_.value_is_ddl:
        options |= {"value.schema": input_.value_schema or "", "value.message": input_.value_message or ""}
    if job.merges and not input_.lookup:
        options["key.format"] = "binary" if input_.key_is_ddl else input_.key_format
        if not input_.key_is_ddl:
            options |= {"key.schema": input_.key_schema or "", "key.message": input_.key_message or ""}
    if not (job.tolerates_errors or job.merges or input_.lookup or input_.value_is_ddl):
        # Spark takes all columns of a Python source, whatever the job needs.
        options["columns"] = ",".join(["value", *(_METADATA if job.metadata_columns else ())])
    if job.stream is None:
        options |= _bounds(spark, input_)
    elif input_.lookup:
        # Spark plans a DataFrame of a Python source once, and not for each micro-batch.
        options |= {"subscribe": input_.topic, "freshOffsets": "true"}
    else:
        options |= _stream_options(job.stream, input_)
        return spark.readStream.format("tidegate").options(**job.registry, **options).load()
    return spark.read.format("tidegate").options(**job.registry, **options).load()


def _bounds(spark: SparkSession, input_: Input) -> dict[str, str]:
    cores = spark.sparkContext.defaultParallelism
    offsets = sum(stop - input_.starts[partition] for partition, stop in input_.stops.items())
    return {
        "assign": json.dumps({input_.topic: [int(partition) for partition in input_.starts]}),
        "startingOffsets": json.dumps({input_.topic: input_.starts}),
        "endingOffsets": json.dumps({input_.topic: input_.stops}),
        "minPartitions": str(cores if offsets >= _DIVIDED_ROWS else 0),
    }


def _stream_options(stream: Stream, input_: Input) -> dict[str, str]:
    options = {
        "subscribe": input_.topic,
        "startingOffsets": json.dumps({input_.topic: input_.starts}) if input_.starts else stream.starting,
        "failOnDataLoss": str(not stream.loses_data).lower(),
    }
    if input_.until:
        options["untilOffsets"] = json.dumps(input_.until)
    if stream.max_offsets:
        options |= {"maxOffsetsPerTrigger": str(stream.max_offsets), "plannedOffsets": json.dumps(input_.planned)}
    return options


def _parsed(records: DataFrame, ddl: str, *, tolerates: bool) -> DataFrame:
    """The values as columns of Spark's DDL; JSON's null is a tombstone.

    A value that is not such JSON becomes a null with ``error`` and ``bytes``, or fails the job by naming its record.
    """
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructType

    schema = StructType.fromDDL(ddl)
    names = list(schema.names)  # of the columns without the one that is added
    with_corrupt = schema.add(_CORRUPT, StringType())
    text = f.col("value").cast("string")
    value = f.from_json(text, with_corrupt, {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT})
    records = records.withColumn("parsed", value)
    bad = f.col(f"parsed.{_CORRUPT}").isNotNull() | (f.col("parsed").isNull() & (f.trim(text) != "null"))
    bad = f.coalesce(bad, f.lit(False))  # of a tombstone it is null
    not_json = f.lit(
        f"the value is not JSON with the columns {textwrap.shorten(ddl, _MOST_COLUMNS, placeholder=' ...')}"
    )
    if tolerates:
        records = records.withColumn("error", f.when(bad, not_json))
        records = records.withColumn("bytes", f.when(bad, f.col("value")))
    else:
        where = [
            f.lit("topic "),
            f.col("topic"),
            f.lit(" partition "),
            f.col("partition"),
            f.lit(" offset "),
            f.col("offset"),
        ]
        reason = f.raise_error(f.concat(*where, f.lit(": "), not_json))
        records = records.where(f.when(bad, reason).otherwise(f.lit(True)))
    columns = f.struct(*[f.col("parsed").getField(name).alias(name) for name in names])
    return records.withColumn("value", f.when(~bad & f.col("parsed").isNotNull(), columns))
