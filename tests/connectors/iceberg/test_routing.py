"""Records find their tables by a field, and rows that find none are not lost in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from connect.api import ConnectError, RecordBatch, Schema, SchemaType
from tests.connectors.iceberg.records import bench, commit, partition, rows, sink
from tests.support.iceberg import iceberg_rows, iceberg_table, local_catalog

TEXT = Schema(SchemaType.STRING)
EVENT = Schema.struct(
    {
        "id": Schema(SchemaType.INT64),
        "kind": TEXT.as_optional(),
        "meta": Schema.struct({"to": TEXT.as_optional()}, optional=True),
    }
)


def event(n: int, kind: str | None, to: str | None = None) -> dict[str, Any]:
    return {"id": n, "kind": kind, "meta": {"to": to}}


def events(*kinds: str | None, first: int = 0) -> RecordBatch:
    return rows([event(first + n, kind, kind) for n, kind in enumerate(kinds)], EVENT, first=first)


def ids(folder: Path, table: str) -> list[int]:
    return sorted(iceberg_rows(local_catalog(folder), table, "id").column("id").to_pylist())


def test_each_table_gets_every_record_without_a_field(tmp_path: Path) -> None:
    with sink(tmp_path, tables="shop.a,shop.b") as running:
        commit(running, events("x", "y"))
    assert ids(tmp_path, "shop.a") == ids(tmp_path, "shop.b") == [0, 1]


@pytest.mark.parametrize("field", ["kind", "meta.to"])
def test_expressions_choose_the_tables(tmp_path: Path, field: str) -> None:
    more = {
        "tables": "shop.a,shop.b,shop.none",
        "tables__route_field": field,
        "table__shop.a.route_regex": "a.*",
        "table__shop.b.route_regex": "(b|ab)",
    }
    with sink(tmp_path, **more) as running:
        assert commit(running, events("a", "b", "ab", "c", None, "a1")) == {partition(): 6}
    assert ids(tmp_path, "shop.a") == [0, 2, 5]
    assert ids(tmp_path, "shop.b") == [1, 2]
    assert ids(tmp_path, "shop.none") == []


@pytest.mark.parametrize("schema", [EVENT, None])
def test_a_field_names_the_table(tmp_path: Path, schema: Schema | None) -> None:
    more = {"tables": "", "tables__dynamic_enabled": "true", "tables__route_field": "kind"}
    with sink(tmp_path, **more) as running:
        values = [event(n, kind) for n, kind in enumerate(["shop.A", "shop.b", "lager.a", "plain", None])]
        commit(running, rows(values, schema))
        ((record, error),) = running.context.errant
        assert record.offset == 3 and "a table's name looks like shop.orders" in str(error)
    assert [ids(tmp_path, name) for name in ("shop.a", "shop.b", "lager.a")] == [[0], [1], [2]]


def test_a_table_that_is_not_there_is_an_error_of_the_records_that_name_it(tmp_path: Path) -> None:
    more = {"tables": "", "tables__dynamic_enabled": "true", "tables__route_field": "kind"}
    with sink(tmp_path, **more) as running:
        commit(running, events("shop.a"))
    with sink(tmp_path, tables__auto_create_enabled="", **more) as running:
        commit(running, events("shop.a", "shop.b", "shop.a", "shop.b", first=1))
        assert [record.offset for record, _ in running.context.errant] == [2, 4]
        assert all("there is no table shop.b" in str(error) for _, error in running.context.errant)
    assert ids(tmp_path, "shop.a") == [0, 1, 3]


def test_each_table_has_its_own_settings(tmp_path: Path) -> None:
    more = {
        "tables": "shop.a,shop.b",
        "table__shop.a.partition_by": "bucket(id, 2)",
        "table__shop.b.id_columns": "id",
        "tables__default_partition_by": "truncate(kind, 1)",
    }
    with sink(tmp_path, **more) as running:
        commit(running, events("x", "y"))
    a, b = (iceberg_table(local_catalog(tmp_path), name) for name in ("shop.a", "shop.b"))
    assert [str(field.transform) for field in a.spec().fields] == ["bucket[2]"]
    assert [str(field.transform) for field in b.spec().fields] == ["truncate[1]"]
    assert b.schema().identifier_field_names() == {"id"}


def test_a_kill_between_the_commits_of_two_tables_repeats_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def dies(*_: object) -> None:
        raise Killed

    with sink(tmp_path, tables="shop.a,shop.b") as running:
        commit(running, events("x", "y"))
        running.task.put([events("x", "y", first=2)])
        monkeypatch.setattr(running.task._writers["shop.b"], "commit", dies)
        with pytest.raises(Killed):
            running.task.put([])
    assert ids(tmp_path, "shop.a") == [0, 1, 2, 3] and ids(tmp_path, "shop.b") == [0, 1]
    with sink(tmp_path, tables="shop.a,shop.b") as running:
        assert running.context.rewinds == {}, "the group's offset says where to begin"
        commit(running, events("x", first=2), rows([event(100, "x")], EVENT, part=1))
        commit(running, events("y", "z", first=3))
    assert ids(tmp_path, "shop.a") == ids(tmp_path, "shop.b") == [0, 1, 2, 3, 4, 100]


def test_changes_are_routed_too(tmp_path: Path) -> None:
    more = {
        "tables": "",
        "tables__dynamic_enabled": "true",
        "tables__route_field": "kind",
        "tables__upsert_mode_enabled": "true",
        "tables__default_id_columns": "id",
    }
    with sink(tmp_path, **more) as running:
        commit(
            running, rows([event(1, "shop.a"), event(1, "shop.b"), event(2, "shop.a"), event(1, "shop.a", "z")], EVENT)
        )
    found = iceberg_rows(local_catalog(tmp_path), "shop.a").to_pylist()
    assert sorted((each["id"], each["meta"]["to"]) for each in found) == [(1, "z"), (2, None)]
    assert ids(tmp_path, "shop.b") == [1]


def test_offsets_of_all_tables_are_changed(tmp_path: Path) -> None:
    more = {"tables": "", "tables__dynamic_enabled": "true", "tables__route_field": "kind"}
    with sink(tmp_path, **more) as running:
        commit(running, events("shop.a", "shop.b", "shop.a"))
    made = bench(tmp_path, **more)
    assert made.connector_class.alter_offsets(
        made.properties, [({"kafka_topic": "orders", "kafka_partition": 0}, {"kafka_offset": 1})]
    )
    with sink(tmp_path, **more) as running:
        commit(running, events("shop.b", "shop.a", first=1))
    assert ids(tmp_path, "shop.a") == [0, 2, 2] and ids(tmp_path, "shop.b") == [1, 1]


def test_old_snapshots_expire(tmp_path: Path) -> None:
    made = bench(tmp_path)
    made.properties["tidegate.expire.snapshots.ms"] = "1"
    with made.sink(partition()) as running:
        for start in range(0, 6, 2):
            running.task._expired_at.clear()
            commit(running, rows([event(start, "a"), event(start + 1, "a")], EVENT, first=start))
    assert len(iceberg_table(local_catalog(tmp_path), "shop.orders").snapshots()) < 3
    assert ids(tmp_path, "shop.orders") == list(range(6))
    with made.sink(partition()) as running:
        assert running.context.rewinds == {partition(): 5}


def test_a_batch_fails_as_a_whole_where_a_configured_table_is_missing(tmp_path: Path) -> None:
    with sink(tmp_path, tables="shop.a", tables__auto_create_enabled="") as running, pytest.raises(ConnectError):
        running.task.put([events("x")])
