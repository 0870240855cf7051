"""Compares both ends with DuckDB, which reads requests.jsonl and changes.jsonl and knows nothing of connectors and triggers."""

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb

OPENED = """
SELECT Customer_Number__c, if(Employees__c >= 100, 'large', 'small') FROM read_json('requests.jsonl') ORDER BY ALL
"""
# A change event has only the fields that changed: the newest value of each field is the Account's.
ACCOUNTS = """
SELECT Id, last(Customer_Number__c ORDER BY n) FILTER (Customer_Number__c IS NOT NULL),
    last(Name ORDER BY n) FILTER (Name IS NOT NULL),
    last(BillingCountry ORDER BY n) FILTER (BillingCountry IS NOT NULL),
    last(NumberOfEmployees ORDER BY n) FILTER (NumberOfEmployees IS NOT NULL)
FROM (SELECT row_number() OVER () AS n, * FROM read_json('changes.jsonl'))
GROUP BY Id HAVING last(_EventType ORDER BY n) <> 'deleted' ORDER BY Id
"""


def rows(path, query):
    if not Path(path).exists():
        return []
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def compare(what, there, expected):
    print(f"{len(there)} {what}, DuckDB expects {len(expected)}: {'equal' if there == expected else 'NOT equal'}")


accounts = rows("org.db", "SELECT id, customer_number, name, country, employees FROM accounts ORDER BY id")
compare("accounts in the org", accounts, duckdb.sql(ACCOUNTS).fetchall())
opened = rows(
    "opened.db", "SELECT Customer_Number__c, Size__c FROM opened WHERE Customer_Number__c <> 'first' ORDER BY 1"
)
compare("requested accounts in the database", opened, duckdb.sql(OPENED).fetchall())
