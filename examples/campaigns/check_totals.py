"""Prints the totals of the read model, and compares them with DuckDB's over the files that were produced."""

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb

QUERY = Path("totals.sql").read_text()
with closing(sqlite3.connect("read.db")) as read_model:
    tables = {name for (name,) in read_model.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    rows = read_model.execute(QUERY).fetchall() if tables >= {"posts", "likes", "comments"} else []
raw = duckdb.connect()
for name in ("posts", "likes", "comments"):
    raw.execute(f"CREATE VIEW {name} AS SELECT * FROM read_json('hour-*/{name}.jsonl')")
print("campaign  posts  comments  likes  last hour  trend")
for campaign, posts, comments, likes, last_hour, trend in rows:
    print(f"{campaign:8} {posts:6} {comments:9} {likes:6} {last_hour:10} {trend:+6}")
print("equal to DuckDB" if raw.execute(QUERY).fetchall() == rows else "NOT equal to DuckDB")
