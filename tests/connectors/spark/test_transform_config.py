"""The Spark transform's keys."""

from __future__ import annotations

import pytest

from connect.api import ConnectError
from connectors.spark.transform import SparkTransformConnector
from connectors.spark.transform_config import SparkTransformConfig
from tidegate.kit.config import validate

SQL = {"spark.sql": "SELECT * FROM sales"}
TOPIC = SQL | {"spark.output.topic": "totals"}
STREAM = TOPIC | {"spark.mode": "continuous", "spark.checkpoint.path": "/data/checkpoints/totals"}


def errors_of(given: dict[str, str]) -> dict[str, str]:
    return {judged.key.name: judged.errors[0] for judged in validate(SparkTransformConfig, given) if judged.errors}


@pytest.mark.parametrize(
    "given",
    [
        TOPIC,
        STREAM,
        SQL | {"spark.output.path": "/data/totals"},
        SQL | {"spark.output.format": "delta", "spark.output.path": "/data/totals"},
        STREAM | {"spark.watermark.column": "at", "spark.watermark.delay": "10 minutes"},
        {"spark.function": "shop.reorders:reorders", "spark.output.topic": "t", "spark.lookup.topics": "items"},
    ],
)
def test_a_transform_has_a_result_and_a_target(given: dict[str, str]) -> None:
    assert errors_of(given) == {}


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        (SQL, "spark.output.topic", "there is no target"),
        ({"spark.output.topic": "t"}, "spark.sql", "give a query, or spark.function"),
        (TOPIC | {"spark.function": "a:b"}, "spark.function", "give one of the two"),
        ({"spark.output.topic": "t", "spark.function": "a.b"}, "spark.function", "must be module:function"),
        (TOPIC | {"spark.python.path": "code"}, "spark.python.path", "'code': give absolute paths"),
        (TOPIC | {"spark.output.path": "/out"}, "spark.output.path", "give one of the two"),
        (TOPIC | {"spark.output.mode": "overwrite"}, "spark.output.mode", "can only be appended"),
        (SQL | {"spark.output.path": "/out/${topic}"}, "spark.output.path", "there is one result"),
        (SQL | {"spark.output.path": "/o", "spark.output.exactly.once": "true"}, "spark.output.exactly.once", "need no wish"),
        (TOPIC | {"spark.output.key.columns": "a,b", "spark.output.key.format": "string"}, "spark.output.key.format", "takes one"),
        (TOPIC | {"spark.checkpoint.path": "/c"}, "spark.checkpoint.path", "spark.mode is batch"),
        (TOPIC | {"spark.mode": "continuous"}, "spark.checkpoint.path", "which needs spark.checkpoint.path"),
        (STREAM | {"spark.checkpoint.path": "c"}, "spark.checkpoint.path", "give an absolute path or a URI"),
        (STREAM | {"spark.watermark.column": "at", "spark.watermark.delay": "long"}, "spark.watermark.delay", "a number and a unit"),
        (STREAM | {"spark.stream.output.mode": "complete"}, "spark.stream.output.mode", "needs spark.output.mode=overwrite"),
    ],
)  # fmt: skip
def test_what_fits_not_together_is_refused_by_the_key(given: dict[str, str], key: str, words: str) -> None:
    assert words in errors_of(given)[key]


def test_offsets_of_a_stream_are_not_set_beside_its_checkpoint() -> None:
    with pytest.raises(
        ConnectError, match="in its checkpoint, /data/checkpoints/totals: to read the topics again, delete"
    ):
        SparkTransformConnector.alter_offsets(STREAM, [])
    assert SparkTransformConnector.alter_offsets(TOPIC, []) is False
