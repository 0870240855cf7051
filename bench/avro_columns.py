"""Arrow columns to framed Avro and back, beside fastavro with a dictionary per row: ``python -m bench.avro_columns``.

Rows per second of processor time, the best of several runs of each, interleaved: both sides are one thread that waits
for nothing.
"""

from __future__ import annotations

import io
import json
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
import pyarrow as pa

from registry.client import AvroSchema
from registry.serde import arrow_type, decode_columns, encode_columns

ROWS, RUNS = 20_000, 10
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "n", "type": "int"},
    {"name": "s", "type": "string"},
    {"name": "note", "type": ["null", "string"]},
    {"name": "d", "type": "double"},
    {"name": "b", "type": "boolean"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "ref", "type": ["null", "long"]},
    {"name": "text", "type": "string"},
]


def rows() -> list[dict[str, Any]]:
    chance, start = random.Random(1), datetime(2020, 1, 1, tzinfo=UTC)
    return [
        {
            "id": 10**6 + number,
            "n": chance.randint(0, 10**6),
            "s": "x" * chance.randint(20, 30),
            "note": chance.choice([None, "hello world"]),
            "d": chance.random(),
            "b": chance.random() < 0.5,
            "at": start + timedelta(microseconds=chance.randint(0, 10**12)),
            "ref": chance.choice([None, 5]),
            "text": "y" * 40,
        }
        for number in range(ROWS)
    ]


def main() -> None:
    schema = AvroSchema.parse(json.dumps({"type": "record", "name": "Row", "fields": FIELDS}))
    prepared = fastavro.parse_schema(json.loads(schema.resolved))
    column = pa.array(rows(), arrow_type(schema))
    messages = encode_columns(schema, column, 1)

    def encode_records() -> None:
        for row in column.to_pylist():
            fastavro.schemaless_writer(io.BytesIO(), prepared, row)

    def decode_records() -> None:
        read = [fastavro.schemaless_reader(io.BytesIO(body[5:]), prepared, None) for body in messages.to_pylist()]
        pa.array(read, column.type)

    print(f"{ROWS} rows of {len(FIELDS)} fields, {messages.nbytes / ROWS:.0f} bytes each; rows per processor second")
    report("encode", lambda: encode_columns(schema, column, 1), encode_records)
    report("decode", lambda: decode_columns(messages, lambda _: schema), decode_records)


def report(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    best = [float("inf"), float("inf")]
    for _ in range(RUNS):
        for place, run in enumerate((ours, theirs)):
            began = time.process_time()
            run()
            best[place] = min(best[place], time.process_time() - began)
    columns, records = (ROWS / seconds for seconds in best)
    print(f"{name}: columns {columns:,.0f}, fastavro {records:,.0f}, ratio {columns / records:.1f}")


if __name__ == "__main__":
    main()
