"""Records for tests of the Iceberg sink, and its task on the bench."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from connect.api import Origin, Record, RecordBatch, Schema, SchemaType, TopicPartition
from connect.bench import Bench, RunningTask
from connectors.iceberg.sink import IcebergSinkConnector
from tests.support.iceberg import local_catalog

__all__ = ["ORDER", "batch", "bench", "commit", "order", "partition", "rows", "sink"]

INT, TEXT = Schema(SchemaType.INT64), Schema(SchemaType.STRING)
ORDER = Schema.struct(
    {
        "id": INT,
        "name": TEXT.as_optional(),
        "price": Schema.decimal(2, 9, optional=True),
        "at": Schema.timestamp(optional=True),
        "lines": Schema.array(
            Schema.struct({"sku": TEXT, "count": Schema(SchemaType.INT32, optional=True)}, optional=True), optional=True
        ),
        "tags": Schema.map(TEXT, Schema(SchemaType.INT32, optional=True), optional=True),
    },
    name="shop.Order",
)


def order(n: int) -> dict[str, Any]:
    return {
        "id": n,
        "name": None if n % 5 == 0 else f"name {n}",
        "price": decimal.Decimal(n) / 4,
        "at": datetime.datetime(2024, 1, 1 + n % 3, 12, tzinfo=datetime.UTC),
        "lines": None if n % 2 else [{"sku": f"s{n}", "count": n}, None],
        "tags": None if n % 3 else {"k": n, "none": None},
    }


def rows(
    values: Sequence[Any], schema: Schema | None = ORDER, *, first: int = 0, part: int = 0, **more: Any
) -> RecordBatch:
    """Records at the offsets from ``first``. ``keys`` and ``key_schema`` are those of the records."""
    keys, key_schema = more.pop("keys", [None] * len(values)), more.pop("key_schema", None)
    records = [
        Record(
            "orders",
            value,
            schema,
            key=key,
            key_schema=key_schema,
            offset=first + n,
            timestamp_ms=1_000 + first + n,
            **more,
        )
        for n, (value, key) in enumerate(zip(values, keys, strict=True))
    ]
    return RecordBatch.from_records(records, origin=Origin("orders", part))


def batch(start: int, stop: int, part: int = 0) -> RecordBatch:
    """Orders ``start`` to ``stop`` at the offsets of the same numbers."""
    return rows([order(n) for n in range(start, stop)], first=start, part=part)


def partition(number: int = 0) -> TopicPartition:
    return TopicPartition("orders", number)


def bench(folder: Path, **more: str) -> Bench:
    """The sink to shop.orders in a local catalog, which commits at each put; keyword ``a__b_c`` is key ``iceberg.a.b-c``."""
    properties = {
        **local_catalog(folder),
        "topics": "orders",
        "iceberg.tables": "shop.orders",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.control.commit.interval-ms": "0",
    }
    named = {f"iceberg.{key.replace('__', '.').replace('_', '-')}": value for key, value in more.items()}
    return Bench(IcebergSinkConnector, {key: value for key, value in (properties | named).items() if value})


@contextmanager
def sink(folder: Path, *partitions: int, **more: str) -> Iterator[RunningTask]:
    with bench(folder, **more).sink(*(partition(number) for number in partitions or (0,))) as running:
        yield running


def commit(running: RunningTask, *batches: RecordBatch) -> Mapping[TopicPartition, int]:
    """Put batches and commit. Returns the offsets that may be committed."""
    running.task.put(list(batches))
    running.task.put([])
    ends = {TopicPartition(*vars_of(each)): each.offsets[-1].as_py() + 1 for each in batches}
    return dict(running.task.pre_commit(ends))


def vars_of(each: RecordBatch) -> tuple[str, int]:
    assert each.origin is not None
    return each.origin.topic, each.origin.partition
