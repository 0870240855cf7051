"""Counts what Spark wrote, by station."""

import pyarrow.dataset

readings = pyarrow.dataset.dataset("parquet", partitioning="hive").to_table()
totals = readings.group_by("station").aggregate([("celsius", "count"), ("fahrenheit", "mean")]).sort_by("station")
for station, count, mean in zip(
    *(totals[name].to_pylist() for name in ("station", "celsius_count", "fahrenheit_mean")), strict=True
):
    print(f"{station} {count} readings, {mean:.1f} °F on average")
