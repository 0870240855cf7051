"""The Delta sink: each record once, changes by key, tables that follow the records."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars
import pyarrow as pa
import pytest

from connect.api import ConnectError, RecordBatch, Schema, SchemaType
from connect.bench import Bench
from connect.plugins.registry import load_plugins
from connect.validation.validation import validate_connector
from connectors.delta.config import DeltaSinkConfig
from connectors.delta.sink import DeltaSinkConnector
from tests.connectors.delta.records import bench, columns, found, sink, versions
from tests.connectors.iceberg.records import batch, commit, order, partition, rows
from tests.connectors.iceberg.test_changes import ENVELOPE, UPSERT, changes, event, row
from tests.servers.process import wait_until
from tests.servers.s3 import S3Server
from tests.support.buckets import bucket_on
from tests.support.delta import delta_rows, delta_table, local_warehouse
from tests.support.pages import ROOT, blocks
from tidegate.kit.config import parse

I32, I64, TEXT = Schema(SchemaType.INT32), Schema(SchemaType.INT64), Schema(SchemaType.STRING)
FOLLOW = {"tables__evolve_schema_enabled": "true"}


def ids(folder: Path, table: str = "shop.orders") -> list[int]:
    return [each["id"] for each in found(folder, table)]


def there(folder: Path) -> dict[int, Any]:
    made = found(folder)
    assert len({each["id"] for each in made}) == len(made), "each key is there once"
    return {each["id"]: each["n"] for each in made}


def test_records_arrive_as_they_are_in_their_partitions(tmp_path: Path) -> None:
    with sink(tmp_path, tables__default_partition_by="name") as running:
        assert commit(running, batch(0, 12)) == {partition(): 12}
        assert commit(running, batch(12, 15)) == {partition(): 15}
    assert found(tmp_path) == [order(n) for n in range(15)]
    table = delta_table(local_warehouse(tmp_path), "shop.orders")
    assert table.metadata().partition_columns == ["name"]
    assert versions(tmp_path) == ["WRITE", "WRITE", "CREATE TABLE"]
    by_polars = polars.read_delta(table.table_uri.removeprefix("file://")).sort("id")
    assert by_polars["price"].to_list() == [order(n)["price"] for n in range(15)]
    assert columns(tmp_path) == {
        "id": "long",
        "name": "string",
        "price": "decimal(9,2)",
        "at": "timestamp",
        "lines": "array<struct<sku: string, count: integer>>",
        "tags": "map<string, integer>",
    }


def test_each_record_is_there_once_whatever_is_interrupted(tmp_path: Path) -> None:
    """A crash before the group's commit, an old task that lives on, two tasks that meet."""
    for _ in range(3):
        with sink(tmp_path) as running:
            running.task.put([batch(running.context.rewinds.get(partition(), 0), 10)])
            running.task.put([])  # committed to the table, and killed before pre_commit
            running.task.put([batch(10, 15)])
    assert ids(tmp_path) == list(range(10))
    with sink(tmp_path, commit__interval_ms="3600000") as old:
        assert old.context.rewinds == {partition(): 9}, "the last record is read again, to see that it is the same"
        old.context.rewinds.clear()
        old.task.put([batch(9, 20)])
        with sink(tmp_path) as new, sink(tmp_path, 1) as other:
            commit(new, batch(9, 30))
            commit(other, batch(100, 110, 1))
        old.task.flush()
        assert old.context.rewinds == {partition(): 30}, "it goes on where the table is"
        commit(old, batch(30, 40))
        old.task.flush()
    assert ids(tmp_path) == [*range(40), *range(100, 110)]
    with sink(tmp_path) as running, pytest.raises(ConnectError, match="the topic was created anew"):
        running.task.put([batch(0, 50).replace(timestamps_ms=pa.array([7] * 50, pa.int64()))])


def test_offsets_are_set_and_deleted(tmp_path: Path) -> None:
    with sink(tmp_path) as running:
        commit(running, batch(0, 10))
    made = bench(tmp_path)
    named = {**made.properties, "name": running.context.connector}
    where = {"kafka_topic": "orders", "kafka_partition": 0}
    for offset, rewound in ((5, {partition(): 5}), (None, {})):
        assert DeltaSinkConnector.alter_offsets(named, [(where, None if offset is None else {"kafka_offset": offset})])
        with sink(tmp_path) as running:
            assert running.context.rewinds == rewound
    with sink(tmp_path) as running:
        commit(running, batch(8, 12))
    assert ids(tmp_path) == sorted([*range(10), *range(8, 12)])


def test_the_last_change_of_a_key_is_what_stays(tmp_path: Path) -> None:
    with sink(tmp_path, **UPSERT) as running:
        events = [
            (1, event("r", None, row(1, 1))),
            (2, event("c", None, row(2, 1))),
            (1, event("u", row(1, 1), row(1, 2))),
            (2, event("d", row(2, 1), None)),
            (2, None),
            (3, event("c", None, row(3, 1))),
        ]
        commit(running, changes(*events, schema=ENVELOPE))
        assert there(tmp_path) == {1: 2, 3: 1}
        commit(running, changes((3, None), (2, row(2, 5)), (4, None), first=6))
        assert there(tmp_path) == {1: 2, 2: 5}
        commit(running, changes((7, None), first=9))  # changes nothing, and is remembered all the same
        commit(running, changes((1, event("t", None, None)), first=10, schema=ENVELOPE))
        assert "a truncate event is not applied" in str(running.context.errant[0][1])
    with sink(tmp_path, **UPSERT) as running:
        assert running.context.rewinds == {partition(): 9}
    assert list(columns(tmp_path)) == ["id", "name", "n"]


def test_columns_may_have_any_name(tmp_path: Path) -> None:
    names = ["Order", "a b", 'we"ird', "a.b", "select"]
    schema = Schema.struct({"Id.": I64, **dict.fromkeys(names, TEXT.as_optional())})
    with sink(tmp_path, tables__default_id_columns="Id.,Order", **UPSERT) as running:
        values = [{"Id.": n, **{name: f"{name} {n}" for name in names}} for n in (1, 2)]
        commit(running, rows(values, schema))
        later = [{**values[0], "select": "new"}, {**values[1], "Order": "other"}]
        commit(running, rows(later, schema, first=2))
        assert running.context.errant == []
    twice = Schema.struct({"id": I64, "ID": I64})
    with sink(tmp_path, tables="twice") as running:
        commit(running, rows([{"id": 1, "ID": 2}], twice))
        assert "Duplicate field name" in str(running.context.errant[0][1])
    assert sorted(found(tmp_path), key=str) == sorted([later[0], values[1], later[1]], key=str)


def test_the_page_works(tmp_path: Path) -> None:
    page = ROOT / "docs/how-to/connectors/delta.md"
    shown = [json.loads(block.text.replace("/lake", f"{tmp_path}/lake")) for block in blocks(page, "json")]
    config = next(each["config"] for each in shown if each["name"] == "customers-table")
    with Bench(DeltaSinkConnector, {**config, "delta.commit.interval-ms": "0"}).sink(partition()) as running:
        commit(running, changes((1, row(1, 1)), (2, row(2, 1)), (1, None)))
    (code,) = (block.text.replace("/lake", f"{tmp_path}/lake") for block in blocks(page, "python"))
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "name 2" in printed and "name 1" not in printed


def test_random_changes_by_two_tasks_come_to_the_same_rows(tmp_path: Path) -> None:
    """The tasks' commits meet, a task is replaced in the middle, and small files are put together meanwhile."""
    chance = random.Random(1)
    expected: dict[int, int] = {}
    offsets = [0, 0]

    def some(part: int) -> RecordBatch:
        made = []
        for _ in range(chance.randint(1, 15)):
            key = chance.randrange(20) * 2 + part
            value = None if chance.random() < 0.3 else chance.randrange(1000)
            made.append((key, None if value is None else row(key, value)))
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
        offsets[part] += len(made)
        return changes(*made, first=offsets[part] - len(made), part=part)

    made = bench(tmp_path, **UPSERT)
    made.properties |= {"tidegate.compact.interval.ms": "1"}
    for _ in range(3):
        with made.sink(partition(0)) as first, made.sink(partition(1)) as second:
            for _ in range(3):
                first.task.put([some(0)])
                first.task.pre_commit({})
                second.task.put([some(1)])
            first.task.flush()
            second.task.flush()
    assert there(tmp_path) == expected


def test_small_files_are_put_together_and_old_ones_deleted(tmp_path: Path) -> None:
    made = bench(tmp_path, tables__auto_create_props__delta__targetFileSize="1000000")
    made.properties |= {"tidegate.compact.interval.ms": "1", "tidegate.vacuum.retention.hours": "1"}
    with made.sink(partition()) as running:
        for start in range(0, 50, 10):
            commit(running, batch(start, start + 10))
        orphan = tmp_path / "lake/shop/orders/orphan.parquet"
        orphan.write_bytes(b"")
        os.utime(orphan, (0, 0))

        def is_compact() -> bool:
            running.task.pre_commit({})
            return len(delta_table(local_warehouse(tmp_path), "shop.orders").file_uris()) == 1 and not orphan.exists()

        wait_until(is_compact, "one file", 60)
        commit(running, batch(50, 60))
    assert ids(tmp_path) == list(range(60))
    assert "OPTIMIZE" in versions(tmp_path)
    with sink(tmp_path) as running:
        assert running.context.rewinds == {partition(): 59}


def test_tables_follow_the_records(tmp_path: Path) -> None:
    inner = Schema.struct({"a": I32}, optional=True)
    old = Schema.struct({"id": I32, "n": Schema(SchemaType.FLOAT32), "price": Schema.decimal(2, 5), "s": inner})
    grown = Schema.struct({"a": I32, "b": TEXT.as_optional()}, optional=True)
    new = Schema.struct(
        {
            "id": I64,
            "n": Schema(SchemaType.FLOAT64),
            "price": Schema.decimal(2, 12),
            "s": grown,
            "l": Schema.array(grown, optional=True),
            "late": Schema.date(optional=True),
        }
    )
    first = {"id": 1, "n": 0.5, "price": decimal.Decimal("1.25"), "s": {"a": 1}}
    second = {
        "id": 1 << 40,
        "n": 0.1,
        "price": decimal.Decimal("12345678.25"),
        "s": {"a": 2, "b": "b"},
        "l": [{"a": 3, "b": None}, None],
        "late": datetime.date(2024, 5, 6),
    }
    more = {"tables__auto_create_props__delta__appendOnly": "false", "tables__default_partition_by": "n"}
    with sink(tmp_path, **FOLLOW, **more) as running:
        commit(running, rows([first], old))
        running.task.put([rows([{**first, "id": 2}], old, first=1), rows([second], new, first=2)])
        running.task.put([rows([{**first, "id": 3}], old, first=3)])
        running.task.flush()
        assert running.context.errant == []
        scaled = Schema.struct({"id": I64, "price": Schema.decimal(4, 12)})
        with pytest.raises(ConnectError, match="a table never changes a scale"):
            commit(running, rows([{"id": 4, "price": decimal.Decimal(1)}], scaled, first=4))
    missing = {"l": None, "late": None}
    assert found(tmp_path) == [
        *({**first, "id": n, "s": {"a": 1, "b": None}, **missing} for n in (1, 2, 3)),
        second,
    ]
    assert columns(tmp_path)["id"] == "long"
    metadata = delta_table(local_warehouse(tmp_path), "shop.orders").metadata()
    assert (metadata.partition_columns, metadata.configuration) == (["n"], {"delta.appendOnly": "false"})


def test_a_value_that_does_not_fit_is_an_error_of_its_record(tmp_path: Path) -> None:
    times = {
        "id": I64,
        "at": Schema(SchemaType.INT64, name="io.debezium.time.MicroTime", optional=True),
        "on": Schema.timestamp(optional=True),
    }
    noon = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)
    with sink(tmp_path) as running:
        commit(running, rows([{"id": 1, "at": 43_200_000_001, "on": noon}], Schema.struct(times)))
        texts = [{"id": str(n) if n != 3 else "three", "at": None, "on": None} for n in (2, 3, 4)]
        commit(running, rows(texts, Schema.struct({**times, "id": TEXT}), first=1))
        assert [record.offset for record, _ in running.context.errant] == [2]
        assert "does not fit its column, which is long" in str(running.context.errant[0][1])
    assert ids(tmp_path) == [1, 2, 4]
    assert found(tmp_path)[0] == {"id": 1, "at": "12:00:00.000001", "on": noon}, "Delta has no times of day"


def test_records_go_where_a_field_says(tmp_path: Path) -> None:
    more = {"tables": "", "tables__dynamic_enabled": "true", "tables__route_field": "name"}
    schema = Schema.struct({"id": I64, "name": TEXT})
    with sink(tmp_path, **more) as running:
        names = ["shop.A", "b", "../c", "shop.A"]
        commit(running, rows([{"id": n, "name": name} for n, name in enumerate(names)], schema))
        assert "'../c', and a table's name looks like shop.orders" in str(running.context.errant[0][1])
    assert (ids(tmp_path, "shop.a"), ids(tmp_path, "b")) == ([0, 3], [1])
    with sink(tmp_path, **more) as running:
        commit(running, rows([{"id": n, "name": name} for n, name in enumerate(names)], schema))
    assert (ids(tmp_path, "shop.a"), ids(tmp_path, "b")) == ([0, 3], [1])


def test_a_preview_writes_nothing(tmp_path: Path) -> None:
    made = bench(tmp_path, tables__default_partition_by="name", **FOLLOW)
    with made.sink(partition()) as running:
        assert list(running.task.preview([batch(0, 3)])) == [
            "create table shop.orders (id long, name string, price decimal(9,2), at timestamp, lines array<struct<sku: string, "
            "count: integer>>, tags map<string, integer>) partitioned by name",
            "append to shop.orders: 3 records",
        ]
    assert not (tmp_path / "lake").exists()


def test_a_preview_of_two_topics_creates_their_table_once(tmp_path: Path) -> None:
    optional = Schema(SchemaType.STRING, optional=True)
    two = [
        Schema.struct({"id": Schema(SchemaType.INT64)}),
        Schema.struct({"id": Schema(SchemaType.INT64), "name": optional}),
    ]
    with bench(tmp_path, **FOLLOW).sink(partition()) as running:
        batches = [rows([{"id": n} for n in range(2)], schema) for schema in two]
        assert list(running.task.preview(batches)) == [
            "create table shop.orders (id long)",
            "alter table shop.orders: name is added as string",
            "append to shop.orders: 4 records",
        ]


@pytest.mark.servers
@pytest.mark.parametrize("upsert", ["false", "true"])
def test_tables_in_s3_are_written_by_two_tasks(tmp_path: Path, s3_server: S3Server, upsert: str) -> None:
    with bucket_on(s3_server) as bucket:
        made = bench(tmp_path, tables__upsert_mode_enabled=upsert, tables__default_id_columns="id")
        made.properties |= {
            "delta.warehouse": f"s3://{bucket.name}/lake",
            "delta.storage.aws_access_key_id": s3_server.access_key,
            "delta.storage.aws_secret_access_key": s3_server.secret_key,
            "delta.storage.aws_region": s3_server.region,
            "delta.storage.aws_endpoint_url": s3_server.endpoint_url,
        }
        with made.sink(partition(0)) as first, made.sink(partition(1)) as second:
            for start in (0, 10):
                first.task.put([batch(start, start + 10, 0)])
                second.task.put([batch(start + 100, start + 110, 1)])
            first.task.flush()
            second.task.flush()
        stored = delta_rows(made.properties, "shop.orders", "id").column("id").to_pylist()
        assert sorted(stored) == [*range(20), *range(100, 120)]
        made.properties["delta.storage.aws_secret_access_key"] = "wrong"
        with pytest.raises(ConnectError) as refused, made.sink(partition(0)):
            pass
        assert "cannot load shop.orders" in str(refused.value)


@pytest.mark.parametrize(
    ("more", "key", "words"),
    [
        ({"delta.tables": ""}, "delta.tables", "has to name a table"),
        ({"delta.tables": "shop..a"}, "delta.tables", "looks like shop.orders"),
        ({"delta.warehouse": ""}, "delta.warehouse", "has to say where tables are"),
        ({"delta.warehouse": "hdfs://x/y"}, "delta.warehouse", "file:///path or s3://bucket/path"),
        ({"delta.table.a.color": "red"}, "delta.table.a.color", "is not a setting of a table"),
        ({"delta.table.a.route-regex": "("}, "delta.table.a.route-regex", "no regular expression"),
    ],
)
def test_a_wrong_configuration_is_refused(more: dict[str, str], key: str, words: str) -> None:
    given = {"delta.tables": "a", "delta.warehouse": "file:///lake", "topics": "a", "name": "a", **more}
    given = {"connector.class": "DeltaSink", **{name: value for name, value in given.items() if value}}
    entries = validate_connector(load_plugins(), given, check=False).entries
    assert words in " ".join(entries[key].errors)


def test_validation_looks_for_the_tables(tmp_path: Path) -> None:
    made = bench(tmp_path, tables__auto_create_enabled="")
    problems = list(DeltaSinkConnector.check(parse(DeltaSinkConfig, made.properties)))
    assert [(problem.key, "there is no table shop.orders at" in problem.message) for problem in problems] == [
        ("delta.tables", True)
    ]
    (tmp_path / "notes").write_text("")
    filed = parse(DeltaSinkConfig, made.properties | {"delta.warehouse": f"{tmp_path}/notes"})
    assert [problem.message for problem in DeltaSinkConnector.check(filed) if problem.key == "delta.warehouse"] == [
        f"{tmp_path}/notes can't be a folder: {tmp_path}/notes is a file"
    ]
