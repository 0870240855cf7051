"""Chains of three transformations on batches, beside the same chains of Kafka Connect's own on records; and JSON both ways."""

from __future__ import annotations

import datetime as dt
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
from rich.console import Console

from bench.paired import Case, Measured, measure, show
from connect.api import ConverterContext, Origin, RecordBatch, Schema, SchemaType
from connect.config.connector import SinkConfig
from connect.converters.json import JsonConfig, JsonConverter
from connect.plugins.registry import load_plugins
from connect.transforms.chain import TransformChain
from tests.servers.fetch import require
from tests.servers.java import java
from tidegate.kit.config import parse

ROWS: Final = 20_000
_APACHE: Final = "org.apache.kafka.connect.transforms"
ROW: Final = Schema.struct(
    {
        "id": Schema(SchemaType.INT64),
        "name": Schema(SchemaType.STRING, optional=True),
        "amount": Schema(SchemaType.FLOAT64),
        "n": Schema(SchemaType.INT32),
        "flag": Schema(SchemaType.BOOLEAN),
        "at": Schema.timestamp(),
        "city": Schema(SchemaType.STRING),
        "note": Schema(SchemaType.STRING, optional=True),
        "k": Schema(SchemaType.INT64),
    },
    name="Row",
)
CHAINS: Final[dict[str, Sequence[tuple[str, dict[str, str]]]]] = {
    "keys": [
        ("ValueToKey", {"fields": "id"}),
        ("ExtractField$Key", {"field": "id"}),
        ("InsertField$Value", {"topic.field": "topic", "timestamp.field": "when"}),
    ],
    "values": [
        ("Cast$Value", {"spec": "n:int64,k:string,flag:int8"}),
        ("TimestampConverter$Value", {"field": "at", "target.type": "string", "format": "yyyy-MM-dd HH:mm:ss"}),
        ("ReplaceField$Value", {"exclude": "note", "renames": "city:town"}),
    ],
}


def main(folder: Path, runs: int, console: Console) -> None:  # noqa: ARG001
    show(
        f"chains of three, batches of {ROWS:,} rows of 9 fields; theirs: Kafka Connect's own, one thread, warm",
        {name: measure(_chain(name), runs, console) for name in CHAINS},
        console,
    )
    show(
        "JSON, rows of 9 fields; theirs: orjson, a dictionary per row",
        {case.name: measure(case, runs, console) for case in _json()},
        console,
    )


def _rate(work: Callable[[], Any]) -> Measured:
    """Rows a second of processor time, the best of a few."""
    best = float("inf")
    for _ in range(10):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return {"rows/s": ROWS / best}


def _rows() -> list[dict[str, Any]]:
    began = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    return [
        {
            "id": n, "name": f"name{n}", "amount": n * 1.25, "n": n % 1000, "flag": n % 2 == 0,
            "at": began + dt.timedelta(milliseconds=n), "city": "Berlin", "note": None if n % 3 else "something", "k": n * 7,
        }
        for n in range(ROWS)
    ]  # fmt: skip


def _chain(name: str) -> Case:
    properties = {"name": "bench", "connector.class": "x", "topics": "t", "transforms": "a,b,c"}
    for alias, (kind, options) in zip("abc", CHAINS[name], strict=True):
        properties |= {f"transforms.{alias}.{option}": value for option, value in options.items()}
        properties[f"transforms.{alias}.type"] = f"{_APACHE}.{kind}"
    chain = TransformChain.configured(load_plugins(entry_points=False), parse(SinkConfig, properties), properties)
    numbers = pa.array(range(ROWS), pa.int64())
    batch = RecordBatch(
        "rows",
        pa.array(_rows(), ROW.arrow_type),
        ROW,
        timestamps_ms=numbers,
        offsets=numbers,
        origin=Origin("rows", 0),
    )

    def theirs() -> Measured:
        libraries = require("kafka") / "libs" / "*"
        program = Path(__file__).parent / "java" / "TransformRows.java"
        told = subprocess.check_output([java(), "-cp", str(libraries), str(program), name, str(ROWS)], text=True)
        return {"rows/s": float(told)}

    return Case(
        f"chain {name}", lambda: _rate(lambda: chain.apply(batch, lambda stage, part, rows, step: step(rows))), theirs
    )


def _json() -> list[Case]:
    column = pa.array(_rows(), ROW.arrow_type)
    cases = []
    for schemas in (False, True):
        converter = JsonConverter(JsonConfig(schemas=schemas), ConverterContext(is_key=False))
        data = converter.from_connect("rows", ROW, column)

        def loads(data: pa.Array = data) -> None:
            for text in data.to_pylist():
                orjson.loads(text)

        def dumps() -> None:
            for row in column.to_pylist():
                orjson.dumps(row)

        name = f"JSON {'with' if schemas else 'without'} schemas"
        cases += [
            Case(
                f"{name}, written",
                lambda converter=converter: _rate(lambda: converter.from_connect("rows", ROW, column)),
                lambda: _rate(dumps),
            ),
            Case(
                f"{name}, read",
                lambda converter=converter, data=data: _rate(lambda: converter.to_connect("rows", data)),
                lambda loads=loads: _rate(loads),
            ),
        ]
    return cases
