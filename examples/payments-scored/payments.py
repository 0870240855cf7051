"""``payments.py 1`` publishes the 600 payments of a day, always the same ones. They are also in day-1.jsonl, for DuckDB.

frauds-1.jsonl has the payments that customers reported later.
"""

import json
import random
import sys
from pathlib import Path

import requests

EVENTS = "http://127.0.0.1:8090"
COUNT = 600

day = int(sys.argv[1])
chance = random.Random(day)
payments, frauds = [], []
for number in range(1, COUNT + 1):
    fraud = chance.random() < 0.1
    payment = {
        "Payment_Number__c": f"{day}-{number}",
        "Amount__c": round(chance.expovariate(1 / (400 if fraud else 60)), 2),
        "Hour__c": chance.choice(range(6)) if fraud and chance.random() < 0.7 else chance.choice(range(24)),
        "Abroad__c": int(chance.random() < (0.6 if fraud else 0.1)),
    }
    payments.append(payment)
    if fraud:
        frauds.append({"Payment_Number__c": payment["Payment_Number__c"]})

login = requests.post(
    f"{EVENTS}/services/oauth2/token",
    data={"grant_type": "client_credentials", "client_id": "tidegate", "client_secret": "tidegate-dev"},
    timeout=30,
)
login.raise_for_status()
published = 0
for first in range(0, COUNT, 200):
    records = [{"attributes": {"type": "Payment__e"}, **payment} for payment in payments[first : first + 200]]
    answer = requests.post(
        f"{EVENTS}/services/data/v60.0/composite/sobjects",
        json={"records": records},
        headers={"Authorization": f"Bearer {login.json()['access_token']}"},
        timeout=30,
    )
    answer.raise_for_status()
    published += sum(result["success"] for result in answer.json())
for name, rows in (("day", payments), ("frauds", frauds)):
    Path(f"{name}-{day}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
print(f"published {published} payments")
