"""Rows a second out of the sources' tasks, without a worker: ``python -m bench.connectors_sources [rows [database]]``.

Each figure is the best of three runs over the same rows; PostgreSQL and MariaDB run only where ``tests.servers`` has one.
A database is sqlite, postgres, mariadb or duckdb; all of them without.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from connectors.files.source import FileStreamSourceConnector
from connectors.jdbc.source import JdbcSourceConnector
from tests.servers.fetch import ServerMissing
from tests.servers.mariadb import MariaDbServer
from tests.servers.postgres import PostgresServer
from tests.support.connect import source_task

_TABLE = (
    "CREATE TABLE orders (id {integer} PRIMARY KEY, customer VARCHAR(40) NOT NULL, email TEXT, quantity INTEGER, "
    "price {double}, amount DECIMAL(12,2), paid BOOLEAN, created TIMESTAMP NOT NULL, city TEXT)"
)
_MODES = (
    {"mode": "bulk"},
    {"mode": "incrementing", "incrementing.column.name": "id"},
    {"mode": "timestamp+incrementing", "timestamp.column.name": "created", "incrementing.column.name": "id"},
)
_SQLITE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute(sys.argv[2])
rows = ((i, f"customer {i}", f"user{i}@example.com", i % 100, i * 1.5, i * 0.25, i % 2,
         f"2024-01-{i // 86400 % 28 + 1:02d} {i // 3600 % 24:02d}:{i // 60 % 60:02d}:{i % 60:02d}.123", "Berlin")
        for i in range(1, int(sys.argv[3]) + 1))
connection.executemany("INSERT INTO orders VALUES (?,?,?,?,?,?,?,?,?)", rows)
connection.commit()
"""
_POSTGRES = (
    "INSERT INTO orders SELECT i, 'customer ' || i, 'user' || i || '@example.com', i % 100, i * 1.5, i * 0.25, i % 2 = 0, "
    "timestamp '2024-01-01' + i * interval '1 second', 'Berlin' FROM generate_series(1, {rows}) AS i"
)


def rate(connector: type, properties: dict[str, str], rows: int) -> str:
    """The best of three runs that poll ``rows`` rows out of a fresh task: by the clock, and by this process's CPU time."""
    best = best_cpu = 0.0
    for _ in range(3):
        task = source_task(connector, properties)
        began, began_cpu, read = time.perf_counter(), time.process_time(), 0
        while read < rows:
            read += sum(map(len, task.poll()))
        best = max(best, read / (time.perf_counter() - began))
        best_cpu = max(best_cpu, read / (time.process_time() - began_cpu))
        task.stop()
    return f"{best:12,.0f} rows/s {best_cpu:12,.0f} rows per CPU second"


def database(name: str, url: str, rows: int) -> None:
    for mode in _MODES:
        for batch in ("1000", "10000"):
            properties = {
                "connection.url": url,
                "topic.prefix": "b-",
                "table.whitelist": "orders",
                "batch.max.rows": batch,
            }
            print(
                f"{name:10} {mode['mode']:22} batch.max.rows={batch:6} {rate(JdbcSourceConnector, properties | mode, rows)}"
            )


_ROWS = (
    "INSERT INTO orders SELECT {i}, concat('customer ', {i}), concat('user', {i}, '@example.com'), {i} % 100, {i} * 1.5, {i} * 0.25, "
    "{i} % 2 = 0, TIMESTAMP '2024-01-01 00:00:00' + INTERVAL {second}, 'Berlin' FROM {source}"
)


def mariadb(rows: int) -> None:
    try:
        server = MariaDbServer()
    except ServerMissing as missing:
        print(f"MariaDB left out: {missing}")
        return
    server.start()
    try:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(_TABLE.format(integer="BIGINT", double="DOUBLE").replace("TIMESTAMP", "DATETIME(6)"))
            cursor.execute(_ROWS.format(i="seq", second="seq SECOND", source=f"seq_1_to_{rows}"))
        database("MariaDB", server.jdbc_url, rows)
    finally:
        server.stop()


def duckdb(rows: int) -> None:
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.execute(_TABLE.format(integer="BIGINT", double="DOUBLE"))
            connection.execute(_ROWS.format(i="i", second="(i) SECOND", source=f"range(1, {rows + 1}) AS r(i)"))
        database("DuckDB", f"jdbc:duckdb:{path}", rows)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    chosen = sys.argv[2:] or list(_DATABASES)
    for name in chosen:
        _DATABASES[name](rows)


def sqlite(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.db")
        table = _TABLE.format(integer="INTEGER", double="REAL")
        subprocess.run([sys.executable, "-c", _SQLITE, path, table, str(rows)], check=True)
        database("SQLite", f"jdbc:sqlite:{path}", rows)
        lines = Path(folder, "lines.txt")
        lines.write_text("".join(f"{i:010d} {'x' * 138}\n" for i in range(rows)))
        properties = {"file": str(lines), "topic": "b"}
        print(f"{'file':10} {'150 B lines':45} {rate(FileStreamSourceConnector, properties, rows)}")


def postgres(rows: int) -> None:
    try:
        server = PostgresServer()
    except ServerMissing as missing:
        print(f"PostgreSQL left out: {missing}")
        return
    server.start()
    try:
        with server.connect() as connection:
            connection.execute(_TABLE.format(integer="BIGINT", double="DOUBLE PRECISION"))
            connection.execute(_POSTGRES.format(rows=rows))
            connection.execute("VACUUM ANALYZE orders")
        database("PostgreSQL", server.jdbc_url, rows)
    finally:
        server.stop()


_DATABASES = {"sqlite": sqlite, "postgres": postgres, "mariadb": mariadb, "duckdb": duckdb}

if __name__ == "__main__":
    main()
