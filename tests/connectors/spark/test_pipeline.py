"""The Spark pipeline in a real worker: a project of ``spark-pipelines`` runs when its topic has records, and says why it fails."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from connectors.spark.pipeline import SparkPipelineConnector, _words
from connectors.spark.pipeline_config import SparkPipelineConfig
from connectors.spark.pipeline_project import project_of
from tests.servers.process import wait_until
from tests.support.spark import create_topic, produce
from tests.support.worker import ConnectWorker
from tidegate.kit.config import parse, validate


def test_keys_and_what_is_missing_are_named(tmp_path: Path) -> None:
    def errors_of(given: dict[str, str]) -> list[str]:
        return [error for judged in validate(SparkPipelineConfig, given) for error in judged.errors]

    assert "give an absolute path" in errors_of({"spark.pipeline.spec": "spark-pipeline.yml"})[0]
    assert "spark://host" in errors_of({"spark.pipeline.spec": "/a.yml", "spark.remote": "spark://host:7077"})[0]
    missing = parse(SparkPipelineConfig, {"spark.pipeline.spec": str(tmp_path / "none.yml")})
    assert "there is no such file here" in next(iter(SparkPipelineConnector.check(missing))).message
    (tmp_path / "spark-pipeline.yml").write_text("name: p\n")
    there = parse(SparkPipelineConfig, {"spark.pipeline.spec": str(tmp_path / "spark-pipeline.yml")})
    assert list(SparkPipelineConnector.check(there)) == []


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_project_runs_as_a_job_when_there_are_records_and_its_failure_is_told(
    tidegate_broker: Any, tmp_path: Path
) -> None:
    servers, mark = tidegate_broker.bootstrap_servers, uuid.uuid4().hex[:8]
    sales, totals = f"sales_{mark}", f"totals_{mark}"
    for topic in (sales, totals):
        create_topic(servers, topic, 1)
    transform = {
        "connector.class": "SparkTransform",
        "topics": sales,
        "spark.sql": f"SELECT value AS text FROM {sales}",
        "spark.value.format": "string",
        "spark.mode": "available-now",
        "spark.checkpoint.path": str(tmp_path / "checkpoint"),
        "spark.output.topic": totals,
        "spark.output.value.format": "json",
    }
    texts = project_of("totals", transform, {"bootstrap.servers": servers}, "")
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    worker = ConnectWorker(tmp_path / "worker", servers, name=f"p{mark}")
    worker.start()
    try:
        config = {
            "connector.class": "SparkPipeline",
            "topics": sales,
            "spark.pipeline.spec": str(tmp_path / "spark-pipeline.yml"),
            "spark.remote": "local[1]",
            "spark.conf.spark.sql.shuffle.partitions": "2",
            "job.interval.ms": "500",
        }
        worker.ask("POST", "/connectors", {"name": mark, "config": config}, expect=201)
        for number in (1, 2):
            produce(servers, sales, [(0, None, f"sale {number}")])
            wait_until(lambda n=number: offset(worker, mark) == n, f"run {number} is committed", timeout_s=400)
            assert read(servers, totals) == [{"text": f"sale {n}"} for n in range(1, number + 1)]
        (task,) = worker.ask("GET", f"/tidegate/v1/connectors/{mark}/progress")["tasks"]
        assert "COMPLETED" in json.dumps(task)
        code = tmp_path / "transformations/totals.py"
        code.write_text(code.read_text().replace("value AS text", "valeu AS text"))
        produce(servers, sales, [(0, None, "sale 3")])
        wait_until(lambda: task_of(worker, mark)["state"] == "FAILED", "the task failed", timeout_s=400)
        assert "UNRESOLVED_COLUMN" in task_of(worker, mark)["trace"] and "valeu" in task_of(worker, mark)["trace"]
        assert offset(worker, mark) == 2
    finally:
        worker.stop()


def task_of(worker: ConnectWorker, name: str) -> Any:
    tasks = worker.ask("GET", f"/connectors/{name}/status").get("tasks")
    return tasks[0] if tasks else {"state": "NONE"}


def offset(worker: ConnectWorker, name: str) -> int:
    offsets = worker.ask("GET", f"/connectors/{name}/offsets").get("offsets")
    return int(offsets[0]["offset"]["kafka_offset"]) if offsets else 0


def read(servers: str, topic: str) -> list[Any]:
    """The values of a topic, to its end."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest", "enable.partition.eof": True})  # fmt: skip
    consumer.subscribe([topic])
    values: list[Any] = []
    while True:
        message = consumer.poll(30)
        assert message is not None, f"nothing comes from {topic}"
        if message.error() is not None:
            break  # its end
        values.append(json.loads(message.value()))
    consumer.close()
    return values


def test_the_cause_of_a_failure_is_told_and_not_the_line_before_it() -> None:
    lines = [
        "pyspark.errors.exceptions.connect.SparkConnectGrpcException: <_InactiveRpcError of RPC that terminated with:",
        "\tstatus = StatusCode.INTERNAL",
        "org.apache.spark.sql.AnalysisException: Failed to create a data source: Traceback (most recent call last):",
        '  File "/srv/broker/client/cluster.py", line 34, in check',
        "broker.errors.UnknownTopicOrPartition: topic totals: This broker has no such topic or partition.",
        " SQLSTATE: 38000",
    ]
    assert (
        _words(lines)
        == "broker.errors.UnknownTopicOrPartition: topic totals: This broker has no such topic or partition."
    )
    assert _words(["nothing", "that names an error"]) == "that names an error"
