"""Counts the orders in the Parquet files by country, and what they were worth."""

import pyarrow.dataset

orders = pyarrow.dataset.dataset("parquet/shop_orders", partitioning="hive", exclude_invalid_files=True).to_table()
totals = orders.group_by("country").aggregate([("id", "count"), ("price", "sum")]).sort_by("country")
for country, count, worth in zip(
    *(totals[name].to_pylist() for name in ("country", "id_count", "price_sum")), strict=True
):
    print(f"{country} {count:5} orders {worth:10.2f}")
print(f"{orders.num_rows} orders in all")
