"""Arrow columns to framed Avro and back, beside fastavro with a dictionary per row: ``python -m bench avro``.

fastavro is given its dictionaries ready made and hands them out as they are: what turns them into columns, or columns
into them, is not counted against it. Rows per second of processor time: both sides are one thread that waits for nothing.
"""

from __future__ import annotations

import io
import json
import random
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
from rich.console import Console

from bench.paired import Case, Measured, measure, show
from registry.client import AvroSchema
from registry.serde import arrow_type, decode_columns, encode_columns

ROWS, BATCHES = 20_000, 10
"""Ours takes a tenth of the time, so it runs ten times in one measurement."""
START = datetime(2020, 1, 1, tzinfo=UTC)


class Shape(NamedTuple):
    fields: list[dict[str, Any]]
    row: Callable[[int, random.Random], dict[str, Any]]
    """A row as Arrow takes it."""
    record: Callable[[dict[str, Any]], dict[str, Any]] = dict
    """The same as fastavro takes it."""


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, **more}


def logical(type_: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "logicalType": name, **more}


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


MOMENT = logical("long", "timestamp-micros")


def moment(chance: random.Random) -> datetime:
    return START + timedelta(microseconds=chance.randint(0, 10**14))


def flat(number: int, chance: random.Random) -> dict[str, Any]:
    return {
        "id": 10**6 + number,
        "n": chance.randint(0, 10**6),
        "s": "x" * chance.randint(20, 30),
        "note": chance.choice([None, "hello world"]),
        "d": chance.random(),
        "b": chance.random() < 0.5,
        "at": moment(chance),
        "ref": chance.choice([None, 5]),
        "text": "y" * 40,
    }


def order(number: int, chance: random.Random) -> dict[str, Any]:
    return {
        "id": number,
        "customer": {"id": chance.randint(1, 10**5), "name": "n" * chance.randint(5, 20), "email": None},
        "lines": [
            {"sku": f"sku-{chance.randint(1, 999)}", "quantity": chance.randint(1, 9), "price": chance.random()}
            for _ in range(chance.randint(1, 5))
        ],
        "tags": {f"tag{tag}": "v" * tag for tag in range(chance.randint(0, 3))},
        "scores": [chance.randint(0, 1000) for _ in range(chance.randint(0, 6))],
    }


def change(number: int, chance: random.Random) -> dict[str, Any]:
    def state() -> dict[str, Any]:
        return {"id": number, "name": "n" * chance.randint(5, 20), "city": chance.choice([None, "Oslo"]), "age": 40}

    op = chance.choice("cud")
    return {
        "before": None if op == "c" else state(),
        "after": None if op == "d" else state(),
        "source": {"db": "shop", "table": "customers", "lsn": 10**9 + number, "snapshot": False},
        "op": op,
        "ts_ms": 1_700_000_000_000 + number,
    }


def reading(number: int, chance: random.Random) -> dict[str, Any]:
    value: dict[str, Any] = chance.choice(
        [{"long": chance.randint(0, 10**9)}, {"double": chance.random()}, {"string": "ok"}]
    )
    return {
        "amount": Decimal(chance.randint(-(10**12), 10**12)) / 100,
        "fixed": Decimal(chance.randint(-(10**12), 10**12)) / 100,
        "day": date(2020, 1, 1) + timedelta(days=chance.randint(0, 3000)),
        "at": moment(chance),
        "time": moment(chance).time(),
        "key": f"00000000-0000-4000-8000-{number:012d}",
        "state": chance.choice(["ON", "OFF", "BROKEN"]),
        "digest": number.to_bytes(16, "big"),
        "value": chance.choice([None, value]),
    }


def plain_union(row: dict[str, Any]) -> dict[str, Any]:
    """A union of several types is a struct in Arrow, and the value alone in fastavro."""
    return {**row, "value": row["value"] and next(iter(row["value"].values()))}


STATE = record(
    "State", field("id", "long"), field("name", "string"), field("city", ["null", "string"]), field("age", "int")
)
SHAPES = {
    "9 flat columns": Shape(
        [
            field("id", "long"),
            field("n", "int"),
            field("s", "string"),
            field("note", ["null", "string"]),
            field("d", "double"),
            field("b", "boolean"),
            field("at", MOMENT),
            field("ref", ["null", "long"]),
            field("text", "string"),
        ],
        flat,
    ),
    "order (record, array of records, map, array)": Shape(
        [
            field("id", "long"),
            field(
                "customer",
                record("Customer", field("id", "long"), field("name", "string"), field("email", ["null", "string"])),
            ),
            field(
                "lines",
                {
                    "type": "array",
                    "items": record("Line", field("sku", "string"), field("quantity", "int"), field("price", "double")),
                },
            ),
            field("tags", {"type": "map", "values": "string"}),
            field("scores", {"type": "array", "items": "int"}),
        ],
        order,
    ),
    "change event (optional records)": Shape(
        [
            field("before", ["null", STATE]),
            field("after", ["null", "State"]),
            field(
                "source",
                record(
                    "Source",
                    field("db", "string"),
                    field("table", "string"),
                    field("lsn", ["null", "long"]),
                    field("snapshot", "boolean"),
                ),
            ),
            field("op", "string"),
            field("ts_ms", ["null", "long"]),
        ],
        change,
    ),
    "reading (logical types, enum, fixed, union of three)": Shape(
        [
            field("amount", logical("bytes", "decimal", precision=18, scale=2)),
            field("fixed", {**logical("fixed", "decimal", precision=18, scale=2), "name": "F8", "size": 8}),
            field("day", logical("int", "date")),
            field("at", MOMENT),
            field("time", logical("long", "time-micros")),
            field("key", logical("string", "uuid")),
            field("state", {"type": "enum", "name": "Mode", "symbols": ["ON", "OFF", "BROKEN"]}),
            field("digest", {"type": "fixed", "name": "F16", "size": 16}),
            field("value", ["null", "long", "double", "string"]),
        ],
        reading,
        plain_union,
    ),
}


def main(folder: Path, runs: int, console: Console) -> None:
    results = {}
    for name, shape in SHAPES.items():
        for case in cases(name, shape):
            results[case.name] = measure(case, runs, console)
    show(f"batches of {ROWS} rows, records one by one with fastavro", results, console)


def cases(name: str, shape: Shape) -> list[Case]:
    schema = AvroSchema.parse(json.dumps(record("Row", *shape.fields)))
    prepared = fastavro.parse_schema(json.loads(schema.resolved))
    chance = random.Random(1)
    rows = [shape.row(number, chance) for number in range(ROWS)]
    column = pa.array(rows, arrow_type(schema))
    records = [shape.record(row) for row in rows]
    messages = encode_columns(schema, column, 1)
    bodies = [message[5:] for message in messages.to_pylist()]

    def encode_records() -> None:
        for record in records:
            fastavro.schemaless_writer(io.BytesIO(), prepared, record)

    def decode_records() -> None:
        for body in bodies:
            fastavro.schemaless_reader(io.BytesIO(body), prepared, None)

    return [
        Case(f"{name}: encode", timed(lambda: encode_columns(schema, column, 1), BATCHES), timed(encode_records)),
        Case(
            f"{name}: decode", timed(lambda: decode_columns(messages, lambda _: schema), BATCHES), timed(decode_records)
        ),
    ]


def timed(run: Callable[[], object], times: int = 1) -> Callable[[], Measured]:
    def measured() -> Measured:
        began = time.process_time()
        for _ in range(times):
            run()
        return {"rows per CPU second": times * ROWS / (time.process_time() - began)}

    return measured
