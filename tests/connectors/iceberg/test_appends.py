"""The Iceberg sink appends each record once."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connect.api import ConnectError, RecordBatch, RetriableConnectError, Schema, SchemaType
from connect.testing import Forwarder
from connectors.iceberg.config import IcebergSinkConfig
from tests.connectors.iceberg.records import ORDER, batch, bench, commit, order, partition, rows, sink
from tests.servers.s3 import S3Server
from tests.support.buckets import bucket_on
from tests.support.iceberg import duckdb_rows, iceberg_rows, iceberg_table, local_catalog
from tidegate.kit.config import parse


def ids(folder: Path, table: str = "shop.orders") -> list[int]:
    return sorted(iceberg_rows(local_catalog(folder), table, "id").column("id").to_pylist())


def test_records_arrive_as_they_are(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        assert commit(running, batch(0, 12)) == {partition(): 12}
    found = duckdb_rows(
        local_catalog(tmp_path), "shop.orders", 'SELECT id, name, price, "at", lines, tags FROM rows ORDER BY id'
    )
    assert found == [order(n) for n in range(12)]
    schema = iceberg_table(local_catalog(tmp_path), "shop.orders").schema()
    assert [(field.name, str(field.field_type), field.required) for field in schema.fields[:4]] == [
        ("id", "long", True),
        ("name", "string", False),
        ("price", "decimal(9, 2)", False),
        ("at", "timestamptz", False),
    ]


@pytest.mark.parametrize(
    ("by", "files"),
    [
        ("day(at)", 3),
        ("bucket(id, 4)", 4),
        ("truncate(name, 5)", 2),
        ("month(at), id", 12),
        ("year(at)", 1),
        ("hours(at)", 3),
    ],
)
def test_rows_are_partitioned(tmp_path: Path, by: str, files: int) -> None:
    with sink(tmp_path, tables__default_partition_by=by) as running:
        commit(running, batch(0, 12))
    table = iceberg_table(local_catalog(tmp_path), "shop.orders")
    tasks = list(table.scan().plan_files())
    assert len(tasks) == files
    assert ids(tmp_path) == list(range(12))
    assert len(table.scan(row_filter="id = 7").to_arrow()) == 1, "readers find a row by its partition"


def test_what_was_committed_is_not_written_again(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        commit(running, batch(0, 10))
        running.task.put([batch(10, 20)])  # and the worker is killed
    with sink(tmp_path) as running:
        assert running.context.rewinds == {partition(): 9}, "the last record is read again, to see that it is the same"
        commit(running, batch(9, 25))
    assert ids(tmp_path) == list(range(25))


def test_a_crash_between_the_tables_commit_and_the_groups_repeats_nothing(tmp_path: Path) -> None:
    """Iceberg's issue 17340: files committed twice after tasks restarted in a commit cycle."""
    for _ in range(3):
        with sink(tmp_path) as running:
            running.task.put([batch(running.context.rewinds.get(partition(), 0), 10)])
            running.task.put([])  # committed to the table, and killed before pre_commit
    assert ids(tmp_path) == list(range(10))
    assert len(iceberg_table(local_catalog(tmp_path), "shop.orders").snapshots()) == 1


def test_an_old_task_that_lives_on_neither_repeats_rows_nor_takes_offsets_back(tmp_path: Path) -> None:
    """Iceberg's issue 17551: a coordinator that was replaced goes on, with offsets of the past."""
    with sink(tmp_path, control__commit__interval_ms="3600000") as old:
        old.task.put([batch(0, 10)])
        with sink(tmp_path) as new:
            commit(new, batch(0, 20))
        old.task.flush()
        assert ids(tmp_path) == list(range(20))
        assert old.context.rewinds == {partition(): 20}, "it goes on where the table is"
        old.context.rewinds.clear()
        commit(old, batch(20, 30))
        old.task.flush()
    with sink(tmp_path) as new:
        assert new.context.rewinds == {partition(): 29}
    assert ids(tmp_path) == list(range(30))


def test_an_old_task_drops_what_it_is_given_while_it_goes_back(tmp_path: Path) -> None:
    made = bench(tmp_path, control__commit__interval_ms="3600000")
    made.properties["tidegate.commit.bytes"] = "1"
    with made.sink(partition()) as old:
        old.task.put([batch(0, 10)])
        with sink(tmp_path) as new:
            commit(new, batch(0, 20))
        old.task.put([batch(10, 30)])
        assert old.context.rewinds == {partition(): 20}
        old.context.rewinds.clear()
        commit(old, batch(20, 40))
    assert ids(tmp_path) == list(range(40))


def test_an_old_task_commits_no_offsets_of_rows_that_it_dropped(tmp_path: Path) -> None:
    made = bench(tmp_path, control__commit__interval_ms="3600000", tables="shop.orders,shop.more")
    made.properties["tidegate.commit.bytes"] = "1"
    with made.sink(partition()) as old:
        old.task.put([batch(0, 10)])
        with sink(tmp_path, tables="shop.orders,shop.more") as new:
            commit(new, batch(0, 5))
        assert old.task.pre_commit({partition(): 10}) == {}
        assert old.context.rewinds == {partition(): 0}, "with several tables it is the group's offset that says where"
        commit(old, batch(0, 10))
    assert ids(tmp_path) == ids(tmp_path, "shop.more") == list(range(10))


def test_tasks_share_a_table(tmp_path: Path) -> None:
    with sink(tmp_path, 0) as first, sink(tmp_path, 1) as second:
        for start in range(0, 60, 20):
            first.task.put([batch(start, start + 20)])
            second.task.put([batch(1000 + start, 1020 + start, part=1)])
            first.task.put([])
            second.task.put([])
    assert ids(tmp_path) == [*range(60), *range(1000, 1060)]
    table = iceberg_table(local_catalog(tmp_path), "shop.orders")
    last = table.current_snapshot()
    assert last is not None and last.summary is not None
    assert json.loads(last.summary["tidegate.offsets.bench"]) == {"orders": {"0": [60, 1059], "1": [1060, 2059]}}


def test_other_writers_and_expired_snapshots_do_not_hide_the_offsets(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        commit(running, batch(0, 10))
    table = iceberg_table(local_catalog(tmp_path), "shop.orders")
    own = table.current_snapshot()
    table.append(table.scan(row_filter="id = 0").to_arrow())
    table.maintenance.expire_snapshots().by_id(own.snapshot_id).commit()
    with sink(tmp_path) as running:
        assert running.context.rewinds == {partition(): 9}
        commit(running, batch(9, 12))
    assert ids(tmp_path) == [0, *range(12)]


def test_a_table_that_was_rolled_back_gets_its_rows_again(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        commit(running, batch(0, 10))
        commit(running, batch(10, 20))
        table = iceberg_table(local_catalog(tmp_path), "shop.orders")
        table.manage_snapshots().rollback_to_snapshot(table.snapshots()[0].snapshot_id).commit()
        commit(running, batch(20, 30))
        assert running.context.rewinds == {partition(): 10}
        commit(running, batch(10, 30))
    assert ids(tmp_path) == list(range(30))


def test_a_topic_that_was_created_anew_is_noticed(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        commit(running, batch(0, 10))
    with sink(tmp_path) as running, pytest.raises(ConnectError, match="the topic was created anew"):
        running.task.put([batch(0, 5)])
    with sink(tmp_path) as running, pytest.raises(ConnectError, match="the topic was created anew"):
        other = batch(9, 15)
        running.task.put([other.replace(timestamps_ms=pa_plus(other))])


def pa_plus(other: RecordBatch) -> object:
    import pyarrow.compute as pc

    return pc.add(other.timestamps_ms, 1)


def test_offsets_that_a_user_changes_count(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        commit(running, batch(0, 10))
    made = bench(tmp_path)
    change = {"kafka_topic": "orders", "kafka_partition": 0}
    assert made.connector_class.alter_offsets(made.properties, [(change, {"kafka_offset": 4})])
    with sink(tmp_path) as running:
        assert running.context.rewinds == {partition(): 4}
        commit(running, batch(4, 12))
    assert ids(tmp_path) == sorted([*range(12), *range(4, 10)])
    assert made.connector_class.alter_offsets(made.properties, [(change, None)])
    with sink(tmp_path) as running:
        assert running.context.rewinds == {}


def test_rows_wait_for_the_interval_or_the_size(tmp_path: Path) -> None:
    with sink(tmp_path, control__commit__interval_ms="3600000") as running:
        assert commit(running, batch(0, 10)) == {}
        assert ids(tmp_path) == []
        running.task.flush()
        assert ids(tmp_path) == list(range(10))
    made = bench(tmp_path, control__commit__interval_ms="3600000")
    made.properties["tidegate.commit.bytes"] = "100"
    with made.sink(partition()) as running:
        commit(running, batch(9, 20))
        assert ids(tmp_path) == list(range(20))


def test_a_stop_commits(tmp_path: Path) -> None:
    with sink(tmp_path, control__commit__interval_ms="3600000") as running:
        running.task.put([batch(0, 10)])
        running.context.stopping.set()
        assert running.task.pre_commit({partition(): 10}) == {partition(): 10}
    assert ids(tmp_path) == list(range(10))


def test_rows_of_partitions_that_leave_are_committed(tmp_path: Path) -> None:
    with sink(tmp_path, 0, 1, control__commit__interval_ms="3600000") as running:
        running.task.put([batch(0, 10), batch(100, 110, part=1)])
        running.task.close([partition(0)])
        assert ids(tmp_path) == [*range(10), *range(100, 110)]
        running.task.put([batch(110, 120, part=1)])
        running.task.flush()
    assert ids(tmp_path) == [*range(10), *range(100, 120)]


def test_partitions_that_leave_while_the_catalog_is_away_come_again_once(tmp_path: Path) -> None:
    uri = f"jdbc:sqlite:{tmp_path}/catalog.db?timeout=0.05"
    with sink(tmp_path, 0, 1, control__commit__interval_ms="3600000", catalog__uri=uri) as running:
        running.task.put([batch(0, 10), batch(100, 110, part=1)])
        running.task.flush()
        running.task.put([batch(10, 20), batch(110, 120, part=1)])
        with closing(sqlite3.connect(tmp_path / "catalog.db")) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(RetriableConnectError):
                running.task.flush()
            running.task.close([partition(0)])
        assert running.context.rewinds == {partition(1): 110}
        running.context.rewinds.clear()
        running.task.open([partition(0)])
        assert running.context.rewinds == {partition(0): 9}
        running.task.put([batch(9, 20), batch(110, 120, part=1)])
        running.task.flush()
    assert ids(tmp_path) == [*range(20), *range(100, 120)]


def test_many_rows_are_files_before_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.tables.sink._SPILL_BYTES", 1)
    more = {"control__commit__interval_ms": "3600000", "tables__write_props__write.target_file_size_bytes": "1"}
    with sink(tmp_path, **more) as running:
        for start in range(0, 30, 10):
            running.task.put([batch(start, start + 10)])
        assert ids(tmp_path) == []
        running.task.flush()
    assert ids(tmp_path) == list(range(30))
    assert len(list(iceberg_table(local_catalog(tmp_path), "shop.orders").scan().plan_files())) == 3


def test_uncommitted_files_are_deleted_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("connectors.tables.sink._SPILL_BYTES", 1)
    with sink(tmp_path, control__commit__interval_ms="3600000") as running:
        running.task.put([batch(0, 10)])
        running.task.put([])
        assert list(tmp_path.rglob("*.parquet"))
    assert not list(tmp_path.rglob("*.parquet"))


def test_manifests_are_merged(tmp_path: Path) -> None:
    with sink(tmp_path, **{"tables__auto_create_props__commit.manifest.min-count-to-merge": "5"}) as running:
        for start in range(0, 120, 10):
            commit(running, batch(start, start + 10))
    table = iceberg_table(local_catalog(tmp_path), "shop.orders")
    assert len(table.current_snapshot().manifests(table.io)) < 6
    assert ids(tmp_path) == list(range(120))


def test_a_branch_gets_the_rows(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        commit(running, batch(0, 5))
    with sink(tmp_path, tables__default_commit_branch="audit") as running:
        commit(running, batch(4, 10))
    table = iceberg_table(local_catalog(tmp_path), "shop.orders")
    assert len(table.scan().to_arrow()) == 5
    assert sorted(table.scan().use_ref("audit").to_arrow().column("id").to_pylist()) == list(range(10))


def test_json_without_a_schema_has_the_columns_of_its_values(tmp_path: Path) -> None:
    values = [{"id": 1, "name": "a", "more": {"x": 1.5}, "none": None, "list": [1, 2]}, {"id": 2, "late": True}]
    with sink(tmp_path) as running:
        commit(running, rows(values, None))
    found = iceberg_rows(local_catalog(tmp_path), "shop.orders").to_pylist()
    assert found == [
        {"id": 1, "name": "a", "more": {"x": 1.5}, "list": [1, 2], "late": None},
        {"id": 2, "name": None, "more": None, "list": None, "late": True},
    ]


def test_rows_that_do_not_fit_are_reported_and_the_others_arrive(tmp_path: Path) -> None:
    narrow = Schema.struct({"id": Schema(SchemaType.INT32), "name": Schema(SchemaType.STRING, optional=True)})
    with sink(tmp_path) as running:
        commit(running, rows([{"id": 0, "name": "a"}], narrow))
        values = [order(n) for n in range(1, 20)]
        values[7]["id"] = 1 << 40
        commit(running, rows(values, ORDER, first=1))
        (record, error), *others = running.context.errant
    assert others == [] and record.offset == 8
    assert "id is int64 and does not fit its column, which is int" in str(error)
    assert ids(tmp_path) == [n for n in range(20) if n != 8]


def test_a_value_that_is_no_struct_is_reported(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        commit(running, rows(["a", "b"], Schema(SchemaType.STRING)))
        commit(running, rows(['["a"]', {"id": 1}], None, first=2))
        assert [str(error) for _, error in running.context.errant][:1] == [
            "records of 'orders' have values that are string, and a table needs fields: use a converter whose values are structs "
            "or JSON objects, or put them into a field with HoistField"
        ]
        assert [record.offset for record, _ in running.context.errant] == [0, 1, 2]
    assert ids(tmp_path) == [1]


def test_a_missing_table_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with sink(tmp_path, tables__auto_create_enabled="false") as running:
        with pytest.raises(ConnectError, match=r"there is no table shop.orders.*auto-create-enabled=true"):
            running.task.put([batch(0, 3)])
    made = bench(tmp_path, tables__auto_create_enabled="false")
    (problem,) = made.connector_class.check(made.connector_class.config_class(**parsed(made.properties)))
    assert problem.key == "iceberg.tables"


def parsed(properties: dict[str, str]) -> dict[str, object]:
    from dataclasses import fields

    from connectors.iceberg.config import IcebergSinkConfig
    from tidegate.kit.config import parse

    config = parse(IcebergSinkConfig, properties)
    return {field.name: getattr(config, field.name) for field in fields(config)}


def test_a_preview_says_what_would_be_created(tmp_path: Path) -> None:
    task = bench(tmp_path, tables__default_partition_by="day(at)").unstarted()
    lines = list(task.preview([batch(0, 3)]))
    assert lines[0].startswith("create table shop.orders (id long not null, name string,")
    assert lines[0].endswith("partitioned by day(at)") and lines[1] == "append to shop.orders: 3 records"
    assert list(tmp_path.iterdir()) == []


def test_validation_creates_no_catalog_and_names_a_folder_that_is_not_there(tmp_path: Path) -> None:
    made = bench(tmp_path, tables__auto_create_enabled="false")
    (problem,) = made.connector_class.check(parse(IcebergSinkConfig, made.properties))
    assert "there is no table shop.orders" in problem.message and list(tmp_path.iterdir()) == []
    elsewhere = bench(tmp_path / "lake")
    (problem,) = made.connector_class.check(parse(IcebergSinkConfig, elsewhere.properties))
    assert f"the folder {tmp_path / 'lake'} of the catalog's file catalog.db does not exist" in problem.message
    (tmp_path / "notes").write_text("")
    filed = bench(tmp_path, catalog__warehouse=f"file://{tmp_path}/notes/lake")
    (problem,) = made.connector_class.check(parse(IcebergSinkConfig, filed.properties))
    assert problem.key == "iceberg.catalog.warehouse"
    assert problem.message == f"{tmp_path}/notes/lake can't be a folder: {tmp_path}/notes is a file"


@pytest.mark.servers
@pytest.mark.parametrize("changes", [False, True])
def test_a_store_that_is_away_for_a_while_neither_loses_nor_repeats_rows(
    tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, changes: bool
) -> None:
    """Files that were begun are incomplete: their rows are delivered again."""
    monkeypatch.setattr("connectors.tables.sink._SPILL_BYTES", 1)
    with bucket_on(s3_server) as bucket, Forwarder.to(s3_server.port) as forwarder:
        s3 = {
            "catalog__warehouse": f"s3://{bucket.name}/warehouse",
            "catalog__s3.endpoint": f"http://127.0.0.1:{forwarder.port}",
            "catalog__s3.access_key_id": s3_server.access_key,
            "catalog__s3.secret_access_key": s3_server.secret_key,
            "catalog__s3.region": s3_server.region,
            "control__commit__interval_ms": "3600000",
            "tables__default_id_columns": "id",
            "tables__upsert_mode_enabled": str(changes).lower(),
        }
        made = bench(tmp_path, **s3)
        with made.sink(partition()) as running:
            running.task.put([batch(0, 10)])
            running.task.flush()
            running.task.put([batch(10, 20)])
            running.task.put([])
            forwarder.cut(refuse=True)
            with pytest.raises(RetriableConnectError):
                running.task.flush()
            assert running.task.pre_commit({partition(): 20}).get(partition(), 0) <= 10
            forwarder.mend()
            running.task.flush()
            running.task.put([batch(running.context.rewinds.get(partition(), 20), 30)])
            running.task.flush()
        found = iceberg_rows(made.properties, "shop.orders", "id").column("id").to_pylist()
    assert sorted(found) == list(range(30))


@pytest.mark.servers
def test_files_in_s3(tmp_path: Path, s3_server: S3Server) -> None:
    with bucket_on(s3_server) as bucket:
        s3 = {
            "catalog__warehouse": f"s3a://{bucket.name}/warehouse",
            "catalog__io_impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "catalog__s3.endpoint": s3_server.endpoint_url,
            "catalog__s3.path_style_access": "true",
            "catalog__s3.access_key_id": s3_server.access_key,
            "catalog__s3.secret_access_key": s3_server.secret_key,
            "catalog__client.region": s3_server.region,
        }
        made = bench(tmp_path, **s3)
        with made.sink(partition()) as running:
            commit(running, batch(0, 10))
            commit(running, batch(10, 20))
        assert sorted(iceberg_rows(made.properties, "shop.orders", "id").column("id").to_pylist()) == list(range(20))
        assert sum(name.endswith(".parquet") for name in bucket.objects()) == 2
