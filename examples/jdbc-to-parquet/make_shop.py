"""Makes shop.db, a small shop in SQLite: customers and their orders. ``python make_shop.py 5`` adds five orders to it."""

import sqlite3
import sys
from contextlib import closing

TABLES = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    item TEXT NOT NULL,
    price REAL NOT NULL,
    country TEXT NOT NULL
);
"""
COUNTRIES, ITEMS = ("de", "fr", "se"), ("lamp", "chair", "table", "shelf")


def add_orders(database: sqlite3.Connection, count: int) -> None:
    first = database.execute("SELECT coalesce(max(id), 0) + 1 FROM orders").fetchone()[0]
    rows = [(n, n % 30 + 1, ITEMS[n % 4], 10 + n % 90 / 2, COUNTRIES[n % 30 % 3]) for n in range(first, first + count)]
    database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", rows)


with closing(sqlite3.connect("shop.db")) as database, database:
    if len(sys.argv) > 1:
        add_orders(database, int(sys.argv[1]))
    else:
        database.executescript(TABLES)
        customers = [(n, f"customer {n}", COUNTRIES[(n - 1) % 3]) for n in range(1, 31)]
        database.executemany("INSERT INTO customers VALUES (?, ?, ?)", customers)
        add_orders(database, 1000)
