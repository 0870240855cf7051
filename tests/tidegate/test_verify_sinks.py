"""``tidegate verify sink``: what sinks wrote to tables and files, with their topics."""

from __future__ import annotations

import datetime
import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from broker.client import ClientConfig, NewTopic, TopicPartition
from broker.client.blocking import Admin, BatchProducer
from connect.api import Record, RecordBatch, Schema, SchemaType
from connect.plugins.registry import load_plugins
from connect.task.assembly import converter
from tests.support.delta import delta_table
from tests.support.iceberg import iceberg_table, local_catalog
from tests.support.platform import until
from tests.support.registry import RegistryThread
from tests.support.worker import ConnectWorker
from tidegate.cli import tidegate

I64, TEXT = Schema(SchemaType.INT64), Schema(SchemaType.STRING)
KEY = Schema.struct({"id": I64}, name="shop.Key")
ORDER = Schema.struct(
    {
        "id": I64,
        "name": TEXT.as_optional(),
        "price": Schema(SchemaType.FLOAT64, optional=True),
        "at": Schema.timestamp(optional=True),
        "day": Schema.date(optional=True),
        "photo": Schema(SchemaType.BYTES, optional=True),
        "small": Schema(SchemaType.FLOAT32, optional=True),
        "good": Schema(SchemaType.BOOLEAN, optional=True),
    },
    name="shop.Order",
    optional=True,
)
AVRO, PROTOBUF, JSON_SCHEMA = (
    "io.confluent.connect.avro.AvroConverter",
    "io.confluent.connect.protobuf.ProtobufConverter",
    "io.confluent.connect.json.JsonSchemaConverter",
)


def order(n: int, **more: Any) -> dict[str, Any]:
    return {
        "id": n,
        "name": None if n % 7 == 0 else f"näme {n}",
        "price": n / 3,
        "at": datetime.datetime(2026, 1, 1 + n % 28, 3, 4, 5, 678_000, tzinfo=datetime.UTC),
        "day": datetime.date(2026, 2, 1 + n % 28),
        "photo": bytes([n % 256, 0, 255]),
        "small": n / 3,
        "good": n % 2 == 0,
    } | more


class Stack:
    """A worker, a registry and topics; connectors get the converters that a topic was filled with."""

    def __init__(self, worker: ConnectWorker, servers: str, registry: str) -> None:
        self.worker, self.servers, self.registry = worker, servers, registry
        self._plugins = load_plugins()

    def fill(
        self, topic: str, values: Sequence[tuple[int, dict[str, Any] | None]], kind: str = AVRO, *, keyed: bool = True
    ) -> None:
        made = {"bootstrap.servers": self.servers, "schema.registry.url": self.registry}
        config = {"key.converter": kind, "value.converter": kind}
        records = [
            Record(topic, value, ORDER, key={"id": key} if keyed else None, key_schema=KEY if keyed else None)
            for key, value in values
        ]
        batch = RecordBatch.from_records(records)
        columns = []
        for is_key, column, schema in ((True, batch.keys, KEY), (False, batch.values, ORDER)):
            with closing(converter(self._plugins, made, config, is_key=is_key, connector="filling")) as encoder:
                columns.append(
                    encoder.from_connect(topic, schema, column).to_pylist()
                    if column is not None
                    else [None] * len(records)
                )
        with Admin(ClientConfig(self.servers)) as admin, BatchProducer(ClientConfig(self.servers)) as producer:
            admin.create_topics([NewTopic(topic, 2)], exist_ok=True)
            for (key, _), raw_key, raw_value in zip(values, *columns, strict=True):
                producer.enqueue(topic, raw_key, raw_value, partition=key % 2)
            producer.flush()

    def sink(self, name: str, topic: str, kind: str = AVRO, **config: str) -> None:
        """Create a sink, and wait until it has committed all of its topic."""
        self.worker.ask(
            "POST",
            "/connectors",
            {
                "name": name,
                "config": {
                    "topics": topic,
                    **{f"{side}.converter": kind for side in ("key", "value")},
                    **{f"{side}.converter.schema.registry.url": self.registry for side in ("key", "value")},
                    **config,
                },
            },
            expect=201,
        )
        self.wait(name, topic)

    def wait(self, name: str, topic: str) -> None:
        with Admin(ClientConfig(self.servers)) as admin:
            partitions = [TopicPartition(topic, number) for number in (0, 1)]
            ends = admin.end_offsets(partitions)

            def committed() -> bool:
                offsets = admin.group_offsets(f"connect-{name}")
                return all(offsets.get(each, 0) == ends[each] for each in partitions)

            until(committed, f"{name}: {self.worker.state(name)}")

    def verify(self, name: str, *options: str) -> tuple[int, dict[str, Any]]:
        result = CliRunner().invoke(tidegate, ["verify", "sink", name, *self.where, *options, "--json"])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, json.loads(result.stdout[result.stdout.index("{\n") :])

    def told(self, name: str, *options: str) -> str:
        return CliRunner().invoke(tidegate, ["verify", "sink", name, *self.where, *options]).output

    @property
    def where(self) -> tuple[str, ...]:
        return ("--connect", self.worker.url, "--bootstrap-servers", self.servers, "--registry", self.registry)


@pytest.fixture(scope="module")
def stack(tidegate_broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("verify-sinks")
    with RegistryThread() as registry:
        worker = ConnectWorker(
            folder, tidegate_broker.bootstrap_servers, {"schema.registry.url": registry.url}, name="verify-sinks"
        )
        worker.start()
        try:
            yield Stack(worker, tidegate_broker.bootstrap_servers, registry.url)
        finally:
            worker.stop()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a home without a platform."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEGATE_CONTEXTS", str(tmp_path / "contexts.json"))


CHANGES: list[tuple[int, dict[str, Any] | None]] = [
    *((n, order(n)) for n in range(60)),
    *((n, order(n, price=-1.5)) for n in range(0, 60, 3)),
    *((n, None) for n in range(0, 60, 10)),
]
"""54 rows remain."""


@pytest.mark.proof
def test_a_table_of_jdbc_with_upserts_and_deletes(stack: Stack, tmp_path: Path) -> None:
    name, kind = "vs-jdbc", PROTOBUF
    stack.fill(name, CHANGES, kind)
    stack.sink(
        name,
        name,
        kind,
        **{
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "connection.url": f"jdbc:sqlite:{tmp_path}/sink.db",
            "table.name.format": "orders",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
            "auto.create": "true",
        },
    )
    status, told = stack.verify(name)
    assert (status, told["keys"], told["differing"], told["changing"]) == (0, [54, 54], 0, 0), told
    with closing(sqlite3.connect(tmp_path / "sink.db", isolation_level=None)) as database:
        database.execute("UPDATE orders SET name = 'x', price = price + 1 WHERE id = 4")
        database.execute("DELETE FROM orders WHERE id = 5")
        database.execute(
            "INSERT INTO orders SELECT 1005, name, price, at, day, photo, small, good FROM orders WHERE id = 6"
        )
    status, told = stack.verify(name, "--ranges", "3")
    assert (status, told["differing"]) == (1, 3)
    assert told["differences"] == [
        {"part": "orders", "key": '{"id":1005}', "kind": "only left"},
        {"part": "orders", "key": '{"id":4}', "kind": "value", "columns": ["name", "price"]},
        {"part": "orders", "key": '{"id":5}', "kind": "only right"},
    ]
    assert [(each["first"], each["last"], each["differing"]) for each in told["ranges"]] == [
        (1, 21, 2),
        (22, 41, 0),
        (42, 1005, 1),
    ]
    assert stack.verify(name, "--key-from", "10", "--key-to", "20")[0] == 0
    assert stack.verify(name, "--key-from", "5", "--key-to", "5")[1]["differing"] == 1
    assert "other name, price" in stack.told(name)
    stack.worker.ask("PUT", f"/connectors/{name}/pause")
    stack.worker.wait_for(name, connector="PAUSED", task0="PAUSED")
    stack.fill(name, [(4, order(4, price=9.0)), (2000, order(2000))], kind)
    status, told = stack.verify(name)
    assert (status, told["differing"], told["changing"]) == (1, 2, 1), "records that wait may be written at any time"
    with Admin(ClientConfig(stack.servers)) as admin:
        admin.delete_records({TopicPartition(name, 1): 1})
    told = stack.verify(name)[1]
    assert ([each["kind"] for each in told["differences"]], told["shortened"]) == (["only right"], [f"{name}-1"])


def test_a_topic_that_ends_before_the_sinks_position_is_told_at_once(stack: Stack, tmp_path: Path) -> None:
    name = "vs-anew"
    stack.fill(name, CHANGES)
    stack.sink(
        name,
        name,
        **{
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "connection.url": f"jdbc:sqlite:{tmp_path}/sink.db",
            "pk.mode": "record_key",
            "delete.enabled": "true",
            "insert.mode": "upsert",
            "auto.create": "true",
            "tidegate.offsets.table": "offsets",
        },
    )
    stack.worker.ask("PUT", f"/connectors/{name}/pause")
    stack.worker.wait_for(name, connector="PAUSED", task0="PAUSED")
    with Admin(ClientConfig(stack.servers)) as admin:
        admin.delete_topics([name])
        admin.create_topics([NewTopic(name, 2)])
    result = CliRunner().invoke(tidegate, ["verify", "sink", name, *stack.where])
    assert "and the topic ends at 0: it was deleted and made again" in str(result.exception)


@pytest.mark.proof
def test_tables_of_iceberg_and_delta_that_follow_changes_or_append(stack: Stack, tmp_path: Path) -> None:
    topic = "vs-tables"
    stack.fill(topic, CHANGES, JSON_SCHEMA)
    iceberg = {
        **local_catalog(tmp_path),
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "iceberg.tables": "shop.orders",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.control.commit.interval-ms": "100",
    }
    delta = {
        "connector.class": "tidegate.delta.DeltaSinkConnector",
        "delta.warehouse": f"file://{tmp_path}/lake",
        "delta.tables": "shop.orders",
        "delta.tables.auto-create-enabled": "true",
        "delta.commit.interval-ms": "100",
    }
    stack.sink("vs-iceberg", topic, JSON_SCHEMA, **iceberg)
    status, told = stack.verify("vs-iceberg")
    assert (status, told["keys"], told["changing"], told["targets"]) == (0, [54, 54], 0, ["shop.orders"]), told
    table = iceberg_table(iceberg, "shop.orders")
    wrong = table.scan(row_filter="id = 4").to_arrow()
    table.overwrite(wrong.set_column(wrong.column_names.index("name"), "name", [["x"]]).cast(wrong.schema), "id = 4")
    table.delete("id = 5")
    status, told = stack.verify("vs-iceberg")
    assert (status, [(d["key"], d["kind"], d.get("columns")) for d in told["differences"]]) == (
        1,
        [('{"id":4}', "value", ["name"]), ('{"id":5}', "only right", None)],
    )

    stack.sink("vs-delta", topic, JSON_SCHEMA, **delta)
    status, told = stack.verify("vs-delta")
    assert (status, told["changing"], told["records"]) == (0, 0, len(CHANGES)), told
    assert stack.verify("vs-delta", "--key", "id")[1]["keys"] == [60, 60]
    lake = delta_table(delta, "shop.orders")
    lake.update(predicate="id = 7", updates={"day": "NULL"})
    twice = lake.to_pyarrow_table(filters=[("id", "=", 8)])
    from deltalake import write_deltalake

    write_deltalake(lake, twice, mode="append")
    status, told = stack.verify("vs-delta", "--key", "id")
    assert (status, told["differences"]) == (
        1,
        [
            {"part": "shop.orders", "key": '{"id":7}', "kind": "value", "columns": ["day"]},
            {"part": "shop.orders", "key": '{"id":8}', "kind": "count", "counts": [2, 1]},
        ],
    )
    assert stack.verify("vs-delta")[1]["differing"] == 3  # a row of 7 is missing, another is too much, 8 is there twice


@pytest.mark.proof
def test_files_of_a_sink_with_keys_and_tombstones(stack: Stack, tmp_path: Path) -> None:
    topic = "vs-files"
    stack.fill(topic, CHANGES)
    stack.sink(
        "vs-files",
        topic,
        **{
            "connector.class": "tidegate.local.LocalSinkConnector",
            "store.url": f"file://{tmp_path}/files",
            "format.class": "io.confluent.connect.s3.format.parquet.ParquetFormat",
            "flush.size": "7",
            "rotate.schedule.interval.ms": "100",
            "timezone": "UTC",
            "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
            "partition.field.name": "good",
            "behavior.on.null.values": "write",
            "store.kafka.keys": "true",
        },
    )
    status, told = stack.verify("vs-files")
    assert (status, told["changing"], told["targets"]) == (0, 0, ["vs-files-0", "vs-files-1"]), told
    file = next(path for path in sorted((tmp_path / "files").rglob("*.parquet")) if "good=true" in str(path))
    rows = pq.ParquetFile(file).read()
    pq.write_table(rows.set_column(rows.column_names.index("price"), "price", [[0.5] * len(rows)]), file)
    status, told = stack.verify("vs-files", "--key", "id", "-n", "1")
    assert (status, told["differing"]) == (1, len(rows))
    for options in ((), ("--ranges", "1")):  # by sums and then by rows, and by rows alone
        status, told = stack.verify("vs-files", *options)
        assert (status, told["differing"], told["keys"], told["records"]) == (1, 2 * len(rows), [86, 86], 86), told
        assert {each["kind"] for each in told["differences"]} == {"only left", "only right"}
    shutil.copy(file, file.with_name(file.name.replace("+0+", "+0+9")))
    assert stack.verify("vs-files", "--key", "id", "-n", "1")[1]["differing"] == len(rows)
    stack.worker.ask("PUT", "/connectors/vs-files/pause")
    config = stack.worker.ask("GET", "/connectors/vs-files/config")
    config = {name: value for name, value in config.items() if not name.endswith("schema.registry.url")}
    stack.worker.ask("PUT", "/connectors/vs-files/config", config)
    where = ["--connect", stack.worker.url, "--bootstrap-servers", stack.servers, "--registry", "http://127.0.0.1:1"]
    nowhere = CliRunner().invoke(tidegate, ["verify", "sink", "vs-files", *where])
    assert "http://127.0.0.1:1" in str(nowhere.exception) and "--registry" in str(nowhere.exception), nowhere


@pytest.mark.proof
def test_tables_are_compared_with_topics_of_protobuf_and_json_schema(stack: Stack, tmp_path: Path) -> None:
    """The other direction, a table and its topic, with these converters."""
    for kind in (PROTOBUF, JSON_SCHEMA):
        name = f"vs_tables_{kind.split('.')[3]}"
        topic = TopicPartition(f"{name}.main.orders", 0)

        def verified(name: str = name) -> tuple[int, dict[str, Any]]:
            result = CliRunner().invoke(tidegate, ["verify", "tables", name, *stack.where, "--settle", "0.2", "--json"])
            assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
            return result.exit_code, json.loads(result.stdout[result.stdout.index("{\n") :])

        with (
            closing(sqlite3.connect(tmp_path / f"{name}.db", isolation_level=None)) as database,
            Admin(ClientConfig(stack.servers)) as admin,
        ):
            database.execute("PRAGMA journal_mode = wal")
            database.execute(
                "CREATE TABLE orders (id INTEGER PRIMARY KEY, price DECIMAL(8, 2), at TIMESTAMP, data BLOB, name TEXT, "
                "good BOOLEAN)"
            )
            for n in range(20):
                row = [n, n + 0.25, None if n % 3 == 0 else f"n{n}", n % 2]
                database.execute("INSERT INTO orders VALUES (?, ?, '2026-01-02 03:04:05', x'00ff', ?, ?)", row)
            stack.worker.ask(
                "POST",
                "/connectors",
                {
                    "name": name,
                    "config": {
                        "connector.class": "tidegate.sqlite.SqliteCdcSourceConnector",
                        "database.path": str(tmp_path / f"{name}.db"),
                        "topic.prefix": name,
                        **{f"{side}.converter": kind for side in ("key", "value")},
                        **{f"{side}.converter.schema.registry.url": stack.registry for side in ("key", "value")},
                    },
                },
                expect=201,
            )

            def read(admin: Any = admin, topic: TopicPartition = topic) -> bool:
                return topic.topic in admin.list_topics() and admin.end_offsets([topic])[topic] >= 20

            until(read, "the snapshot")
            status, told = verified()
            assert (status, told["keys"], told["differing"]) == (0, [20, 20], 0), told
            stack.worker.ask("PUT", f"/connectors/{name}/stop")
            stack.worker.wait_for(name, connector="STOPPED")
            database.execute("UPDATE orders SET name = 'other' WHERE id = 7")
            status, told = verified()
            assert (status, [(d["key"], d["kind"]) for d in told["differences"]]) == (1, [('{"id":7}', "value")])
