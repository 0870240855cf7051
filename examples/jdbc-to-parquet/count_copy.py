"""Counts the orders in copy.db, whose table the sink creates with the first of them."""

import sqlite3
from contextlib import closing

with closing(sqlite3.connect("copy.db")) as database:
    there = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'orders'").fetchone()
    count = database.execute("SELECT count(*) FROM orders").fetchone()[0] if there else 0
print(f"{count} orders in the copy")
