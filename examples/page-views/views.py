"""The one calculation of both layers: views and visitors of each site and hour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LATE = "1 day"
"""The speed layer closes an hour when it has read a view that is so much newer. A batch has no late views: it ignores this."""


def by_hour(views: Mapping[str, DataFrame]) -> DataFrame:
    """Views and different visitors of each site and hour, of a topic that grows or of the files of the lake."""
    from pyspark.sql import functions as f

    hours = views["views"].withWatermark("at", LATE).groupBy("site", f.window("at", "1 hour").alias("window"))
    counts = hours.agg(f.count("*").alias("views"), f.size(f.collect_set("visitor")).alias("visitors"))
    return counts.select("site", f.col("window.start").alias("hour"), "views", "visitors")
