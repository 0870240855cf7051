"""A load in the driver: rows of what Spark reads, through a query, as records of a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from connectors.spark.inputs import delta, files, iceberg, queries
from connectors.spark.inputs.planned import DELETED, Planned
from connectors.spark.load import Load
from connectors.spark.query_views import queried
from connectors.spark.tables.sql import quoted
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["run"]

_VIEW: Final = "input"


def run(spark: SparkSession, load: Load) -> dict[str, Any]:
    """Write what is new. ``position`` is the one after it, None where there is nothing new; ``transactions`` are those that have the
    records and are to be committed."""
    planned = _planned(spark, load)
    if load.preview_rows:
        return {"records": None, "preview": _previewed(spark, load, planned)}
    if planned is None:
        return {"records": None, "rows": 0, "position": None, "transactions": [], "more": False, "note": ""}
    from pyspark_tidegate.loading import load as loaded

    options = load.write_options | load.registry | {f"kafka.{name}": value for name, value in load.kafka.items()}
    records = _records(load, _result(spark, load, planned.frame))
    written = loaded(records.coalesce(load.tasks), options | {"topic": load.topic}, load.connector)
    return {
        "records": None,
        "rows": written.records,
        "position": dict(planned.position),
        "transactions": [list(transaction) for transaction in written.transactions],
        "more": planned.more,
        "note": planned.note,
    }


def _planned(spark: SparkSession, load: Load) -> Planned | None:
    position = load.position
    if load.mode == "incremental" and not load.watermark:
        if load.format == "iceberg":
            return iceberg.after_snapshot(spark, load, position)
        if load.format == "delta":
            return delta.after_version(spark, load, position)
        return files.new_files(spark, load, position)
    frame = _whole(spark, load)
    if load.mode == "incremental":
        return queries.after_watermark(load, frame, position)
    return (queries.at_once if load.mode == "once" else queries.each_time)(frame, position)


def _whole(spark: SparkSession, load: Load) -> DataFrame:
    if load.format == "iceberg":
        return iceberg.whole(spark, load)
    if load.format == "delta":
        return delta.whole(spark, load)
    if load.format == "jdbc":
        return spark.read.format("jdbc").options(**load.options).option("dbtable", load.table).load()
    if load.format == "table":
        return spark.read.options(**load.options).table(quoted(*load.table.split(".")))
    return files.whole(spark, load)


def _result(spark: SparkSession, load: Load, frame: DataFrame) -> DataFrame:
    if not load.sql:
        return frame
    result = queried(spark, load.sql, {_VIEW: frame})
    if DELETED in frame.columns and DELETED not in result.columns:
        raise UsageError(
            f"spark.sql drops the column {DELETED}, which says which rows are deleted (spark.input.changes=send): keep it in the result"
        )
    return result


def _records(load: Load, rows: DataFrame) -> DataFrame:
    """The columns ``key`` and ``value`` of records. A row that is gone is a tombstone."""
    from pyspark.sql import functions as f

    columns = [name for name in rows.columns if name != DELETED]
    missing = [name for name in load.key_columns if name not in columns]
    if missing:
        raise UsageError(f"spark.output.key.columns names {missing[0]}, and the result has {', '.join(columns)}")
    value = _struct(columns)
    if DELETED in rows.columns:
        value = f.when(~f.col(DELETED), value)
    if not load.key_columns:
        return rows.select(value.alias("value"))
    plain = load.write_options["key.format"] in ("string", "binary")
    key = f.col(quoted(load.key_columns[0])) if plain else _struct(load.key_columns)
    return rows.select(key.alias("key"), value.alias("value"))


def _struct(columns: Sequence[str]) -> Any:
    from pyspark.sql import functions as f

    return f.struct(*(f.col(quoted(name)) for name in columns))


def _previewed(spark: SparkSession, load: Load, planned: Planned | None) -> list[str]:
    if planned is None:
        return ["there is nothing to load"]
    result = _result(spark, load, planned.frame)
    _records(load, result)  # raises for what can't become records
    schema = [f"{name} {type_.upper()}" for name, type_ in result.dtypes]
    rows = result.toJSON().take(load.preview_rows)
    parts = {"columns": schema, "rows": rows}
    told = [f"{part}:\n" + "\n".join(f"  {line}" for line in lines) for part, lines in parts.items()]
    return ["\n".join([f"first load: {planned.note}", *told])]
