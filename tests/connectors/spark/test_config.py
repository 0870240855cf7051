"""The Spark sink's keys."""

import pytest

from connectors.spark.config import SparkSinkConfig
from tidegate.kit.config import parse, validate


@pytest.mark.parametrize("path", ["/data/${topic}", "file:///data", "s3a://bucket/data", "hdfs://host/data"])
def test_a_path_that_spark_finds_from_anywhere_is_taken(path):
    assert parse(SparkSinkConfig, {"spark.output.path": path}).path == path


@pytest.mark.parametrize("path", ["data", "./data", "../data/x:y"])
def test_a_path_relative_to_a_job_s_scratch_folder_is_refused(path):
    errors = {judged.key.name: judged.errors for judged in validate(SparkSinkConfig, {"spark.output.path": path})}
    assert "give an absolute path or a URI" in errors["spark.output.path"][0]


def test_a_number_of_files_and_a_size_of_files_exclude_each_other():
    given = {"spark.output.path": "/out", "spark.output.files": "2", "spark.output.file.bytes": "1000"}
    errors = {judged.key.name: judged.errors for judged in validate(SparkSinkConfig, given)}
    assert "give one of the two" in errors["spark.output.file.bytes"][0]


def errors_of(**given):
    named = {name.replace("__", "."): value for name, value in given.items()}
    return {judged.key.name: judged.errors[0] for judged in validate(SparkSinkConfig, named) if judged.errors}


ICEBERG = {"spark.output.format": "iceberg", "spark.output.table": "lake.db.t"}
DELTA = {"spark.output.format": "delta", "spark.output.path": "/data/t"}


@pytest.mark.parametrize(
    "given", [ICEBERG, DELTA, {"spark.output.format": "iceberg", "spark.output.path": "hdfs://h/data/t"}]
)
def test_a_table_has_a_name_or_a_path(given):
    assert errors_of(**given) == {}


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        ({"spark.output.format": "parquet"}, "spark.output.path", "is missing"),
        (DELTA | {"spark.output.table": "t"}, "spark.output.table", "give one of the two"),
        (ICEBERG | {"spark.output.table": "db.t"}, "spark.output.table", "catalog.namespace.table"),
        (ICEBERG | {"spark.output.format": "orc"}, "spark.output.table", "the format iceberg or delta"),
        ({"spark.output.format": "iceberg", "spark.output.path": "s3a://b/t"}, "spark.output.path", "give spark.output.table"),
        (DELTA | {"spark.output.partition.by": "days(at)"}, "spark.output.partition.by", "Delta takes columns"),
        (DELTA | {"spark.output.mode": "upsert"}, "spark.output.mode", "upsert"),
        (DELTA | {"spark.output.mode": "merge"}, "spark.merge.keys", "nothing says which rows are the same"),
        ({"spark.output.path": "/out", "spark.output.mode": "merge"}, "spark.output.mode", "needs a table"),
        (DELTA | {"spark.maintenance.schedule": "at night"}, "spark.maintenance.schedule", "cron"),
        (DELTA | {"spark.key.format": "json"}, "spark.key.schema", "needs spark.key.schema"),
        (DELTA | {"spark.master": "sc://h:15002"}, "spark.master", "which Spark Connect does not give"),
        (DELTA | {"spark.output.option.x": "1"}, "spark.output.format", "spark.table.property"),
    ],
)  # fmt: skip
def test_what_a_table_can_not_be_is_refused_by_the_key(given, key, words):
    assert words in errors_of(**given)[key]
