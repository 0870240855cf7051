"""The Delta sink's task on the bench, for the records of the Iceberg sink's tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from connect.bench import Bench, RunningTask
from connectors.delta.sink import DeltaSinkConnector
from tests.connectors.iceberg.records import partition
from tests.support.delta import delta_rows, delta_table, local_warehouse

__all__ = ["bench", "columns", "found", "sink", "versions"]


def bench(folder: Path, **more: str) -> Bench:
    """The sink to shop.orders, which commits at each put; keyword ``a__b_c`` is key ``delta.a.b-c``."""
    properties = {
        **local_warehouse(folder),
        "topics": "orders",
        "delta.tables": "shop.orders",
        "delta.tables.auto-create-enabled": "true",
        "delta.commit.interval-ms": "0",
    }
    named = {f"delta.{key.replace('__', '.').replace('_', '-')}": value for key, value in more.items()}
    return Bench(DeltaSinkConnector, {key: value for key, value in (properties | named).items() if value})


@contextmanager
def sink(folder: Path, *partitions: int, **more: str) -> Iterator[RunningTask]:
    with bench(folder, **more).sink(*(partition(number) for number in partitions or (0,))) as running:
        yield running


def found(folder: Path, table: str = "shop.orders") -> list[dict[str, Any]]:
    rows = delta_rows(local_warehouse(folder), table).to_pylist(maps_as_pydicts="strict")
    return sorted(rows, key=lambda row: str(row.get("id")).zfill(9))


def columns(folder: Path, table: str = "shop.orders") -> dict[str, str]:
    from connectors.delta.schemas import kind_of

    fields = delta_table(local_warehouse(folder), table).schema().fields
    return {field.name: kind_of(field.type) for field in fields}


def versions(folder: Path, table: str = "shop.orders") -> list[str]:
    """The operations of a table's versions, the newest first."""
    return [each["operation"] for each in delta_table(local_warehouse(folder), table).history()]
