"""Rows a second into PostgreSQL by the JDBC sink's task, without a worker: ``python -m bench.connectors_sinks [rows]``.

The rows are those of the comparison with the JVM's sinks: nine mixed columns, about 150 bytes.
"""

from __future__ import annotations

import datetime as dt
import resource
import sys
import time

import pyarrow as pa

from connect.api import Origin, RecordBatch, Schema, SchemaType, TopicPartition
from connect.bench import Bench
from connectors.jdbc.sink import JdbcSinkConnector
from tests.servers.postgres import PostgresServer

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


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    batches = [batch(start, min(_PUT_ROWS, rows - start)) for start in range(0, rows, _PUT_ROWS)]
    server = PostgresServer()
    server.start()
    try:
        for mode in ("insert", "upsert", "upsert again"):
            for exactly_once in (False, True):
                table = f"{mode.split()[0]}_{'exactly' if exactly_once else 'least'}"
                given = {
                    "topics": "events",
                    "connection.url": server.jdbc_url,
                    "table.name.format": table,
                    "auto.create": "true",
                    "insert.mode": mode.split()[0],
                    "pk.mode": "record_value",
                    "pk.fields": "id",
                    "tidegate.offsets.table": f"offsets_{mode[6:].strip()}_{table}" if exactly_once else "",
                }
                with Bench(JdbcSinkConnector, given).sink(TopicPartition("events", 0)) as running:
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
    print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB, the rows themselves included")


if __name__ == "__main__":
    main()
