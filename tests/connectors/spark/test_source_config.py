"""The Spark source's keys, and what the runtime refuses beside them."""

import pytest

from connect.plugins.registry import load_plugins
from connect.validation.validation import validate_connector
from connectors.spark.source import SparkSourceConnector
from connectors.spark.source_config import SparkSourceConfig
from tidegate.kit.config import parse, validate

FILES = {"spark.input.path": "/data/in", "spark.output.topic": "t"}
ICEBERG = {"spark.input.format": "iceberg", "spark.input.table": "lake.db.t", "spark.output.topic": "t"}
JDBC = {
    "spark.input.format": "jdbc",
    "spark.input.table": "orders",
    "spark.input.option.url": "jdbc:derby:x",
    "spark.output.topic": "t",
}


def errors_of(given):
    return {judged.key.name: judged.errors[0] for judged in validate(SparkSourceConfig, given) if judged.errors}


@pytest.mark.parametrize(
    "given",
    [
        FILES,
        ICEBERG,
        ICEBERG | {"spark.input.changes": "send", "spark.output.key.columns": "id"},
        {"spark.input.format": "delta", "spark.input.path": "s3a://b/t", "spark.output.topic": "t"},
        JDBC | {"spark.input.watermark.column": "id"},
        JDBC | {"spark.input.mode": "once"},
    ],
)
def test_inputs_that_spark_reads_are_taken(given):
    assert errors_of(given) == {}


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        ({"spark.output.topic": "t"}, "spark.input.path", "give spark.input.path, the folder"),
        (FILES | {"spark.input.path": "data"}, "spark.input.path", "give an absolute path or a URI"),
        (FILES | {"spark.input.table": "t"}, "spark.input.table", "give one of the two"),
        (FILES | {"spark.input.format": "excel"}, "spark.input.format", "excel"),
        (FILES | {"spark.input.changes": "skip"}, "spark.input.changes", "only incremental loads of iceberg and delta"),
        (FILES | {"spark.output.topic": ""}, "spark.output.topic", ""),
        (ICEBERG | {"spark.input.table": "t"}, "spark.input.table", "catalog.namespace.table"),
        (ICEBERG | {"spark.input.schema": "id INT"}, "spark.input.schema", "is for files"),
        (ICEBERG | {"spark.input.changes": "send"}, "spark.output.key.columns", "the columns that tell rows apart"),
        (JDBC, "spark.input.mode", "give spark.input.watermark.column, or spark.input.mode 'once' or 'snapshot'"),
        (JDBC | {"spark.input.mode": "once", "spark.input.watermark.column": "id"}, "spark.input.watermark.column", "which is once"),
        (JDBC | {"spark.input.option.url": ""}, "spark.input.format", "give spark.input.option.url"),
        (FILES | {"spark.output.key.columns": "a,b", "spark.output.key.format": "string"}, "spark.output.key.format", "takes one"),
    ],
)  # fmt: skip
def test_what_can_not_be_loaded_is_refused_by_the_key(given, key, words):
    assert words in errors_of(given)[key]


def test_transforms_converters_and_a_wrong_schedule_are_refused():
    given = FILES | {
        "name": "load",
        "connector.class": "SparkSource",
        "transforms": "a",
        "transforms.a.type": "ReplaceField$Value",
        "value.converter": "JsonConverter",
        "job.schedule": "at night",
        "job.max.records": "5",
    }
    infos = validate_connector(load_plugins(), given)
    errors = {name: entry.errors for name, entry in infos.entries.items() if entry.errors}
    for name in ("transforms", "value.converter"):
        assert "the engine of this source writes its records itself" in errors[name][-1]
    assert "not a cron expression" in errors["job.schedule"][0]
    assert not infos.entries.get("job.max.records")


@pytest.mark.parametrize(("wish", "supported"), [("true", True), ("false", False)])
def test_exactly_once_support_is_what_the_key_says(wish, supported):
    config = parse(SparkSourceConfig, FILES | {"spark.output.exactly.once": wish})
    assert SparkSourceConnector.exactly_once(config) is supported
