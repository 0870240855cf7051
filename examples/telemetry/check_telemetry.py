"""Compares the Parquet files and the alerts with DuckDB over what was sent."""

import json
import subprocess

import duckdb

duckdb.execute("SET TimeZone = 'UTC'")
duckdb.execute("CREATE VIEW sent AS SELECT * FROM read_json('sent.jsonl', union_by_name = true)")
ALERTS = ["tidegate", "consume", "alerts", "--values", "--from-beginning", "--to-end"]


def compare(about, rows, expected):
    print(f"{about}: {len(rows)}, DuckDB expects {len(expected)}: {'equal' if rows == expected else 'NOT equal'}")


for about, there, expected in (
    (
        "messages of syslog",
        "SELECT epoch_ms(time), hostname, app_name, severity FROM 'parquet/syslog/*/*.parquet' ORDER BY ALL",
        "SELECT epoch_ms(time), host, app, severity FROM sent WHERE kind = 'syslog' ORDER BY ALL",
    ),
    (
        "times of statsd",
        "SELECT name, value FROM 'parquet/statsd/*/*.parquet' WHERE type = 'timer' ORDER BY ALL",
        "SELECT name, value FROM sent WHERE kind = 'statsd' ORDER BY ALL",
    ),
    (
        "items sold by OTLP",
        """SELECT attributes['item'] AS item, sum(value) FROM 'parquet/otlp-metrics/*/*.parquet'
        WHERE name = 'sold' GROUP BY ALL ORDER BY ALL""",
        "SELECT item, sum(value) FROM sent WHERE kind = 'otlp' GROUP BY ALL ORDER BY ALL",
    ),
):
    compare(about, duckdb.sql(there).fetchall(), duckdb.sql(expected).fetchall())
changes = map(json.loads, subprocess.run(ALERTS, check=True, capture_output=True, text=True).stdout.splitlines())
alerts = {(row["app"], row["since"][:16]): row["errors"] for row in changes}  # the newest of each key
expected = duckdb.sql("""
    SELECT app, strftime(time_bucket(INTERVAL 5 MINUTE, time), '%Y-%m-%dT%H:%M') AS since, count(*)
    FROM sent WHERE kind = 'syslog' AND severity <= 3 GROUP BY ALL HAVING count(*) >= 10""").fetchall()
compare("alerts", sorted(alerts.items()), sorted(((app, since), count) for app, since, count in expected))
for (app, since), errors in sorted(alerts.items()):
    print(f"{app} had {errors} errors in the five minutes from {since}")
