"""Trains a model from what the log has: payments.jsonl and frauds.jsonl, as `tidegate consume` wrote them."""

import json
import sys
from pathlib import Path

import joblib
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, "triggers")
import fraud


def lines(name):
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


payments = lines("payments.jsonl")
reported = {line["Payment_Number__c"] for line in lines("frauds.jsonl")}
rows = [[payment[name] for name in fraud.FEATURES] for payment in payments]
labels = [payment["Payment_Number__c"] in reported for payment in payments]
version = fraud.newest() + 1
fraud.MODELS.mkdir(exist_ok=True)
trained = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, labels)
file = fraud.MODELS / f"{version}.joblib"
joblib.dump(trained, f"{file}.new")
Path(f"{file}.new").rename(file)  # a whole model, or none: others read the folder meanwhile
print(f"model {version}: {len(payments)} payments, {sum(labels)} of them frauds")
