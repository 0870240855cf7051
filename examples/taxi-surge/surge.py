"""Surge prices: riders and free drivers of each area, counted in windows of five minutes and joined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LATE = "1 minute"
"""So late positions may come; then a window is closed and its prices are sent."""
MOST = 300
"""Percent of the usual price, at most."""


def surge(views: Mapping[str, DataFrame]) -> DataFrame:
    """The price of each area and window in which somebody looked for a taxi, in percent of the usual price."""
    from pyspark.sql import functions as f

    riders, drivers = (counted(views[f"{kind}s"], kind) for kind in ("rider", "driver"))
    asked = (f.col("riders") * 100 / f.col("drivers")).cast("int")
    percent = f.when(f.col("drivers").isNull(), MOST).otherwise(f.greatest(f.lit(100), f.least(f.lit(MOST), asked)))
    return riders.join(drivers, ["area", "window"], "left").select(
        "area",
        f.col("window.start").alias("since"),
        "riders",
        f.coalesce("drivers", f.lit(0)).alias("drivers"),
        percent.alias("percent"),
    )


def counted(positions: DataFrame, kind: str) -> DataFrame:
    """How many different riders, or drivers, each area has in each window."""
    from pyspark.sql import functions as f

    def hundredths(column: str) -> object:
        return f.floor(f.col(column) * 100).cast("string")

    area = f.concat_ws(" ", hundredths("latitude"), hundredths("longitude")).alias("area")
    windows = positions.withWatermark("at", LATE).groupBy(area, f.window("at", "5 minutes").alias("window"))
    return windows.agg(f.size(f.collect_set(kind)).alias(f"{kind}s"))
