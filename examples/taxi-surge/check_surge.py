"""Compares surge.jsonl with DuckDB over the positions, for all windows that have closed."""

import json
from pathlib import Path

import duckdb

for kind in ("rider", "driver"):
    duckdb.execute(f"""
        CREATE VIEW {kind}s AS
        SELECT floor(latitude * 100)::INT || ' ' || floor(longitude * 100)::INT AS area,
            time_bucket(INTERVAL 5 MINUTE, "at"::TIMESTAMPTZ AT TIME ZONE 'UTC') AS since,
            count(DISTINCT {kind}) AS {kind}s, max("at"::TIMESTAMPTZ AT TIME ZONE 'UTC') AS newest
        FROM read_json('{kind}s-*.jsonl') GROUP BY ALL""")
EXPECTED = """
WITH clock AS (
    SELECT least((SELECT max(newest) FROM riders), (SELECT max(newest) FROM drivers)) - INTERVAL 1 MINUTE AS watermark
)
SELECT area, strftime(since, '%H:%M'), riders, coalesce(drivers, 0),
    if(drivers IS NULL, 300, greatest(100, least(300, riders * 100 // drivers)))
FROM riders LEFT JOIN drivers USING (area, since), clock
WHERE since + INTERVAL 5 MINUTE <= watermark
"""
rows = [json.loads(line) for line in Path("surge.jsonl").read_text().splitlines()]
printed = sorted((r["area"], r["since"][11:16], r["riders"], r["drivers"], r["percent"]) for r in rows)
expected = sorted(duckdb.sql(EXPECTED).fetchall())
print(f"{len(printed)} prices, DuckDB expects {len(expected)}: {'equal' if printed == expected else 'NOT equal'}")
area, since, riders, drivers, percent = max((row for row in printed if row[3]), key=lambda row: row[4])
print(f"dearest where there were drivers: {area} at {since}, {riders} riders, {drivers} drivers, {percent} %")
