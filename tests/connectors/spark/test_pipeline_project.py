"""A transform as a project of ``spark-pipelines``; tests/pyspark_tidegate/test_pipelines.py runs one."""

from __future__ import annotations

import pytest

from connectors.spark.pipeline_project import project_of
from tidegate.kit.errors import UsageError

KAFKA = {"bootstrap.servers": "127.0.0.1:9092"}
STREAM = {
    "connector.class": "SparkTransform",
    "topics": "shop.sales",
    "spark.sql": "SELECT window.start AS at, count(*) AS n FROM shop_sales GROUP BY window(at, '1 hour')",
    "spark.mode": "continuous",
    "spark.checkpoint.path": "/data/sales",
    "spark.output.topic": "totals",
    "spark.watermark.column": "at",
    "spark.watermark.delay": "10 minutes",
    "spark.conf.spark.sql.shuffle.partitions": "2",
}


def test_a_project_has_the_views_the_query_and_the_sink() -> None:
    texts = project_of("sales-by-hour", STREAM, KAFKA, "")
    spec, code = texts["spark-pipeline.yml"], texts["transformations/sales_by_hour.py"]
    assert 'storage: "file:///data/sales-pipeline"' in spec and '"spark.sql.shuffle.partitions": "2"' in spec
    compile(code, "sales_by_hour.py", "exec")
    assert '.select("value.*").withWatermark("at", "10 minutes")' in code and "FROM STREAM shop_sales" in code
    assert "table_of" not in code and "schema.registry.url" not in code


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"connector.class": "SparkSink"}, "is a SparkSink: a SparkTransform can"),
        ({"spark.mode": "batch", "spark.checkpoint.path": None, "spark.watermark.column": None}, "spark.mode is batch"),
        ({"topics": None}, "topics is missing"),
        ({"spark.sql": None, "spark.function": "shop:sold"}, "spark.function is set"),
        ({"spark.output.topic": None, "spark.output.path": "/out"}, "spark.output.topic is missing"),
        ({"spark.output.exactly.once": "true"}, "spark.output.exactly.once is true"),
        ({"topics": "shop.sales,more"}, "there are 2 topics"),
        ({"transforms": "drop"}, "transforms is set, and a project has nothing like it"),
        ({"errors.tolerance": "all"}, "errors.tolerance is set"),
        ({"spark.max.offsets.per.trigger": "10"}, "spark.max.offsets.per.trigger is set"),
        ({"spark.output.kee.columns": "at"}, "spark.output.kee.columns is set"),
    ],
)
def test_what_a_project_has_nothing_like_is_refused_by_its_key(given: dict[str, str | None], words: str) -> None:
    connector = {key: value for key, value in (STREAM | given).items() if value is not None}
    with pytest.raises(UsageError, match=words):
        project_of("sales-by-hour", connector, KAFKA, "")
