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
