"""Configurations as people write them for Iceberg's own sink are understood, or refused with a sentence."""

from __future__ import annotations

import pytest

from connect.plugins.registry import load_plugins
from connect.validation.unknown_keys import unknown_keys
from connect.validation.validation import validate_connector
from connectors.iceberg.catalog_properties import catalog_properties
from connectors.iceberg.config import IcebergSinkConfig
from connectors.iceberg.partition_fields import PartitionField, parse_partition_field, split_fields
from tidegate.kit.config import parse

PLUGINS = load_plugins()
REST = {
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "http://127.0.0.1:1",
    "iceberg.catalog.warehouse": "lake",
}
BASE = {
    "name": "x",
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "topics": "orders",
    "iceberg.tables": "shop.orders",
}


def judged(change: dict[str, str], catalog: dict[str, str] = REST) -> tuple[dict[str, list[str]], set[str]]:
    config = {**BASE, **catalog, **change}
    config = {name: value for name, value in config.items() if value}
    infos = validate_connector(PLUGINS, config, check=False)
    return {name: entry.errors for name, entry in infos.entries.items() if entry.errors}, set(
        dict(unknown_keys(infos, config))
    )


@pytest.mark.parametrize("name", ["org.apache.iceberg", "io.tabular.iceberg"])
def test_a_configuration_of_the_original_is_right(name: str) -> None:
    config = {
        "connector.class": f"{name}.connect.IcebergSinkConnector",
        "tasks.max": "2",
        "iceberg.tables": "db.a,db.b",
        "iceberg.tables.route-field": "type",
        "iceberg.table.db.a.route-regex": "a.*",
        "iceberg.table.db.a.id-columns": "id, region",
        "iceberg.table.db.b.route-regex": "b.*",
        "iceberg.table.db.b.partition-by": "days(ts), bucket(id, 16)",
        "iceberg.table.db.b.commit-branch": "audit",
        "iceberg.tables.auto-create-props.format-version": "2",
        "iceberg.tables.write-props.write.parquet.compression-codec": "zstd",
        "iceberg.catalog": "lake",
        "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "iceberg.catalog.s3.path-style-access": "true",
        "iceberg.catalog.s3.secret-access-key": "s",
        "iceberg.hadoop.fs.s3a.endpoint": "http://127.0.0.1:1",
        "iceberg.hadoop-conf-dir": "/etc/hadoop/conf",
        "iceberg.control.topic": "control",
        "iceberg.control.commit.timeout-ms": "60000",
        "iceberg.control.commit.threads": "4",
        "iceberg.kafka.auto.offset.reset": "earliest",
    }
    assert judged(config) == ({}, set())
    settings = parse(IcebergSinkConfig, {**BASE, **REST, **config})
    assert settings.settings("db.a").id_columns == ("id", "region") and settings.settings("db.a").branch == "main"
    assert settings.settings("db.b").partition_by == ("days(ts)", "bucket(id, 16)")
    assert settings.settings("db.b").branch == "audit"


REFUSED = [
    ({"iceberg.tables": ""}, "iceberg.tables has to name a table"),
    ({"iceberg.tables": "orders"}, "it should look like shop.orders"),
    ({"iceberg.tables.dynamic-enabled": "true"}, "exclude one another"),
    ({"iceberg.tables": "", "iceberg.tables.dynamic-enabled": "true"}, "needs iceberg.tables.route-field"),
    ({"iceberg.catalog.type": "hadoop"}, "no commit that is safe"),
    ({"iceberg.catalog.catalog-impl": "org.apache.iceberg.nessie.NessieCatalog"}, "set type=rest"),
    ({"iceberg.catalog.type": "mine"}, "there are rest, jdbc"),
    ({"iceberg.catalog.uri": ""}, "needs iceberg.catalog.uri"),
    ({"iceberg.catalog.type": "jdbc", "iceberg.catalog.warehouse": ""}, "needs iceberg.catalog.warehouse"),
    ({"iceberg.catalog.type": "jdbc"}, "it should look like jdbc:postgresql"),
    ({"iceberg.catalog.io-impl": "com.example.MyFileIO"}, "cannot be loaded here"),
    ({"iceberg.catalog.py-catalog-impl": "os.system"}, "names Python code"),
    ({"iceberg.tables.write-props.write.py-location-provider.impl": "a.b"}, "names Python code"),
    ({"iceberg.table.shop.orders.id-column": "id"}, "these are route-regex, id-columns, partition-by, commit-branch"),
    ({"iceberg.table.shop.orders.route-regex": "("}, "is no regular expression"),
    ({"iceberg.tables.default-partition-by": "week(at)"}, "there is no transform week: take bucket, day,"),
    ({"iceberg.tables.default-partition-by": "bucket(id)"}, "bucket takes a column and a positive number"),
]


@pytest.mark.parametrize(("change", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_is_refused_with_a_sentence(change: dict[str, str], words: str) -> None:
    wrong, _ = judged(change)
    assert words in " ".join(error for errors in wrong.values() for error in errors)


def test_catalogs_are_given_to_pyiceberg_in_its_form() -> None:
    assert catalog_properties(
        {"catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog", "client.region": "eu-west-1"}, {}
    ) == {
        "type": "glue",
        "client.region": "eu-west-1",
        "s3.region": "eu-west-1",
    }
    jdbc = {
        "type": "jdbc",
        "uri": "jdbc:postgresql://h:5432/c",
        "jdbc.user": "a@b",
        "jdbc.password": "p:w",
        "warehouse": "s3://w",
    }
    assert catalog_properties(jdbc, {"fs.s3a.endpoint": "minio:9000", "fs.s3a.access.key": "k", "fs.other": "x"}) == {
        "type": "sql",
        "uri": "postgresql+psycopg://a%40b:p%3Aw@h:5432/c",
        "warehouse": "s3://w",
        "s3.endpoint": "https://minio:9000",
        "s3.access-key-id": "k",
    }
    assert catalog_properties({"uri": "http://c", "s3.path-style-access": "false"}, {}) == {
        "type": "rest",
        "uri": "http://c",
        "s3.force-virtual-addressing": "true",
    }
    assert catalog_properties({"type": "jdbc", "uri": "jdbc:sqlite:/a/b.db"}, {})["uri"] == "sqlite:////a/b.db"
    local = {"type": "sql", "uri": "sqlite:////a/b.db", "warehouse": "file:///a/w"}
    assert catalog_properties(local, {}) == local | {"py-io-impl": "connectors.iceberg.local_files.SyncedFileIO"}


def test_partition_fields() -> None:
    assert split_fields("day(at), bucket(id, 16) ,region") == ["day(at)", "bucket(id, 16)", "region"]
    assert parse_partition_field("hours(at)") == PartitionField("hour", "at")
    assert parse_partition_field("truncate(name, 4)") == PartitionField("truncate", "name", 4)
    assert parse_partition_field("a.b") == PartitionField("identity", "a.b")
