"""Compares the scores with a batch in DuckDB: SQL over the raw payments, with the coefficients of each model.

Days 1 and 2 have the scores of model 1, day 3 those of model 2.
"""

import json
import math
import sys
from pathlib import Path

import duckdb

sys.path.insert(0, "triggers")
import fraud


def logit(version):
    """The model as SQL: each feature is scaled and weighted."""
    scaler, regression = (step for _, step in fraud.model(version).steps)
    terms = zip(fraud.FEATURES, scaler.mean_, scaler.scale_, regression.coef_[0], strict=True)
    weighted = (f"({name} - {mean!r}::DOUBLE) / {scale!r} * {weight!r}" for name, mean, scale, weight in terms)
    return " + ".join([repr(float(regression.intercept_[0])), *weighted]).replace("np.float64", "")


logits = " ".join(f"WHEN {version} THEN {logit(version)}" for version in range(1, fraud.newest() + 1))
batch = duckdb.sql(f"""
    SELECT Payment_Number__c, model, 1 / (1 + exp(-(CASE model {logits} END)))
    FROM (SELECT *, if(Payment_Number__c LIKE '3-%', 2, 1) AS model FROM read_json('day-*.jsonl'))
    ORDER BY 1""").fetchall()
for name, file in (("the trigger", "trigger.jsonl"), ("Spark", "spark.jsonl")):
    records = [json.loads(line) for line in Path(file).read_text().splitlines()]
    rows = sorted((record["payment"], record["model"], record["score"]) for record in records)
    same = [row[:2] for row in rows] == [row[:2] for row in batch] and all(
        math.isclose(row[2], expected[2], rel_tol=1e-9) for row, expected in zip(rows, batch, strict=True)
    )
    print(f"{len(rows)} scores by {name}, DuckDB expects {len(batch)}: {'equal' if same else 'NOT equal'}")
