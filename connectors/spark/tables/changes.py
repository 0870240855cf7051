"""Records as changes of rows: from Debezium's envelopes, or plain rows with tombstones, to the newest of each key or its history."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import DataType, StructType, TimestampType

from connectors.spark.job import Input, Job
from connectors.spark.tables.sql import quoted
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["DELETED", "POSITION", "changes", "checked", "data_columns", "history", "newest"]

POSITION: Final = ("__topic", "__partition", "__offset", "__timestamp")
DELETED: Final = "__deleted"
_ENVELOPE: Final = {"before", "after", "op"}
_AT: Final = "__at"
_NOTHING: Final = "__tombstone"


def changes(records: DataFrame, job: Job, input_: Input) -> tuple[DataFrame, list[str]]:
    """The columns of the rows after each change (before it, where it is a deletion), ``POSITION`` and ``DELETED``; and which columns
    tell rows apart. Raises UsageError where nothing says which they are.
    """
    from pyspark.sql import functions as f

    value = records.schema["value"].dataType
    if not isinstance(value, StructType):
        raise UsageError(
            f"the values of {input_.topic} are {value.simpleString()}, which has no columns: a merge needs records"
        )
    wrapped = _is_envelope(value, job)
    tombstone, deleted, row, fields = f.col("value").isNull(), f.col("value").isNull(), f.col("value"), value
    if wrapped:
        fields = value["after"].dataType
        assert isinstance(fields, StructType)
        deleted = tombstone | (f.col("value.op") == "d")
        row = f.when(deleted, f.coalesce(f.col("value.before"), f.col("value.after"))).otherwise(f.col("value.after"))
        records = _of_rows(records)
    key, key_type = _key(records, input_)
    in_key = list(key_type.names) if isinstance(key_type, StructType) else []
    keys = job.merge.keys or in_key
    if not keys:
        raise UsageError(
            f"the keys of {input_.topic} are {key_type.simpleString()} and have no fields that could be columns: set spark.merge.keys"
        )
    columns = {field.name: row.getField(field.name) for field in fields}
    # The keys of a query's result are none of its topics', but what records have in their keys alone it may need.
    for name in in_key if job.sql else keys:
        given = key.getField(name) if name in in_key else key if not in_key and len(keys) == 1 else None
        if given is not None:
            columns[name] = f.coalesce(columns[name], given.cast(fields[name].dataType)) if name in columns else given
    missing = [name for name in keys if name not in columns]
    if missing and not job.sql:
        raise UsageError(
            f"the merge key {missing[0]} is neither a column of {input_.topic} ({', '.join(columns)}) nor a field of its records' keys: "
            "set spark.merge.keys to columns, or spark.key.format to the format of the keys"
        )
    rows = [column.alias(name) for name, column in columns.items()]
    position = [f.col(name.removeprefix("__")).alias(name) for name in POSITION]
    changed = records.select(
        *rows, *position, f.coalesce(deleted, f.lit(False)).alias(DELETED), tombstone.alias(_NOTHING)
    )
    if wrapped and not missing:  # a tombstone after a deletion, whose key nothing tells, adds nothing
        changed = changed.where(~(f.col(_NOTHING) & _any_null(keys)))
    return changed.drop(_NOTHING), keys


def _of_rows(records: DataFrame) -> DataFrame:
    """The records of an envelope that are changes of rows: not the messages beside them. A truncation ends the job."""
    from pyspark.sql import functions as f

    operation = f.col("value.op")
    words = (
        "the operation is a truncation, which a merge doesn't make: empty the table, and let the source leave truncations out "
        "(skipped.operations=t)"
    )
    told = _told(f.col("topic"), f.col("partition"), f.col("offset"), words)
    good = f.when(operation == "t", f.raise_error(told).isNull()).otherwise(f.lit(True))
    return records.where(f.coalesce(operation != "m", f.lit(True)) & good)


def _told(topic: Column, partition: Column, offset: Column, words: str) -> Column:
    from pyspark.sql import functions as f

    return f.concat(
        f.lit("topic "), topic, f.lit(" partition "), partition, f.lit(" offset "), offset, f.lit(f": {words}")
    )


def _any_null(names: Sequence[str]) -> Column:
    from pyspark.sql import functions as f

    return functools.reduce(operator.or_, (f.col(quoted(name)).isNull() for name in names))


def checked(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The changes; one whose key is null ends the job, and is named where the frame has the positions."""
    from pyspark.sql import functions as f

    words = (
        f"the merge key ({', '.join(keys)}) is null, so nothing says which row it is: leave such rows out in spark.sql, or set "
        "spark.key.format if the key of the record has it"
    )
    known = _order(frame)
    told = _told(f.col("__topic"), f.col("__partition"), f.col("__offset"), words) if known else f.lit(words)
    return frame.where(f.when(_any_null(keys), f.raise_error(told).isNull()).otherwise(f.lit(True)))


def _is_envelope(value: StructType, job: Job) -> bool:
    if job.merge.envelope != "auto":
        return job.merge.envelope == "debezium"
    return set(value.names) >= _ENVELOPE and isinstance(value["after"].dataType, StructType)


def _key(records: DataFrame, input_: Input) -> tuple[Column, DataType]:
    """The record's key; one of JSON with columns in DDL is parsed here."""
    from pyspark.sql import functions as f

    if not input_.key_is_ddl:
        return f.col("key"), records.schema["key"].dataType
    type_ = StructType.fromDDL(input_.key_schema or "")
    return f.from_json(f.col("key").cast("string"), type_), type_


def data_columns(frame: DataFrame) -> list[str]:
    return [name for name in frame.columns if name not in (*POSITION, DELETED)]


def _order(frame: DataFrame) -> list[str]:
    """The columns that order changes of one key, if the frame has them all."""
    return list(POSITION) if set(frame.columns) >= set(POSITION) else []


def newest(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Of each key the newest change: in a partition the one with the highest offset, of several partitions the one whose
    partition has the newest timestamp. Without positions a key that is there twice ends the job."""
    from pyspark.sql import functions as f

    if not _order(frame):
        counted = frame.groupBy(*keys).agg(f.count("*").alias("n"), f.first(f.struct(*frame.columns)).alias("row"))
        words = f.concat(
            f.lit(f"the result of spark.sql has the key ({', '.join(keys)}) = "),
            f.to_json(f.struct(*keys)),
            f.lit(f" more than once: keep the columns {', '.join(POSITION)}, or make keys unique"),
        )
        once = f.when(f.col("n") > 1, f.raise_error(words).isNull()).otherwise(f.lit(True))
        return counted.where(once).select("row.*")
    row = f.struct(*frame.columns)
    of_partition = frame.groupBy(*keys, "__topic", "__partition").agg(
        f.max_by(row, "__offset").alias("row"), f.max("__timestamp").alias(_AT)
    )
    order = f.struct(_AT, "__topic", "__partition")
    return of_partition.groupBy(*keys).agg(f.max_by("row", order).alias("row")).select("row.*")


def history(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Each change as a version of its row: ``valid_from``, ``valid_to`` and ``is_current``, with ``__first`` true for the first
    change of each key here: its ``valid_from`` ends the version that the table has. Deletions end a version and are none."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    if not _order(frame):
        raise UsageError(
            f"spark.merge.history needs the time of each change: keep the columns {', '.join(POSITION)} in spark.sql"
        )
    in_partition = Window.partitionBy(*keys, "__topic", "__partition").orderBy("__offset")
    of_key = Window.partitionBy(*keys).orderBy(_AT, "__topic", "__partition", "__offset")
    timed = frame.withColumn(_AT, f.max("__timestamp").over(in_partition).cast(TimestampType()))
    return (
        timed.withColumn("valid_from", f.col(_AT))
        .withColumn("valid_to", f.lead(_AT).over(of_key))
        .withColumn("is_current", f.col("valid_to").isNull())
        .withColumn("__first", f.row_number().over(of_key) == 1)
        .drop(_AT)
    )
