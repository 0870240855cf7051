"""Reads both layers, as a page that shows the numbers would, and compares them with DuckDB over the raw views.

The arguments are the files with the views that have arrived.
"""

import json
import subprocess
import sys
from pathlib import Path

import duckdb

READ = ["tidegate", "consume", "views-by-hour", "--values", "--from-beginning", "--to-end"]


def counts(query):
    """The counts of each site and hour."""
    rows = duckdb.sql(f"SELECT site, strftime(hour, '%Y-%m-%dT%H'), views, visitors FROM ({query})").fetchall()
    return {(site, hour): (views, visitors) for site, hour, views, visitors in rows}


def compare(name, layer):
    different = sum(layer.get(key) != value for key, value in expected.items())
    print(
        f"{name}: {len(layer)} rows, DuckDB expects {len(expected)}: {f'{different} differ' if different else 'equal'}"
    )


expected = counts(f"""
    SELECT site, date_trunc('hour', "at"::TIMESTAMPTZ AT TIME ZONE 'UTC') AS hour,
        count(*) AS views, count(DISTINCT visitor) AS visitors
    FROM read_json({sys.argv[1:]}) GROUP BY ALL""")
changes = map(json.loads, subprocess.run(READ, check=True, capture_output=True, text=True).stdout.splitlines())
speed = {(row["site"], row["hour"][:13]): (row["views"], row["visitors"]) for row in changes}  # the newest of each key
compare("speed layer", speed)
if Path("batch").is_dir():
    batch = counts("SELECT * FROM 'batch/*.parquet'")
    newest = max(hour for _, hour in batch)  # it may be incomplete: from here on the speed layer knows more
    both = {key: row for key, row in batch.items() if key[1] < newest}
    both |= {key: row for key, row in speed.items() if key[1] >= newest}
    compare("both layers", both)
