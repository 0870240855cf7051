"""The most memory a worker takes while it moves large tables: ``python -m bench.connectors_memory [--rows 10000000] [--only text]``.

Each table goes from PostgreSQL to the log by the JDBC source and by the snapshot of change data capture, and back by the JDBC sink:
one of many rows, one of 200 columns and one of values of 1 MB; with JSON that has schemas a tenth of the rows, as a change event of
it takes 5 KB. A worker is started for each, since memory that was taken stays.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final

import requests
from rich.console import Console
from rich.table import Table

from bench.broker.sides import our_broker
from bench.connect import Memory, end_of, our_worker
from bench.connectors_cdc import capture
from bench.connectors_sinks import CONVERTERS, jdbc_sink, rows_in
from broker.client import ClientConfig
from broker.client.blocking import Admin
from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until

__all__ = ["main"]

_MANY: Final = (
    "SELECT g AS id, ((g * 7919) % 100000)::int AS account_id, 'purchase'::text AS kind, (g % 100000) / 100.0::float8 AS amount, "
    "(g % 500)::smallint AS qty, 'note for event ' || g || ' ' || repeat('x', 24) AS note, md5(g::text) AS ref, "
    "timestamp '2026-01-01' + g * interval '1 second' AS created_at FROM generate_series(1::bigint, {rows}) g"
)
_COLUMNS: Final = ", ".join(
    (f"g + {n} AS c{n}", f"'text {n} of ' || g AS c{n}", f"g * {n} / 7.0::float8 AS c{n}", f"(g % {n}) = 0 AS c{n}")[
        n % 4
    ]
    for n in range(1, 200)
)
_WIDE: Final = f"SELECT g AS id, {_COLUMNS} FROM generate_series(1::bigint, {{rows}}) g"
_LARGE: Final = "SELECT g AS id, repeat(md5(g::text), 31250) AS content FROM generate_series(1::bigint, {rows}) g"


class Place:
    """A database with one table, and a log."""

    def __init__(self, server: PostgresServer, bootstrap: str, table: str, rows: int) -> None:
        self.server, self.bootstrap, self.table, self.rows = server, bootstrap, table, rows

    def jdbc_source(self) -> tuple[dict[str, str], str]:
        return {
            "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
            "connection.url": self.server.jdbc_url,
            "table.whitelist": self.table,
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "topic.prefix": "jdbc.",
        }, f"jdbc.{self.table}"

    def snapshot(self) -> tuple[dict[str, str], str]:
        return capture(self.server, self.table, "cdc") | {"snapshot.mode": "initial_only"}, f"cdc.public.{self.table}"

    def sink(self) -> dict[str, str]:
        return jdbc_sink(self.server, f"jdbc.{self.table}", f"{self.table}_again", "upsert")


@contextlib.contextmanager
def place(folder: Path, select: str, rows: int) -> Iterator[Place]:
    with contextlib.ExitStack() as running:
        server = PostgresServer()
        server.start()
        running.callback(server.stop)
        bootstrap = running.enter_context(our_broker(folder / "log")).bootstrap
        with server.connect() as connection:
            connection.execute(f"CREATE TABLE moved AS {select.format(rows=rows)}".encode())
            connection.execute("ALTER TABLE moved ADD PRIMARY KEY (id)")
            connection.execute("ANALYZE moved")
        yield Place(server, bootstrap, "moved", rows)


def moved(folder: Path, where: Place, config: dict[str, str], topic: str | None) -> tuple[float, float]:
    """A connector's run in a worker of its own until all rows are in the topic, or without one in the sink's table: seconds, and MB."""
    with our_worker(folder, where.bootstrap) as worker, Memory(worker.pid) as memory:
        began = time.perf_counter()
        with worker.connector(folder.name, config) as url:
            if topic is not None:
                with Admin(ClientConfig(where.bootstrap)) as admin:
                    done = f"all rows of {topic}"
                    wait_until(lambda: end_of(admin, topic) >= where.rows, done, timeout_s=1200, pause_s=0.2)
            else:
                table = config["table.name.format"]
                wait_until(
                    lambda: rows_in(where.server, table) >= where.rows,
                    f"all rows of {table}",
                    timeout_s=1800,
                    pause_s=1,
                )
            seconds = time.perf_counter() - began
            status = requests.get(f"{url}/status", timeout=60).text
            assert "FAILED" not in status, status
    return seconds, memory.most


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.connectors_memory")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the table of many rows; the others have less")
    parser.add_argument("--only", default="", help="part of the names of the cases to run")
    arguments = parser.parse_args()
    rows = arguments.rows
    tables = {"8 columns": (_MANY, rows), "200 columns": (_WIDE, rows // 100), "1 MB": (_LARGE, rows // 5000)}
    console = Console(width=120)
    shown = Table(
        "", "s", "most memory of the worker, MB", title=f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    )
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as top:
        for (of, (select, most)), (name, converter) in product(tables.items(), CONVERTERS.items()):
            count = most if name == "Avro" else most // 10
            title = f"{count:,} rows of {of}, {name}"
            if arguments.only not in title:
                continue
            folder = Path(top, f"{len(shown.rows)}")
            folder.mkdir()
            with place(folder, select, count) as where:
                runs = {
                    "JDBC source": where.jdbc_source(),
                    "snapshot": where.snapshot(),
                    "JDBC sink": (where.sink(), None),
                }
                for what, (config, topic) in runs.items():
                    with console.status(f"{title}, {what}"):
                        scratch = folder / what.replace(" ", "-").lower()
                        seconds, memory = moved(scratch, where, config | converter, topic)
                    shown.add_row(f"{what}, {title}", f"{seconds:.1f}", f"{memory:.0f}")
                    console.print(f"{what}, {title}: {seconds:.1f} s, {memory:.0f} MB")
    console.print(shown)


if __name__ == "__main__":
    main()
