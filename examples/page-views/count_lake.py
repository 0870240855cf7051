"""Counts the views in the files of the lake, day by day."""

import duckdb

for day, count in duckdb.sql(
    "SELECT \"at\"::DATE, count(*) FROM 'lake/views/**/*.parquet' GROUP BY 1 ORDER BY 1"
).fetchall():
    print(f"{day} {count:6,} views")
