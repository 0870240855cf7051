"""Compares alerts and cases with DuckDB, which reads what the bank did and knows nothing of topics and triggers."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb

# A payment leads to an alert if it is above a threshold that was in force when it was made, or that came later.
EXPECTED = """
WITH operations AS (SELECT row_number() OVER () AS n, * FROM read_json('operations.jsonl')),
thresholds AS (
    SELECT customer, amount, lead(n, 1, 1000000000) OVER (PARTITION BY customer ORDER BY n) AS until
    FROM operations WHERE kind = 'threshold'
)
SELECT DISTINCT payments.id FROM operations AS payments JOIN thresholds USING (customer)
WHERE kind = 'payment' AND payments.amount > thresholds.amount AND payments.n < thresholds.until
"""
expected = {number for (number,) in duckdb.sql(EXPECTED).fetchall()}
alerts = [json.loads(line) for line in Path("alerts.jsonl").read_text().splitlines()]
with closing(sqlite3.connect("cases.db")) as database:
    there = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'cases'").fetchone()
    cases = {number for (number,) in database.execute("SELECT payment FROM cases")} if there else set()
retroactive = sum(alert["Retroactive__c"] for alert in alerts)
print(f"{len(alerts)} alerts, {retroactive} of them retroactive; {len(cases)} cases; DuckDB expects {len(expected)}")
print(
    "they agree" if sorted(int(alert["Payment__c"]) for alert in alerts) == sorted(expected) == sorted(cases) else "NO"
)
waits = sorted((alert["CreatedDate"] - alert["Paid_At__c"]) / 1000 for alert in alerts if not alert["Retroactive__c"])
print(f"half of the others came within {waits[len(waits) // 2]:.1f} s of the payment, all within {waits[-1]:.1f} s")
