"""The Iceberg sink writes to tables of a REST catalog, Iceberg's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.connectors.iceberg.records import batch, bench, commit, partition, rows
from tests.servers.iceberg import IcebergRestServer
from tests.support.iceberg import duckdb_rows, iceberg_rows, iceberg_table

pytestmark = pytest.mark.servers


def on_rest(server: IcebergRestServer, namespace: str, **more: str) -> dict[str, str]:
    named = {"catalog__catalog_impl": "", "catalog__type": "rest", "catalog__uri": server.url, "catalog__warehouse": ""}
    return {**named, "tables": f"{namespace}.orders", **more}


def test_tasks_append_once(iceberg_rest: IcebergRestServer, tmp_path: Path) -> None:
    made = bench(tmp_path, **on_rest(iceberg_rest, "appended", tables__default_partition_by="day(at), bucket(id, 2)"))
    with made.sink(partition(0)) as first, made.sink(partition(1)) as second:
        for start in range(0, 30, 10):
            first.task.put([batch(start, start + 10)])
            second.task.put([batch(100 + start, 110 + start, part=1)])
            first.task.put([])
            second.task.put([])
    with made.sink(partition(0), partition(1)) as again:
        assert again.context.rewinds == {partition(0): 29, partition(1): 129}
    ids = iceberg_rows(made.properties, "appended.orders", "id").column("id").to_pylist()
    assert sorted(ids) == [*range(30), *range(100, 130)]
    assert len(duckdb_rows(made.properties, "appended.orders", "SELECT * FROM rows")) == 60


def test_rows_are_changed_and_the_schema_follows(iceberg_rest: IcebergRestServer, tmp_path: Path) -> None:
    more = {
        "tables__upsert_mode_enabled": "true",
        "tables__default_id_columns": "id",
        "tables__evolve_schema_enabled": "true",
    }
    made = bench(tmp_path, **on_rest(iceberg_rest, "changed", **more))
    with made.sink(partition()) as running:
        commit(running, rows([{"id": n, "name": "a"} for n in range(5)], None))
        commit(running, rows([{"id": 3, "name": "b", "late": 1.5}], None, first=5))
        assert running.context.errant == []
    found = iceberg_rows(made.properties, "changed.orders").to_pylist()
    assert sorted((each["id"], each["name"], each["late"]) for each in found) == [
        *((n, "a", None) for n in range(3)),
        (3, "b", 1.5),
        (4, "a", None),
    ]
    table = iceberg_table(made.properties, "changed.orders")
    assert [str(field.field_type) for field in table.schema().fields] == ["long", "string", "double"]
