"""The bank. ``bank.py create`` makes bank.db, ``bank.py pay 500`` adds random payments (always the same ones),
``bank.py threshold anna 100`` changes a threshold. Each operation is also a line of operations.jsonl, for check_alerts.py.
"""

import json
import random
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE payments (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, amount REAL NOT NULL, paid_at INTEGER NOT NULL);
CREATE TABLE thresholds (customer TEXT PRIMARY KEY, amount REAL NOT NULL);
"""
CUSTOMERS = ("anna", "ben", "carl", "dora", "emil")


def pay(bank, count):
    first = bank.execute("SELECT coalesce(max(id), 0) + 1 FROM payments").fetchone()[0]
    chance = random.Random(first)
    for number in range(first, first + count):
        customer, amount = chance.choice(CUSTOMERS), round(chance.expovariate(1 / 60), 2)
        bank.execute("INSERT INTO payments VALUES (?, ?, ?, ?)", (number, customer, amount, int(time.time() * 1000)))
        yield {"kind": "payment", "id": number, "customer": customer, "amount": amount}


def set_threshold(bank, customer, amount):
    bank.execute("INSERT INTO thresholds VALUES (?1, ?2) ON CONFLICT DO UPDATE SET amount = ?2", (customer, amount))
    return {"kind": "threshold", "id": None, "customer": customer, "amount": amount}


command, *arguments = sys.argv[1:]
with closing(sqlite3.connect("bank.db", timeout=30)) as bank, Path("operations.jsonl").open("a") as operations, bank:
    if command == "create":
        bank.executescript(TABLES)
        done = [set_threshold(bank, customer, 200) for customer in CUSTOMERS]
    elif command == "pay":
        done = pay(bank, int(arguments[0]))
    else:
        done = [set_threshold(bank, arguments[0], float(arguments[1]))]
    for operation in done:
        print(json.dumps(operation), file=operations)
