"""62 connector files from public repositories are validated, and only their real errors are found."""

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


PLACEHOLDERS = {
    "$NGROK_PORT": "5432",
    "$SALESFORCE_INSTANCE_ACCOUNT2": "https://login.salesforce.com",
    "$SALESFORCE_INSTANCE": "https://login.salesforce.com",
    "$TODAY": "2024-01-02",
    "<training-endpoint-url>": "http://127.0.0.1/x",
    "data:text/plain;base64,$base64_truststore": "",
    "data:text/plain;base64,$base64_keystore": "",
}
"""The values that scripts around configurations of Confluent Cloud insert; key stores are omitted, because they cannot
be made up.
"""


@pytest.fixture(scope="module")
def plugins():
    return load_plugins()


def read(path):
    """The configuration as the REST face takes it: every scalar a text."""
    name, config = read_connector(path)
    texts = {key: value if isinstance(value, str | None) else json.dumps(value) for key, value in config.items()}
    return {"name": name, **texts}


def test_no_public_configuration_was_dropped():
    assert len(FILES) == 62


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_public_configurations_have_only_the_known_errors(path, plugins):
    config = read(path)
    judged = validate_connector(plugins, config, check=False)
    wrong = {name for name, entry in judged.entries.items() if entry.errors}
    assert wrong == WRONG.get(path.name, set()), judged.errors


CLOUD = [path for path in FILES if "." not in read(path).get("connector.class", ".")]


@pytest.mark.parametrize("path", CLOUD, ids=[path.stem for path in CLOUD])
def test_every_configuration_of_the_cloud_is_right_once_its_placeholders_are_filled(path, plugins):
    config = read(path)
    for name, value in config.items():
        for placeholder, text in PLACEHOLDERS.items():
            value = value.replace(placeholder, text)
        config[name] = value
    # Salesforce's JWT needs a key store, for which a placeholder stands.
    needs = {"salesforce.jwt.keystore.path"} if config.get("salesforce.grant.type") == "JWT_BEARER" else set()
    properties = {name: value for name, value in config.items() if value or "keystore" not in name}
    judged = validate_connector(plugins, properties, check=False)
    assert {name for name, entry in judged.entries.items() if entry.errors} == needs, judged.errors
    # The cluster and its credentials are the worker's matter.
    assert {name for name in dict(unknown_keys(judged, properties)) if not name.startswith("kafka.")} == set()


def test_no_configuration_of_the_cloud_was_dropped():
    assert len(CLOUD) == 12


def test_keys_that_nobody_reads_are_named_with_the_nearest(plugins):
    properties = {
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
    judged = validate_connector(plugins, properties, check=False)
    assert dict(unknown_keys(judged, properties)) == {
        "batch.sise": "batch.size",
        "transforms.key.includes": "transforms.key.include",
        "zebra": None,
    }


def test_keys_of_a_family_are_read(plugins):
    properties = {
        "name": "x",
        "connector.class": "MirrorHeartbeatConnector",
        "source.cluster.alias": "a",
        "target.cluster.bootstrap.servers": "127.0.0.1:1",
        "target.cluster.security.protocol": "PLAINTEXT",
        "target.admin.request.timeout.ms": "1000",
        "targets.admin.x": "1",
    }
    judged = validate_connector(plugins, properties, check=False)
    assert judged.errors == [] and dict(unknown_keys(judged, properties)) == {"targets.admin.x": None}


def test_keys_of_topics_and_those_that_converters_and_transformations_pass_on_are_read(plugins):
    properties = {
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
    judged = validate_connector(load_plugins(["connectors"]), properties, check=False)
    assert set(unknown_keys(judged, properties)) == {"topic.creation.b.retention.ms", "value.converter.jsonn"}
