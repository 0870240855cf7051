"""Rates of changes: of each wiki and minute, by bots and by people, and how many look like vandalism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LATE = "10 minutes"


def vandalism() -> Column:
    """Whether an edit looks like it: somebody without a name removes half of an article, and does not say why."""
    from pyspark.sql import functions as f

    anonymous = f.col("user").rlike(r"^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$")
    removed = f.col("length.new") < f.col("length.old") / 2
    return (f.col("type") == "edit") & (f.col("namespace") == 0) & anonymous & removed & (f.col("comment") == "")


def rates(views: Mapping[str, DataFrame]) -> DataFrame:
    from pyspark.sql import functions as f

    changes = views["changes"].withColumn("at", f.timestamp_seconds("timestamp")).withWatermark("at", LATE)
    minutes = changes.groupBy("wiki", f.window("at", "1 minute").alias("window"))
    counts = minutes.agg(
        f.count_if("bot").alias("bots"),
        f.count_if(~f.col("bot")).alias("people"),
        f.count_if(vandalism()).alias("suspects"),
    )
    return counts.select("wiki", f.col("window.start").alias("minute"), "bots", "people", "suspects")
