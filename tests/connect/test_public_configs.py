"""Connector files of public repositories (62 of them): each is judged, and only what is really wrong is found wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from connect.plugins.registry import load_plugins
from connect.validation.unknown_keys import unknown_keys
from connect.validation.validation import validate_connector
from tidegate.cli.connectors import read_connector

FILES = sorted((Path(__file__).parent / "public_configs").glob("*.json"))
WRONG = {
    "034.json": {"connection.port"},  # a placeholder of a shell stands there
    "046.json": {"transforms.mongoflatten.type"},  # of Debezium's connector for MongoDB
    "055.json": {"slot.name", "topic.prefix", "table.include.list"},  # placeholders of a template
    "058.json": {"database.dbname", "database.hostname", "database.user", "topic.prefix"},  # says nothing but the class
    "082.json": {"database.port"},  # a placeholder of a shell stands there
    "112.json": {
        f"s3.credentials.provider.sts.aws.{key}" for key in ("access.key.id", "secret.key.id")
    },  # of a class of its own
    "121.json": {"hive.integration"},
    "124.json": {"hive.integration"},
    "127.json": {"hive.integration"},
    "172.json": {"source.cluster.alias"},  # says nothing but the class
    "181.json": {"http.api.url"},  # a placeholder stands there
    "136.json": {"salesforce.instance"},  # a placeholder of a shell stands there
    "139.json": {"salesforce.instance"},
    "184.json": {"https.ssl.truststorefile"},  # a placeholder of a shell stands there
    "142.json": {"salesforce.instance"},
    "145.json": {"salesforce.instance"},
    "148.json": {"salesforce.instance"},
    "151.json": {"salesforce.instance", "salesforce.since"},
    "154.json": {"salesforce.instance", "since"},
}
"""Keys that are rightly found fault with."""


@pytest.fixture(scope="module")
def plugins():
    return load_plugins()


def read(path):
    """The configuration as the REST face takes it: every scalar a text."""
    name, config = read_connector(path)
    texts = {key: value if isinstance(value, str | None) else json.dumps(value) for key, value in config.items()}
    return {"name": name, **texts}


def test_there_are_as_many_as_were_found():
    assert len(FILES) == 62


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_it_is_judged(path, plugins):
    config = read(path)
    judged = validate_connector(plugins, config, check=False)
    wrong = {name for name, entry in judged.entries.items() if entry.errors}
    assert wrong == WRONG.get(path.name, set()), judged.errors


def test_keys_that_nobody_reads_are_named_with_the_nearest(plugins):
    given = {
        "name": "x",
        "connector.class": "FileStreamSource",
        "topic": "t",
        "batch.sise": "10",
        "transforms": "key",
        "transforms.key.type": "org.apache.kafka.connect.transforms.ReplaceField$Value",
        "transforms.key.whitelist": "a",
        "transforms.key.includes": "a",
        "producer.override.linger.ms": "5",
        "zebra": "stripes",
    }
    judged = validate_connector(plugins, given, check=False)
    assert dict(unknown_keys(judged, given)) == {
        "batch.sise": "batch.size",
        "transforms.key.includes": "transforms.key.include",
        "zebra": None,
    }


def test_keys_of_a_family_are_read(plugins):
    given = {
        "name": "x",
        "connector.class": "MirrorHeartbeatConnector",
        "source.cluster.alias": "a",
        "target.cluster.bootstrap.servers": "127.0.0.1:1",
        "target.cluster.security.protocol": "PLAINTEXT",
        "target.admin.request.timeout.ms": "1000",
        "targets.admin.x": "1",
    }
    judged = validate_connector(plugins, given, check=False)
    assert judged.errors == [] and dict(unknown_keys(judged, given)) == {"targets.admin.x": None}


def test_keys_of_topics_and_those_that_converters_and_transformations_pass_on_are_read(plugins):
    given = {
        "name": "x",
        "connector.class": "FileStreamSource",
        "topic": "t",
        "topic.creation.groups": "a",
        "topic.creation.a.include": "t",
        "topic.creation.a.replication.factor": "1",
        "topic.creation.a.partitions": "1",
        "topic.creation.a.cleanup.policy": "compact",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.retention.ms": "1",
        "topic.creation.b.retention.ms": "1",
        "value.converter": "io.debezium.converters.CloudEventsConverter",
        "value.converter.json.schemas.enable": "false",
        "value.converter.jsonn": "false",
        "transforms": "chunks",
        "transforms.chunks.type": "io.debezium.connector.postgresql.transforms.timescaledb.TimescaleDb",
        "transforms.chunks.database.hostname": "127.0.0.1",
    }
    judged = validate_connector(load_plugins(["connectors"]), given, check=False)
    assert set(unknown_keys(judged, given)) == {"topic.creation.b.retention.ms", "value.converter.jsonn"}
