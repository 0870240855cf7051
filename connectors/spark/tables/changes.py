"""Records as changes of rows: from Debezium's envelopes, or plain rows with tombstones, to the newest of each key or its history."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import BinaryType, DataType, StringType, StructType, TimestampType

from connectors.spark.job import Input, Job
from connectors.spark.tables.sql import literal, quoted
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["DELETED", "POSITION", "changes", "checked", "data_columns", "history", "newest", "text_columns"]

POSITION: Final = ("__topic", "__partition", "__offset", "__timestamp")
DELETED: Final = "__deleted"
_ENVELOPE: Final = {"before", "after", "op"}
_UNAVAILABLE: Final = "__debezium_unavailable_value"
"""Debezium's default of ``unavailable.value.placeholder``."""
_AT: Final = "__at"
_NOTHING: Final = "__tombstone"


def changes(records: DataFrame, job: Job, input_: Input) -> tuple[DataFrame, list[str], str]:
    """The columns of the rows after each change (before it, where it is a deletion), ``POSITION`` and ``DELETED``; which columns tell
    rows apart; and the text that stands for one that the source left out. Raises UsageError where nothing says which they are.
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
    for name in in_key if job.has_one_result else keys:
        given = key.getField(name) if name in in_key else key if not in_key and len(keys) == 1 else None
        if given is not None and name in columns and _is_unsaid(input_, fields[name].dataType):
            continue
        if given is not None:
            columns[name] = f.coalesce(columns[name], given.cast(fields[name].dataType)) if name in columns else given
    missing = [name for name in keys if name not in columns]
    if missing and not job.has_one_result:
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
    return changed.drop(_NOTHING), keys, job.merge.unavailable or (_UNAVAILABLE if wrapped else "")


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


def _is_unsaid(input_: Input, type_: DataType) -> bool:
    """Whether keys are bytes, of which nobody has said how they become a column of this type. Text is taken as it is."""
    return input_.key_format == "binary" and not isinstance(type_, BinaryType | StringType)


def data_columns(frame: DataFrame) -> list[str]:
    return [name for name in frame.columns if name not in (*POSITION, DELETED)]


def _order(frame: DataFrame) -> list[str]:
    """The columns that order changes of one key, if the frame has them all."""
    return list(POSITION) if set(frame.columns) >= set(POSITION) else []


def newest(frame: DataFrame, keys: Sequence[str], unavailable: str = "") -> DataFrame:
    """Of each key the newest change: in a partition the one with the highest offset, of several partitions the one whose
    partition has the newest timestamp. Without positions a key that is there twice ends the job.

    A text that is ``unavailable`` is the newest one of the key's changes that is not, if there is one: a source puts that text where
    its database's log leaves out a large value that did not change.
    """
    from pyspark.sql import functions as f

    names, key = [quoted(name) for name in frame.columns], [f.col(quoted(name)) for name in keys]
    row = f.struct(*names)
    if not _order(frame):
        counted = frame.groupBy(*key).agg(f.count("*").alias("n"), f.first(row).alias("row"))
        words = f.concat(
            f.lit(f"the result of spark.sql has the key ({', '.join(keys)}) = "),
            f.to_json(f.struct(*key)),
            f.lit(f" more than once: keep the columns {', '.join(POSITION)}, or make keys unique"),
        )
        once = f.when(f.col("n") > 1, f.raise_error(words).isNull()).otherwise(f.lit(True))
        return counted.where(once).select("row.*")
    texts = text_columns(frame, keys) if unavailable else []
    known = [
        f.expr(
            f"max_by(struct({quoted(name)}), __offset) FILTER (WHERE NOT {quoted(name)} <=> {literal(unavailable)})"
        ).alias(f"known{number}")
        for number, name in enumerate(texts)
    ]
    # All changes of a key come to one task at once. Else Spark sorts them before and after each of two shuffles.
    of_partition = (
        frame.repartition(*key)
        .groupBy(*key, "__topic", "__partition")
        .agg(f.max_by(row, "__offset").alias("row"), f.max("__timestamp").alias(_AT), *known)
    )
    last = f.struct("row", *(f"known{number}" for number in range(len(texts))))
    order = f.struct(_AT, "__topic", "__partition")
    found = of_partition.groupBy(*key).agg(f.max_by(last, order).alias("last")).select("last.*")
    rows = found.select("row.*", *(f"known{number}" for number in range(len(texts))))
    for number, name in enumerate(texts):
        column, other = f.col(quoted(name)), f.col(f"known{number}")
        lacks = (column == unavailable) & other.isNotNull()
        rows = rows.withColumn(name, f.when(lacks, other.getField(name)).otherwise(column)).drop(f"known{number}")
    return rows


def text_columns(frame: DataFrame, keys: Sequence[str]) -> list[str]:
    """The columns of text that are no keys."""
    left = (*keys, *POSITION, DELETED)
    return [field.name for field in frame.schema if isinstance(field.dataType, StringType) and field.name not in left]


def history(frame: DataFrame, keys: Sequence[str], unavailable: str = "") -> DataFrame:
    """Each change as a version of its row: ``valid_from``, ``valid_to`` and ``is_current``, with ``__first`` true for the first
    change of each key here: its ``valid_from`` ends the version that the table has. Deletions end a version and are none.

    A text that is ``unavailable`` is that of the version before; one whose version before is not here ends the job.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    if not _order(frame):
        raise UsageError(
            f"spark.merge.history needs the time of each change: keep the columns {', '.join(POSITION)} in spark.sql"
        )
    key = [f.col(quoted(name)) for name in keys]
    in_partition = Window.partitionBy(*key, "__topic", "__partition").orderBy("__offset")
    of_key = Window.partitionBy(*key).orderBy(_AT, "__topic", "__partition", "__offset")
    timed = frame.withColumn(_AT, f.max("__timestamp").over(in_partition).cast(TimestampType()))
    for name in text_columns(frame, keys) if unavailable else []:
        column = f.col(quoted(name))
        before = f.last(f.when(~column.eqNullSafe(unavailable), f.struct(column)), True).over(of_key)
        words = f"the column {name} was not changed, and its source left it out: have the source send whole rows (REPLICA IDENTITY FULL)"
        told = _told(f.col("__topic"), f.col("__partition"), f.col("__offset"), words)
        filled = f.when(before.isNotNull(), before.getField(name)).otherwise(f.raise_error(told).cast("string"))
        timed = timed.withColumn(name, f.when(column == unavailable, filled).otherwise(column))
    return (
        timed.withColumn("valid_from", f.col(_AT))
        .withColumn("valid_to", f.lead(_AT).over(of_key))
        .withColumn("is_current", f.col("valid_to").isNull())
        .withColumn("__first", f.row_number().over(of_key) == 1)
        .drop(_AT)
    )
