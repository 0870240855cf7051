"""Change data capture from PostgreSQL, ours beside Debezium in Kafka Connect 4.3.1: ``python -m bench.connectors_cdc``.

Both read the same tables of one PostgreSQL into one Apache Kafka, in turn: a snapshot of ``--rows`` rows, then as many changes that
were written while the connector was paused. Kafka Connect has no Avro converter of its own: our Avro stands beside its JSON
without schemas. Memory is that of all the worker's processes at most.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import requests
from rich.console import Console

from bench.broker.sides import apache_broker, our_broker
from bench.connect import JSON, Memory, Worker, end_of, our_worker
from bench.paired import Case, Measured, measure, show
from broker.client import ClientConfig
from broker.client.blocking import Admin
from tests.servers.fetch import require
from tests.servers.kafka import FOR_SPEED, KafkaConnect
from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until

__all__ = ["capture", "main"]

_AVRO = "io.confluent.connect.avro.AvroConverter"
_TABLE = """
CREATE TABLE events (id bigint PRIMARY KEY, account_id integer NOT NULL, kind varchar(16) NOT NULL, amount double precision NOT NULL,
  qty smallint, active boolean NOT NULL, note text, ref char(32) NOT NULL, created_at timestamp NOT NULL);
INSERT INTO events SELECT g, (g * 7919) % 100000, (ARRAY['click','view','purchase','refund','signup'])[1 + g % 5], (g % 100000) / 100.0,
  CASE WHEN g % 11 = 0 THEN NULL ELSE g % 500 END, g % 3 = 0,
  CASE WHEN g % 13 = 0 THEN NULL ELSE 'note for event ' || g || ' ' || repeat(chr(97 + (g % 26)::int), 24) END,
  md5(g::text), timestamp '2026-01-01' + g * interval '1 second' FROM generate_series(1::bigint, {rows}) g;
ANALYZE events;
"""


def json(schemas: bool) -> dict[str, str]:
    flag = str(schemas).lower()
    return {
        "key.converter": JSON,
        "key.converter.schemas.enable": flag,
        "value.converter": JSON,
        "value.converter.schemas.enable": flag,
    }


CONVERTERS = {
    "JSON with schemas": (json(True), json(True)),
    "JSON without schemas": (json(False), json(False)),
    "Avro": ({"value.converter": _AVRO} | {k: v for k, v in json(False).items() if k.startswith("key")}, json(False)),
}
"""The configuration of both sides."""


def capture(server: PostgresServer, table: str, prefix: str) -> dict[str, str]:
    """A connector for the changes of one table."""
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": "unused",
        "database.dbname": server.database,
        "plugin.name": "pgoutput",
        "table.include.list": f"public.{table}",
        "topic.prefix": prefix,
    }


class Place:
    """Database and log that both sides use."""

    def __init__(self, server: PostgresServer, bootstrap: str, rows: int) -> None:
        self.server, self.bootstrap, self.rows = server, bootstrap, rows
        with server.connect() as connection:
            connection.execute(_TABLE.format(rows=rows).encode())

    def config(self, table: str, run: str, converter: dict[str, str]) -> dict[str, str]:
        names = {"slot.name": run, "publication.name": run, "publication.autocreate.mode": "filtered"}
        return capture(self.server, table, run) | names | converter

    def counted(self, worker: Worker, topic: str, begun: float | None = None) -> Measured:
        """Waits for all rows in a topic. Rates are from the first record on, or from ``begun``."""
        with Admin(ClientConfig(self.bootstrap)) as admin, Memory(worker.pid) as memory:
            wait_until(lambda: end_of(admin, topic) > 0, "the first record", timeout_s=120, pause_s=0.005)
            first, began = (end_of(admin, topic), time.perf_counter()) if begun is None else (0, begun)
            wait_until(lambda: end_of(admin, topic) >= self.rows, "all records", timeout_s=600, pause_s=0.02)
            seconds = time.perf_counter() - began
        return {"rows/s": (self.rows - first) / seconds, "memory, MB": memory.most}

    @contextlib.contextmanager
    def connector(self, worker: Worker, config: dict[str, str]) -> Iterator[str]:
        """A connector while inside; its slot and publication go with it."""
        run = config["slot.name"]
        try:
            with worker.connector(run, config) as url:
                yield url
        finally:
            with self.server.connect() as connection:
                slot = "FROM pg_replication_slots WHERE slot_name = %s"
                there = f"SELECT count(*) {slot} AND active"
                wait_until(lambda: connection.execute(there, [run]).fetchone() == (0,), "the slot is free")
                connection.execute(f"SELECT pg_drop_replication_slot(slot_name) {slot}", [run])
                connection.execute(f"DROP PUBLICATION IF EXISTS {run}".encode())

    def snapshot(self, worker: Worker, converter: dict[str, str]) -> Measured:
        run = f"s{uuid.uuid4().hex[:8]}"
        before = worker.cpu_s()
        with self.connector(worker, self.config("events", run, converter) | {"snapshot.mode": "initial_only"}):
            rate = self.counted(worker, f"{run}.public.events")
            return {**rate, "worker CPU s per 1M rows": (worker.cpu_s() - before) / self.rows * 1e6}

    def stream(self, worker: Worker, converter: dict[str, str]) -> Measured:
        """Inserts in transactions of 1000 rows, written while the connector is paused, then drained."""
        run = f"c{uuid.uuid4().hex[:8]}"
        with self.server.connect() as connection:
            connection.execute("DROP TABLE IF EXISTS changed; CREATE TABLE changed (LIKE events INCLUDING ALL)")
            config = self.config("changed", run, converter) | {"snapshot.mode": "no_data"}
            active = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = %s AND active"
            with self.connector(worker, config) as url:
                wait_until(lambda: connection.execute(active, [run]).fetchone() == (1,), "the stream", timeout_s=60)
                time.sleep(2)
                requests.put(f"{url}/pause", timeout=60).raise_for_status()
                status = f"{url}/status"
                wait_until(
                    lambda: requests.get(status, timeout=60).json()["tasks"][0]["state"] == "PAUSED", "the pause"
                )
                for first in range(1, self.rows + 1, 1000):
                    connection.execute(
                        "INSERT INTO changed SELECT * FROM events WHERE id BETWEEN %s AND %s",
                        [first, min(first + 999, self.rows)],
                    )
                before = worker.cpu_s()
                requests.put(f"{url}/resume", timeout=60).raise_for_status()
                rate = self.counted(worker, f"{run}.public.changed")
                return {**rate, "worker CPU s per 1M rows": (worker.cpu_s() - before) / self.rows * 1e6}


@contextlib.contextmanager
def debezium_worker(folder: Path, bootstrap: str) -> Iterator[Worker]:
    plugins = str(require("debezium-postgres") / "plugins")
    worker = KafkaConnect(folder, bootstrap, {"plugin.path": plugins}, heap="2G", jvm=FOR_SPEED)
    worker.start()
    try:
        yield Worker(worker.url, worker.process.pid, bootstrap)
    finally:
        worker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.connectors_cdc")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3, help="pairs of runs; the median of their ratios counts")
    parser.add_argument("--only", default="", help="part of the names of the cases to run")
    parser.add_argument("--log", choices=("apache", "ours"), default="apache", help="the broker that both write to")
    parser.add_argument("--ours", action="store_true", help="without Debezium: each figure stands on both sides")
    arguments = parser.parse_args()
    console = Console(width=120)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {arguments.rows:,} rows")
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-bench-")))
        server = PostgresServer()
        server.start()
        running.callback(server.stop)
        log = our_broker if arguments.log == "ours" else apache_broker
        bootstrap = running.enter_context(log(folder / "log")).bootstrap
        setup = Place(server, bootstrap, arguments.rows)
        ours = running.enter_context(our_worker(folder / "ours", bootstrap))
        theirs = None if arguments.ours else running.enter_context(debezium_worker(folder / "theirs", ours.bootstrap))
        for what, run in (("snapshot", setup.snapshot), ("stream", setup.stream)):
            for name, (mine, other) in CONVERTERS.items():
                title = f"{what}, {name}"
                if arguments.only not in title:
                    continue
                if theirs is None:
                    figures = [run(ours, mine) for _ in range(arguments.runs)]
                    show("ours alone", {title: [(ratio, ratio) for ratio in figures]}, console)
                    continue
                case = Case(title, lambda: run(ours, mine), lambda: run(theirs, other))  # noqa: B023
                show("ours and Debezium 3.5", {title: measure(case, arguments.runs, console)}, console)


if __name__ == "__main__":
    main()
