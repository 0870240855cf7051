"""Runs popular.sql with DuckDB over what the viewers sent."""

from pathlib import Path

import duckdb

duckdb.execute("CREATE VIEW positions AS SELECT * FROM read_json('positions.jsonl')")
for title, viewers, minutes in duckdb.sql(Path("popular.sql").read_text()).fetchall():
    print(title, viewers, f"{int(minutes):,}")
