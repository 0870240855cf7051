"""Rows and changes into a table: creates and changes it where needed, and commits each run once."""

from __future__ import annotations

import dataclasses
import datetime as dt
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from pyspark.sql.types import BooleanType, StructField, StructType, TimestampType

from connectors.spark.job import TABLES, Input, Job
from connectors.spark.load import Load
from connectors.spark.tables import delta, iceberg
from connectors.spark.tables.changes import DELETED, POSITION, checked, data_columns, history, newest, text_columns
from connectors.spark.tables.commits import Committed
from connectors.spark.tables.delta import DeltaTable
from connectors.spark.tables.evolution import Added, Change, as_table_type, changes_of, nullable
from connectors.spark.tables.iceberg import IcebergTable
from connectors.spark.tables.sql import columns_ddl, ddl, literal, partitioned_ddl, quoted
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Rows", "Table", "planned_changes", "preview", "session_settings", "table_of", "write"]


_VERSIONS: Final = StructType(
    [
        StructField("valid_from", TimestampType()),
        StructField("valid_to", TimestampType()),
        StructField("is_current", BooleanType()),
    ]
)
"""The columns of a table that keeps the history of its rows (slowly changing dimension, type 2)."""
_VIEW: Final = "tidegate_changes"
_DENSITY: Final = 4
"""How many bytes of a shuffle become a byte of Parquet, about."""


@dataclass(frozen=True)
class Rows:
    """The rows for a table. ``keys`` are the columns that tell rows apart, where the job merges, and ``unavailable`` is the text in
    place of one that the source left out."""

    frames: Sequence[DataFrame]
    keys: Sequence[str] = ()
    unavailable: str = ""


class Table(Protocol):
    """A table of one format. ``name`` is its name in SQL; ``commit`` makes what ``write`` does one commit."""

    format: str
    name: str

    def exists(self) -> bool: ...
    def create(self, columns: str, partitioned: str) -> None: ...
    def before_changes(self, *, widens: bool, types: str) -> None: ...
    def committed(self) -> Committed: ...
    def commit(self, after: Committed, write: Callable[[str], None], *, appends: bool) -> bool: ...
    def maintain(self) -> str: ...


def session_settings(job: Job | Load) -> dict[str, str]:
    """The settings that a session needs for the job's format, beside those of the configuration."""
    if job.format not in TABLES or (isinstance(job, Job) and not job.into_table):
        return {}
    needed = iceberg.EXTENSION if job.format == "iceberg" else delta.EXTENSION
    given = [name for name in job.conf.get("spark.sql.extensions", "").split(",") if name]
    more = iceberg.settings(job.table, job.path) if job.format == "iceberg" else delta.settings()
    return {"spark.sql.extensions": ",".join(dict.fromkeys([*given, needed]))} | more


def table_of(spark: SparkSession, job: Job, target: str) -> Table:
    """The table with this name, or at this path."""
    named = bool(job.table)
    kind = IcebergTable if job.format == "iceberg" else DeltaTable
    return kind(spark, job, table=target if named else "", path="" if named else target)


def write(
    spark: SparkSession, job: Job, table: Table, rows: Rows, *, inputs: Sequence[Input], before: Committed
) -> str:
    """Commit the rows as the run of the job, after ``before``. Returns words on what else was done.

    Raises SchemaConflict where the table can't take the rows; nothing is written then.
    """
    frame = _united(rows.frames)
    after = before.after(job.run_id, inputs)
    due = _maintenance_is_due(job, before)
    if due or not before.maintained:
        after = dataclasses.replace(after, maintained=job.maintenance.now)
    if not table.exists():
        table.create(columns_ddl(_table_columns(job, frame)), partitioned_ddl(job.partition_by))
    _evolve(spark, table, planned_changes(spark, job, table, frame))
    if job.merges:
        _merge(spark, job, table, after, rows, frame)
    else:
        _insert(job, table, after, frame, spark.table(table.name).schema)
    return _maintained(table) if due else ""


def preview(job: Job, table: Table, rows: Rows) -> tuple[DataFrame, list[str]]:
    """The rows that a run would write (of a merge, the changes), and what it would do with the table before. Nothing is done."""
    frame = _united(rows.frames)
    if table.exists():
        changes = planned_changes(frame.sparkSession, job, table, frame)
        return _changed(job, rows, frame), [f"ALTER TABLE {table.name} {change.action}" for change in changes]
    columns = columns_ddl(_table_columns(job, frame))
    return _changed(job, rows, frame), [
        f"CREATE TABLE {table.name} ({columns}) {partitioned_ddl(job.partition_by)}".rstrip()
    ]


def _changed(job: Job, rows: Rows, frame: DataFrame) -> DataFrame:
    """The rows, or what a merge makes of the changes."""
    if not job.merges:
        return frame
    frame = checked(_with_marks(frame, rows.keys), rows.keys)
    return (history if job.merge.history == "scd2" else newest)(frame, rows.keys, rows.unavailable)


def _united(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows in one frame. Raises UsageError for a column that no table can have."""
    from pyspark.sql.types import NullType

    frame = frames[0]
    for more in frames[1:]:
        frame = frame.unionByName(more, allowMissingColumns=True)
    void = [field.name for field in frame.schema if isinstance(field.dataType, NullType)]
    if void:
        raise UsageError(f"the column {void[0]} has no type: cast it in spark.sql (CAST(NULL AS STRING) AS {void[0]})")
    return frame


def planned_changes(spark: SparkSession, job: Job, table: Table, frame: DataFrame) -> list[Change]:
    """The changes that the table needs before it takes the rows. Raises SchemaConflict."""
    return changes_of(spark.table(table.name).schema, _table_columns(job, frame), allowed=job.evolution)


def _table_columns(job: Job, frame: DataFrame) -> StructType:
    """The columns that the rows bring to the table."""
    left = (DELETED,) if job.metadata_columns else (DELETED, *POSITION)
    columns = [field for field in frame.schema if field.name not in left or not job.merges]
    wanted = nullable(StructType(columns))
    assert isinstance(wanted, StructType)
    return StructType([*wanted, *_VERSIONS]) if job.merges and job.merge.history == "scd2" else wanted


def _evolve(spark: SparkSession, table: Table, changes: Sequence[Change]) -> None:
    if not changes:
        return
    widens = any(not isinstance(change, Added) for change in changes)
    table.before_changes(widens=widens, types=" ".join(ddl(change.type) for change in changes))
    for change in changes:
        spark.sql(f"ALTER TABLE {table.name} {change.action}")


def _with_marks(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """A query's result may lack the mark of deletions: all its rows are there, then. It may not lack the keys."""
    from pyspark.sql import functions as f

    missing = [name for name in keys if name not in frame.columns]
    if missing:
        raise UsageError(
            f"the merge key {missing[0]} is no column of the result, which has {', '.join(data_columns(frame))}: keep it in spark.sql"
        )
    return frame if DELETED in frame.columns else frame.withColumn(DELETED, f.lit(False))


def _insert(job: Job, table: Table, after: Committed, frame: DataFrame, there: StructType) -> None:
    rows = _arranged(job, _as_rows(frame, there))
    if job.mode == "append":
        table.commit(after, lambda name: rows.writeTo(name).append(), appends=True)
        return
    rows = rows.persist()
    try:
        if rows.count():  # a job without rows replaces nothing
            table.commit(after, lambda name: rows.writeTo(name).overwritePartitions(), appends=False)
    finally:
        rows.unpersist()


def _as_rows(frame: DataFrame, there: StructType) -> DataFrame:
    """The rows with all columns of the table."""
    return frame.select(*_as_columns(frame, list(there)))


def _as_columns(frame: DataFrame, columns: Sequence[StructField]) -> list[Column]:
    """The columns of the table as the frame has them, null where it lacks one."""
    from pyspark.sql import functions as f

    given = {field.name.casefold(): field for field in frame.schema}
    made = []
    for column in columns:
        if (field := given.get(column.name.casefold())) is None:
            value = f.lit(None).cast(column.dataType)
        else:
            value = as_table_type(f.col(quoted(field.name)), field.dataType, column.dataType)
        made.append(value.alias(column.name))
    return made


def _arranged(job: Job, rows: DataFrame) -> DataFrame:
    if job.file_bytes:
        settings = {
            "advisoryPartitionSizeInBytes": str(job.file_bytes * _DENSITY),
            "coalescePartitions.parallelismFirst": "false",
            "coalescePartitions.initialPartitionNum": "200",
        }
        for name, value in settings.items():
            rows.sparkSession.conf.set(f"spark.sql.adaptive.{name}", value)
        return rows.hint("rebalance")
    return rows.repartition(job.files) if job.files else rows


def _merge(spark: SparkSession, job: Job, table: Table, after: Committed, rows: Rows, frame: DataFrame) -> None:
    source = _changed(job, rows, frame)
    given = {name.casefold() for name in _table_columns(job, frame).names}
    columns = [column for column in spark.table(table.name).schema if column.name.casefold() in given]
    names = [column.name for column in columns]
    scd2 = job.merge.history == "scd2"
    source = source.select(*_as_columns(source, columns), *([DELETED, "__first"] if scd2 else [DELETED])).persist()
    try:
        source.count()  # the changes are read once, and what is wrong with them is told before the table is touched
        same = " AND ".join(f"t.{quoted(key)} = s.{quoted(key)}" for key in rows.keys)
        if scd2:
            _ended(source).createOrReplaceTempView(_VIEW)
            statement = _versions_sql(same, names)
        else:
            source.createOrReplaceTempView(_VIEW)
            texts = text_columns(source, rows.keys) if rows.unavailable else []
            statement = _rows_sql(same, names, dict.fromkeys(texts, literal(rows.unavailable)))
        table.commit(
            after, lambda name: spark.sql(f"MERGE INTO {name} t USING {_VIEW} s ON {statement}"), appends=False
        )
    finally:
        spark.catalog.dropTempView(_VIEW)
        source.unpersist()


def _rows_sql(same: str, columns: Sequence[str], unavailable: Mapping[str, str]) -> str:
    """A column that the rows lack stays as it is in rows that are there, and is null in new ones; a text that is unavailable too."""

    def value(name: str, otherwise: str) -> str:
        given = f"s.{quoted(name)}"
        return (
            given
            if name not in unavailable
            else f"CASE {given} WHEN {unavailable[name]} THEN {otherwise} ELSE {given} END"
        )

    sets = ", ".join(f"t.{quoted(name)} = {value(name, f't.{quoted(name)}')}" for name in columns)
    names, values = ", ".join(map(quoted, columns)), ", ".join(value(name, "NULL") for name in columns)
    return (
        f"{same} WHEN MATCHED AND s.{DELETED} THEN DELETE WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED AND NOT s.{DELETED} THEN INSERT ({names}) VALUES ({values})"
    )


def _ended(versions: DataFrame) -> DataFrame:
    """The first change of a key ends the version that the table has; each change that is no deletion is a new one."""
    from pyspark.sql import functions as f

    ending = versions.where("__first").withColumn("__ends", f.lit(True))
    return ending.unionByName(versions.where(~f.col(DELETED)).withColumn("__ends", f.lit(False)))


def _versions_sql(same: str, columns: Sequence[str]) -> str:
    names, values = ", ".join(map(quoted, columns)), ", ".join(f"s.{quoted(name)}" for name in columns)
    return (
        f"s.__ends AND t.is_current AND {same} "
        "WHEN MATCHED THEN UPDATE SET t.valid_to = greatest(t.valid_from, s.valid_from), t.is_current = false "
        f"WHEN NOT MATCHED AND NOT s.__ends THEN INSERT ({names}) VALUES ({values})"
    )


def _maintenance_is_due(job: Job, before: Committed) -> bool:
    """Whether the schedule has had a time since the last maintenance, or since the table's first commit."""
    if not job.maintenance.schedule or not before.maintained:
        return False
    from apscheduler.triggers.cron import CronTrigger

    trigger = CronTrigger.from_crontab(job.maintenance.schedule, timezone="UTC")
    last = dt.datetime.fromtimestamp(before.maintained, dt.UTC) + dt.timedelta(milliseconds=1)
    due = trigger.get_next_fire_time(None, last)
    return due is not None and due.timestamp() <= job.maintenance.now


def _maintained(table: Table) -> str:
    """The rows are committed: maintenance that fails is told of, and tried again at its next time."""
    try:
        return f"maintained: {table.maintain()}"
    except Exception as error:  # noqa: BLE001 - whatever it is, the job is done
        print(error, file=sys.stderr)
        return f"maintenance failed: {str(error).splitlines()[0][:300]}"
