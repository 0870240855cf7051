"""Rows a second into PostgreSQL by the JDBC sink: ``python -m bench.connectors_sinks [rows]``, its task without a worker;
``python -m bench.connectors_sinks worker [rows]``, in a worker over Apache Kafka, with JSON and with Avro, and beside it, with JSON,
Debezium's sink in Kafka Connect (``python -m tests.servers fetch debezium-jdbc``).

The rows are those of the comparison with the JVM's sinks: nine mixed columns, about 150 bytes.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import resource
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from bench.connect import Memory, Worker, kafka_worker, our_worker

from connect.api import Origin, RecordBatch, Schema, SchemaType, TopicPartition
from connect.bench import Bench
from connectors.jdbc.sink import JdbcSinkConnector
from tests.servers.fetch import require
from tests.servers.kafka import FOR_SPEED, KafkaBroker
from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until

_PUT_ROWS = 40_000
"""About what a worker hands over at once: 8 MiB of batches."""
_TEXT = Schema(SchemaType.STRING, optional=True)
_ROW = Schema.struct(
    {
        "id": Schema(SchemaType.INT64),
        "account_id": Schema(SchemaType.INT32),
        "kind": _TEXT,
        "amount": Schema(SchemaType.FLOAT64),
        "qty": Schema(SchemaType.INT16, optional=True),
        "active": Schema(SchemaType.BOOLEAN),
        "note": _TEXT,
        "ref": _TEXT,
        "created_at": Schema.timestamp(),
    }
)


def batch(start: int, count: int) -> RecordBatch:
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    values = [
        {
            "id": g,
            "account_id": g * 7919 % 100_000,
            "kind": ("click", "view", "purchase", "refund", "signup")[g % 5],
            "amount": g % 100_000 / 100,
            "qty": None if g % 11 == 0 else g % 500,
            "active": g % 3 == 0,
            "note": None if g % 13 == 0 else f"note for event {g} {'abcdefghijklmnopqrstuvwxyz'[g % 26] * 24}",
            "ref": f"{g:032x}",
            "created_at": moment + dt.timedelta(seconds=g),
        }
        for g in range(start, start + count)
    ]
    return RecordBatch(
        "events",
        pa.array(values, _ROW.arrow_type),
        _ROW,
        origin=Origin("events", 0),
        offsets=pa.array(range(start, start + count), pa.int64()),
    )


CONVERTERS = {
    "JSON with schemas": {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "true",
    },
    "Avro": {"value.converter": "io.confluent.connect.avro.AvroConverter"},
}
_SOURCE = (
    "CREATE TABLE events AS SELECT g AS id, ((g * 7919) % 100000)::int AS account_id, 'purchase'::text AS kind, "
    "(g % 100000) / 100.0::float8 AS amount, (g % 500)::smallint AS qty, g % 3 = 0 AS active, "
    "'note for event ' || g || ' ' || repeat('x', 24) AS note, md5(g::text) AS ref, "
    "timestamp '2026-01-01' + g * interval '1 second' AS created_at FROM generate_series(1::bigint, {rows}) g"
)


def jdbc_sink(server: PostgresServer, topic: str, table: str, mode: str) -> dict[str, str]:
    """A connector that makes the table and fills it."""
    return {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "connection.url": server.jdbc_url,
        "topics": topic,
        "table.name.format": table,
        "auto.create": "true",
        "insert.mode": mode,
        "pk.mode": "record_value",
        "pk.fields": "id",
        "consumer.override.auto.offset.reset": "earliest",
    }


def rows_in(server: PostgresServer, table: str) -> int:
    """How many rows a table has; none where there is no such table."""
    with server.connect() as connection:
        (there,) = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchone() or (False,)
        row = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() if there else None
    return int(row[0]) if row else 0


def in_a_worker(rows: int) -> None:
    """The JDBC source fills a topic for each converter, then the sink drains it. Memory is that of all the worker's processes,
    what they share counted once."""
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        server, kafka = PostgresServer(), KafkaBroker(folder / "kafka", heap="1G", jvm=FOR_SPEED)
        for started in (server, kafka):
            started.start()
            running.callback(started.stop)
        with server.connect() as connection:
            connection.execute(_SOURCE.format(rows=rows))
        worker = running.enter_context(our_worker(folder / "ours", kafka.bootstrap_servers))
        theirs = running.enter_context(
            kafka_worker(
                folder / "theirs", kafka.bootstrap_servers, {"plugin.path": str(require("debezium-jdbc") / "plugins")}
            )
        )
        for name, converter in CONVERTERS.items():
            topic = name.split()[0].lower()
            source = {
                "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
                "connection.url": server.jdbc_url,
                "query": "SELECT * FROM events",
                "mode": "bulk",
                "poll.interval.ms": "3600000",
                "topic.prefix": topic,
            }
            worker.run_source(source | converter, topic, rows)
            for mode in ("insert", "upsert"):
                sink = jdbc_sink(server, topic, f"{topic}_{mode}", mode) | converter
                shown = drained(worker, server, f"{topic}_{mode}", sink, rows)
                print(f"{name:18} {mode:7} ours     ", shown, flush=True)
                if name == "Avro":
                    continue  # Kafka Connect has no converter of its own for it
                debezium = {
                    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
                    "connection.url": f"jdbc:postgresql://127.0.0.1:{server.port}/{server.database}",
                    "connection.username": server.user,
                    "connection.password": "unused",
                    "topics": topic,
                    "collection.name.format": f"{topic}_{mode}_debezium",
                    "schema.evolution": "basic",
                    "insert.mode": mode,
                    "primary.key.mode": "record_value",
                    "primary.key.fields": "id",
                    "batch.size": "3000",
                    "use.reduction.buffer": "false",
                    "consumer.override.max.poll.records": "3000",
                    "consumer.override.auto.offset.reset": "earliest",
                }
                shown = drained(theirs, server, f"{topic}_{mode}_debezium", debezium | converter, rows)
                print(f"{name:18} {mode:7} Debezium ", shown, flush=True)


def drained(worker: Worker, server: PostgresServer, table: str, config: dict[str, str], rows: int) -> str:
    """Post a sink and wait until all rows are in its table; from the first on."""
    before = worker.cpu_s()
    with worker.connector(f"sink-{table}", config), Memory(worker.pid) as memory:
        wait_until(lambda: rows_in(server, table) > 0, "the first row", timeout_s=120, pause_s=0.02)
        first, began = rows_in(server, table), time.perf_counter()
        wait_until(lambda: rows_in(server, table) >= rows, "all rows", timeout_s=600, pause_s=0.2)
        wall, cpu = time.perf_counter() - began, worker.cpu_s() - before
    return (
        f"{(rows - first) / wall:10,.0f} rows/s {cpu / rows * 1e6:6.2f} worker CPU s per million rows, "
        f"{memory.most:.0f} MB at most"
    )


def main() -> None:
    if sys.argv[1:2] == ["worker"]:
        in_a_worker(int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    batches = [batch(start, min(_PUT_ROWS, rows - start)) for start in range(0, rows, _PUT_ROWS)]
    server = PostgresServer()
    server.start()
    try:
        for mode in ("insert", "upsert", "upsert again"):
            for exactly_once in (False, True):
                table = f"{mode.split()[0]}_{'exactly' if exactly_once else 'least'}"
                properties = {
                    "topics": "events",
                    "connection.url": server.jdbc_url,
                    "table.name.format": table,
                    "auto.create": "true",
                    "insert.mode": mode.split()[0],
                    "pk.mode": "record_value",
                    "pk.fields": "id",
                    "tidegate.offsets.table": f"offsets_{mode[6:].strip()}_{table}" if exactly_once else "",
                }
                with Bench(JdbcSinkConnector, properties).sink(TopicPartition("events", 0)) as running:
                    began, began_cpu = time.perf_counter(), time.process_time()
                    for each in batches:
                        running.task.put([each])
                    wall, cpu = time.perf_counter() - began, time.process_time() - began_cpu
                print(
                    f"{mode:13} {'exactly' if exactly_once else 'at least'} once {rows / wall:10,.0f} rows/s "
                    f"{cpu / rows * 1e6:6.2f} CPU seconds per million rows"
                )
    finally:
        server.stop()
    print(
        f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB, the rows themselves included"
    )


if __name__ == "__main__":
    main()
