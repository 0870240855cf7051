"""Everything that Spark reads, whole or by a column that grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from connectors.spark.inputs.planned import Planned
from connectors.spark.load import Load
from connectors.spark.tables.sql import quoted
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["after_watermark", "at_once", "each_time"]


def at_once(frame: DataFrame, position: Mapping[str, Any] | None) -> Planned | None:
    """All rows, once."""
    return None if position else Planned(frame, {"loaded": True}, "all rows")


def each_time(frame: DataFrame, position: Mapping[str, Any] | None) -> Planned:
    """All rows, whatever was loaded before."""
    loads = int(position["loads"]) if position else 0
    return Planned(frame, {"loads": loads + 1}, "all rows")


def after_watermark(load: Load, frame: DataFrame, position: Mapping[str, Any] | None) -> Planned | None:
    """The rows whose column is above the highest value that was loaded; a null never is."""
    from pyspark.sql import functions as f

    name = load.watermark
    if name not in frame.columns:
        raise UsageError(f"spark.input.watermark.column is {name}, and the columns are {', '.join(frame.columns)}")
    column, type_ = f.col(quoted(name)), frame.schema[name].dataType
    if position:
        if position["column"] != name:
            raise UsageError(
                f"spark.input.watermark.column is {name}, and the loads so far went by {position['column']}: reset the offsets of "
                "the connector, or give it another name"
            )
        frame = frame.where(column > f.lit(position["value"]).cast(type_))
    highest = frame.agg(f.max(column).cast("string")).collect()[0][0]
    if highest is None:
        return None
    rows = frame.where(column <= f.lit(highest).cast(type_))
    return Planned(rows, {"column": name, "value": highest}, f"rows up to {name} {highest}")
