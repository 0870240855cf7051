"""Configurations of Confluent's managed connectors: their formats choose converters, ``after.state.only`` a transformation."""

from __future__ import annotations

import json
import sqlite3
import uuid

import pytest

from broker.client import ClientConfig
from broker.client.blocking import BatchConsumer
from connect.api import PluginType
from connect.config.cloud_keys import with_cloud_keys
from connect.plugins.registry import load_plugins
from connect.preview import preview
from connect.validation.validation import validate_connector
from tests.servers.process import wait_until
from tests.support.worker import ConnectWorker

AVRO = "io.confluent.connect.avro.AvroConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"
SOURCE, SINK = PluginType.SOURCE, PluginType.SINK


@pytest.fixture(scope="module")
def plugins():
    return load_plugins()


@pytest.mark.parametrize(
    ("kind", "config", "more"),
    [
        (SOURCE, {"output.data.format": "AVRO"}, {"value.converter": AVRO}),
        (SINK, {"data.format": "AVRO"}, {"value.converter": AVRO}),
        (SINK, {"data.format": "AVRO", "input.data.format": "STRING"}, {"value.converter": STRING}),
        (SOURCE, {"output.key.format": "string"}, {"key.converter": STRING}),
        (SOURCE, {"output.data.format": "JSON"}, {"value.converter": JSON, "value.converter.schemas.enable": "false"}),
        (
            SOURCE,
            {"output.data.format": "JSON", "value.converter.schemas.enable": "true"},
            {"value.converter": JSON},
        ),
        (SOURCE, {"output.data.format": "AVRO", "value.converter": JSON}, {}),
        (SOURCE, {"input.data.format": "AVRO"}, {}),  # S3's source: the objects' format
        (SINK, {"output.data.format": "AVRO"}, {}),  # S3's sink: likewise
        (
            SINK,
            {"input.data.format": "AVRO", "input.key.format": "STRING"},
            {"value.converter": AVRO, "key.converter": STRING},
        ),
        (SOURCE, {"output.data.format": "BSON"}, {}),
        (SOURCE, {"after.state.only": "false"}, {}),
        (SOURCE, {"connector.class": "MySqlCdcSource"}, {}),
        (SOURCE, {"connector.class": "MySqlCdcSourceV2", "kafka.api.key": "k"}, {}),
        (SOURCE, {"connector.class": "MySqlCdcSource", "kafka.api.key": "k", "after.state.only": "false"}, {}),
        (
            SOURCE,
            {"connector.class": "MySqlCdcSource", "kafka.api.key": "k"},
            {"transforms": "unwrap", "transforms.unwrap.type": UNWRAP},
        ),
        (
            SOURCE,
            {"connector.class": "PostgresCdcSource", "kafka.service.account.id": "sa-1"},
            {"transforms": "unwrap", "transforms.unwrap.type": UNWRAP},
        ),
        (SOURCE, {"after.state.only": "TRUE"}, {"transforms": "unwrap", "transforms.unwrap.type": UNWRAP}),
        (
            SOURCE,
            {"after.state.only": "true", "transforms": "a, b"},
            {"transforms": "unwrap,a,b", "transforms.unwrap.type": UNWRAP},
        ),
        (SOURCE, {"after.state.only": "true", "transforms": "unwrap", "transforms.unwrap.type": "own"}, {}),
    ],
)
def test_keys_stand_for_others(kind, config, more):
    assert with_cloud_keys(config, kind) == {**config, **more}


def test_a_format_that_there_is_not_is_found_fault_with(plugins):
    config = {"name": "x", "connector.class": "FileStreamSource", "topic": "t", "output.data.format": "XML"}
    judged = validate_connector(plugins, config, check=False)
    wrong = {name: entry.errors for name, entry in judged.entries.items() if entry.errors}
    assert list(wrong) == ["output.data.format"] and "JSON_SR" in wrong["output.data.format"][0]


@pytest.mark.parametrize(
    ("written", "part"), [("AVRO", '"record"'), ("JSON_SR", '"object"'), ("PROTOBUF", 'syntax = "proto3"')]
)
def test_a_format_with_a_registry_makes_its_schema(plugins, tmp_path, written, part):
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.execute("create table orders (id integer primary key, country text)")
        shop.execute("insert into orders values (1, 'de')")
    config = {
        "name": "shop",
        "connector.class": "PostgresSource",
        "connection.url": f"jdbc:sqlite:{tmp_path}/shop.db",
        "mode": "bulk",
        "topic.prefix": "shop_",
        "output.data.format": written,
        "output.key.format": "STRING",
    }
    seen = preview(plugins, {}, config, rows=1)
    assert [(s.subject, part in s.text) for s in seen.schemas] == [("shop_orders-value", True)]


def test_changes_arrive_as_rows(tidegate_broker, tmp_path):
    worker = ConnectWorker(tmp_path / "worker", tidegate_broker.bootstrap_servers, name=f"c{uuid.uuid4().hex[:8]}")
    worker.start()
    shop = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    try:
        shop.execute("create table orders (id integer primary key, country text)")
        shop.execute("insert into orders values (1, 'de')")
        prefix = f"p{uuid.uuid4().hex[:8]}"
        properties = {
            "database.path": str(tmp_path / "shop.db"),
            "topic.prefix": prefix,
            "poll.interval.ms": "10",
            "output.data.format": "JSON",
            "output.key.format": "JSON",
            "after.state.only": "true",
            "value.converter.schemas.enable": "true",
        }
        worker.create(
            "shop",
            connector_class="SqliteCdcSource",
            **{k.replace(".", "_"): v for k, v in properties.items()},
        )
        config = ClientConfig(tidegate_broker.bootstrap_servers, {"auto.offset.reset": "earliest"})
        with BatchConsumer(config) as consumer:
            consumer.assign([(f"{prefix}.main.orders", 0)])
            values = []

            def arrived(count):
                values.extend((r.key, r.value) for part in consumer.fetch(200) for r in part.records())
                return len(values) >= count

            wait_until(lambda: arrived(1), "the snapshot")
            shop.execute("update orders set country = 'fr'")
            shop.execute("delete from orders")
            wait_until(lambda: arrived(3), "the changes")
        rows = [value and json.loads(value)["payload"] for _, value in values]
        assert rows == [{"id": 1, "country": "de"}, {"id": 1, "country": "fr"}, None]
        assert {json.loads(key)["id"] for key, _ in values} == {1}
        shown = worker.ask("GET", "/connectors/shop/config", expect=200)
        assert (
            {k: shown[k] for k in properties} == properties
            and "transforms" not in shown
            and "value.converter" not in shown
        )
    finally:
        shop.close()
        worker.stop()
