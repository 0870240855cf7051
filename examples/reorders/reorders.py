"""The reorders and the price changes of a shop: functions of Spark over sales and shipments, past and future alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENOUGH = 20
"""An item with fewer pieces in stock is ordered again."""
USUAL = 10
"""Pieces of an item that a usual day sells."""


def reorders(views: Mapping[str, DataFrame]) -> DataFrame:
    """Items of which few are left, each time that changes: shipments add to the stock, sales take from it."""
    from pyspark.sql import functions as f

    arrived = views["shipments"].select("item", f.col("quantity").alias("pieces"))
    sold = views["sales"].select("item", (-f.col("quantity")).alias("pieces"))
    stock = arrived.union(sold).groupBy("item").agg(f.sum("pieces").alias("in_stock"))
    return stock.where(f.col("in_stock") < ENOUGH).withColumn("order", f.lit(5 * ENOUGH) - f.col("in_stock"))


def price_adjustments(views: Mapping[str, DataFrame]) -> DataFrame:
    """Percents by which the prices of a day's items change: up where many were sold, down where few were."""
    from pyspark.sql import functions as f

    days = views["sales"].withWatermark("at", "1 hour").groupBy("item", f.window("at", "1 day"))
    sold = days.agg(f.sum("quantity").alias("sold"), f.avg("price").alias("price"))
    percent = f.when(f.col("sold") > 2 * USUAL, 5).when(f.col("sold") < USUAL / 2, -5)
    return sold.select(
        "item",
        f.to_date("window.start").alias("day"),
        "sold",
        f.round("price", 2).alias("price"),
        percent.alias("percent"),
    ).where(f.col("percent").isNotNull())
