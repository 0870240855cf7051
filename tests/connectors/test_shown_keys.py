"""The information about our connectors' keys that the REST API gives to forms: permitted values, and which keys to show
with which others.
"""

from __future__ import annotations

from typing import Any

import pytest

from connect.plugins.registry import load_plugins
from connect.validation.validation import validate_connector

PLUGINS = load_plugins()


def shown_for(name: str, **settings: str) -> dict[str, Any]:
    """The answer for a connector's configuration, by key."""
    configs = {key.replace("__", "."): value for key, value in settings.items()}
    answer = validate_connector(PLUGINS, {"name": "x", "connector.class": name, **configs}, check=False).to_json()
    return {entry["value"]["name"]: entry["value"] for entry in answer["configs"]}


def test_forms_are_told_what_may_be_chosen() -> None:
    shown = shown_for("PostgresCdcSource")
    assert shown["snapshot.isolation.mode"]["recommended_values"] == [
        "serializable",
        "repeatable_read",
        "read_committed",
        "read_uncommitted",
    ]
    assert "org.apache.kafka.connect.json.JsonConverter" in shown["key.converter"]["recommended_values"]
    assert shown["errors.tolerance"]["recommended_values"] == []
    shown = shown_for("PostgresCdcSource", transforms="a", predicates="p")
    assert "io.debezium.transforms.ExtractNewRecordState" in shown["transforms.a.type"]["recommended_values"]
    predicates = "org.apache.kafka.connect.transforms.predicates."
    assert shown["predicates.p.type"]["recommended_values"] == [
        predicates + name for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
    ]


@pytest.mark.parametrize(
    ("mode", "visible"),
    [
        ("bulk", set()),
        ("incrementing", {"incrementing.column.name", "incrementing.column.mapping", "validate.non.null"}),
        ("timestamp", {"timestamp.column.name", "timestamp.columns.mapping", "validate.non.null"}),
    ],
)
def test_forms_show_the_keys_of_the_jdbc_source_s_mode(mode, visible) -> None:
    shown = shown_for("io.confluent.connect.jdbc.JdbcSourceConnector", mode=mode)
    column_keys = {name for name in shown if ".column" in name and name.startswith(("incr", "time"))} | {
        "validate.non.null"
    }
    assert {name for name in column_keys if shown[name]["visible"]} == visible


@pytest.mark.parametrize(
    ("partitioner", "visible"),
    [
        ("DefaultPartitioner", set()),
        ("FieldPartitioner", {"partition.field.name"}),
        ("DailyPartitioner", {"locale", "timezone"}),
        ("TimeBasedPartitioner", {"partition.duration.ms", "path.format", "locale", "timezone"}),
    ],
)
def test_forms_show_the_keys_of_the_partitioner(partitioner, visible) -> None:
    full = f"io.confluent.connect.storage.partitioner.{partitioner}"
    shown = shown_for("io.confluent.connect.s3.S3SinkConnector", partitioner__class=full)
    keys = {"partition.field.name", "partition.duration.ms", "path.format", "locale", "timezone"}
    assert {name for name in keys if shown[name]["visible"]} == visible


def test_forms_show_deletes_where_the_key_is_the_record_s() -> None:
    sink = "io.confluent.connect.jdbc.JdbcSinkConnector"
    assert [shown_for(sink, pk__mode=mode)["delete.enabled"]["visible"] for mode in ("none", "record_key")] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("sasl.kerberos.ticket.renew.jitter", "x", "Not a number of type DOUBLE"),
        ("sasl.login.retry.backoff.ms", "x", "Not a number of type LONG"),
        ("security.protocol", "NOPE", "String must be one of"),
        ("replication.policy.separator", "", None),
        ("ssl.protocol", "", None),
        ("sasl.no.such.key", "x", None),
    ],
)
def test_mirror_s_keys_are_judged_as_by_the_original(key: str, value: str, problem: str | None) -> None:
    """The responses of Kafka's MirrorSourceConnector 4.3.1."""
    servers = {f"{side}__cluster__bootstrap__servers": "127.0.0.1:1" for side in ("source", "target")}
    settings = {"source__cluster__alias": "a", "target__cluster__alias": "b", **servers, key.replace(".", "__"): value}
    shown = shown_for("org.apache.kafka.connect.mirror.MirrorSourceConnector", **settings)
    errors = [error for entry in shown.values() for error in entry["errors"]]
    assert len(errors) == (problem is not None)
    assert problem is None or problem in errors[0]
