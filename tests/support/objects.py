"""Batches for sinks, and reading the files of object sinks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from connect.api import Origin, RecordBatch, Schema, SchemaType

ROW = Schema.struct(
    {"id": Schema(SchemaType.INT64), "city": Schema(SchemaType.STRING, optional=True), "at": Schema.timestamp()},
    name="row",
)
EPOCH_MS = 1_704_067_200_000
"""2024-01-01, midnight UTC."""


def row(number: int, at_ms: int = EPOCH_MS) -> dict[str, Any]:
    return {"id": number, "city": ("de", "fr", None)[number % 3], "at": at_ms}


def batch(
    rows: Sequence[Mapping[str, Any] | None], first_offset: int = 0, *, partition: int = 0, schema: Schema | None = ROW,
    topic: str = "events", offsets: Sequence[int] | None = None, times: Sequence[int] | None = None,
) -> RecordBatch:  # fmt: skip
    """Rows at successive offsets, each of the time in its field ``at`` unless ``times`` says otherwise."""
    count = len(rows)
    if schema is None:
        values = pa.array([None if r is None else json.dumps(r) for r in rows], pa.string())
    else:
        values = pa.array(rows, schema.arrow_type)
    return RecordBatch(
        topic,
        values,
        schema,
        timestamps_ms=pa.array(times or [(r or {}).get("at", EPOCH_MS) for r in rows], pa.int64()),
        origin=Origin(topic, partition),
        offsets=pa.array(offsets or range(first_offset, first_offset + count), pa.int64()),
    )


def read_file(path: Path) -> list[Any]:
    """The records of a file by what its name ends with, read by other people's code."""
    if path.suffix == ".avro":
        with path.open("rb") as file:
            return list(fastavro.reader(file))
    if path.suffix == ".parquet":
        return pq.ParquetFile(path).read().to_pylist()
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return [json.loads(line) for line in text.splitlines()]


def files_below(root: Path) -> list[str]:
    """Names of all data files, with their folders, sorted; logs and temporary files left out."""
    paths = (str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    return sorted(name for name in paths if not name.startswith("_") and "_tmp" not in name)
