"""Compares the rates with DuckDB over the recorded changes, and prints them by wiki."""

import json
import subprocess

import duckdb

RATES = ["tidegate", "consume", "rates", "--values", "--from-beginning", "--to-end"]
EXPECTED = """
SELECT wiki, strftime(make_timestamp("timestamp" * 1000000), '%Y-%m-%dT%H:%M'), count_if(bot), count_if(NOT bot),
    count_if("type" = 'edit' AND namespace = 0 AND comment = '' AND length['new'] * 2 < length['old']
        AND regexp_full_match("user", '(\\d+[.]){3}\\d+'))
FROM 'changes-*.jsonl' GROUP BY ALL
"""
changes = map(json.loads, subprocess.run(RATES, check=True, capture_output=True, text=True).stdout.splitlines())
newest = {(row["wiki"], row["minute"][:16]): (row["bots"], row["people"], row["suspects"]) for row in changes}
expected = {(wiki, minute): tuple(counts) for wiki, minute, *counts in duckdb.sql(EXPECTED).fetchall()}
print(f"{len(newest)} rates, DuckDB expects {len(expected)}: {'equal' if newest == expected else 'NOT equal'}")
for wiki in sorted({wiki for wiki, _ in newest}):
    bots, people, suspects = (
        sum(counts) for counts in zip(*(newest[key] for key in newest if key[0] == wiki), strict=True)
    )
    print(f"{wiki}: {bots + people} changes, {100 * bots // (bots + people)} % by bots, {suspects} look like vandalism")
