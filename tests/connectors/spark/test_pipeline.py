"""The Spark pipeline in a real worker: a project of ``spark-pipelines`` runs when its topic has records, and says why it fails."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer

from connect.api import ConnectError
from connect.bench import Bench
from connect.plugins.registry import load_plugins
from connect.preview import preview
from connectors.spark import pipeline
from connectors.spark.pipeline import SparkPipelineConnector, _words
from connectors.spark.pipeline_config import SparkPipelineConfig
from connectors.spark.pipeline_project import project_of
from tests.servers.process import wait_until
from tests.support.spark import connect_server, create_topic, produce
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


class Running:
    """A connector that runs the project of a transform, from a topic to another, and its worker."""

    def __init__(self, servers: str, folder: Path, remote: str) -> None:
        self.servers, self.mark = servers, uuid.uuid4().hex[:8]
        self.sales, self.totals = f"sales_{self.mark}", f"totals_{self.mark}"
        for topic in (self.sales, self.totals):
            create_topic(servers, topic, 1)
        transform = {
            "connector.class": "SparkTransform",
            "topics": self.sales,
            "spark.sql": f"SELECT value AS text FROM {self.sales}",
            "spark.value.format": "string",
            "spark.mode": "available-now",
            "spark.checkpoint.path": str(folder / "checkpoint"),
            "spark.output.topic": self.totals,
            "spark.output.value.format": "json",
        }
        texts = project_of("totals", transform, {"bootstrap.servers": servers}, "")
        for path, text in texts.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text)
        self.config = {
            "connector.class": "SparkPipeline",
            "topics": self.sales,
            "spark.pipeline.spec": str(folder / "spark-pipeline.yml"),
            "spark.remote": remote,
            "spark.conf.spark.sql.shuffle.partitions": "2",
            "job.interval.ms": "500",
        }
        self.worker = ConnectWorker(folder / "worker", servers, name=f"p{self.mark}")

    def __enter__(self) -> Running:
        self.worker.start()
        self.worker.ask("POST", "/connectors", {"name": self.mark, "config": self.config}, expect=201)
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.stop()

    def sell(self, number: int) -> None:
        produce(self.servers, self.sales, [(0, None, f"sale {number}")])

    def wait_committed(self, count: int) -> None:
        wait_until(lambda: self.offset == count, f"{count} records are committed", timeout_s=400)

    @property
    def task(self) -> Any:
        tasks = self.worker.ask("GET", f"/connectors/{self.mark}/status").get("tasks")
        return tasks[0] if tasks else {"state": "NONE"}

    @property
    def offset(self) -> int:
        offsets = self.worker.ask("GET", f"/connectors/{self.mark}/offsets").get("offsets")
        return int(offsets[0]["offset"]["kafka_offset"]) if offsets else 0

    @property
    def runs(self) -> list[psutil.Process]:
        """The processes of ``spark-pipelines``."""
        below = psutil.Process(self.worker.process.pid).children(recursive=True)
        return [process for process in below if "pipelines/cli.py" in " ".join(_command(process))]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has ended
        return []


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_project_runs_as_a_job_when_there_are_records_and_its_failure_is_told(
    tidegate_broker: Any, tmp_path: Path
) -> None:
    servers = tidegate_broker.bootstrap_servers
    with Running(servers, tmp_path, "local[1]") as running:
        for number in (1, 2):
            running.sell(number)
            running.wait_committed(number)
            assert read(servers, running.totals) == [{"text": f"sale {n}"} for n in range(1, number + 1)]
        (task,) = running.worker.ask("GET", f"/tidegate/v1/connectors/{running.mark}/progress")["tasks"]
        assert "COMPLETED" in json.dumps(task)
        code = tmp_path / "transformations/totals.py"
        code.write_text(code.read_text().replace("value AS text", "valeu AS text"))
        running.sell(3)
        wait_until(lambda: running.task["state"] == "FAILED", "the task failed", timeout_s=400)
        assert "UNRESOLVED_COLUMN" in running.task["trace"] and "valeu" in running.task["trace"]
        assert running.offset == 2
        given = running.config | {"name": running.mark}
        with pytest.raises(ConnectError, match="UNRESOLVED_COLUMN"):
            preview(load_plugins(), running.worker.properties, given, rows=1)
        code.write_text(code.read_text().replace("valeu AS text", "value AS text"))
        head, *told = preview(load_plugins(), running.worker.properties, given, rows=1).actions
        assert head == f"the project {given['spark.pipeline.spec']} by Spark on local[1]; a dry run says:"
        assert told[-1] == "Run is COMPLETED."
        assert [value["text"] for value in read(servers, running.totals)] == ["sale 1", "sale 2"]


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_run_that_is_killed_or_cancelled_is_repeated(tidegate_broker: Any, tmp_path: Path) -> None:
    servers = tidegate_broker.bootstrap_servers
    with Running(servers, tmp_path, "local[1]") as running:
        running.sell(1)
        wait_until(lambda: running.runs, "a run", timeout_s=60)
        time.sleep(1)
        running.runs[0].kill()
        running.wait_committed(1)
        running.sell(2)
        wait_until(lambda: running.runs, "another run", timeout_s=60)
        running.worker.ask("DELETE", f"/tidegate/v1/connectors/{running.mark}/run", expect=202)
        running.wait_committed(2)
        assert running.task["state"] == "RUNNING"
        # What a run had written before its end is written again by the next one.
        assert {value["text"] for value in read(servers, running.totals)} == {"sale 1", "sale 2"}
    assert not [
        process for process in psutil.process_iter() if str(tmp_path / "spark-pipeline.yml") in _command(process)
    ]


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_project_runs_on_a_connect_server(tidegate_broker: Any, tmp_path: Path) -> None:
    servers = tidegate_broker.bootstrap_servers
    with connect_server(tmp_path) as address, Running(servers, tmp_path, address) as running:
        for number in (1, 2):
            running.sell(number)
            running.wait_committed(number)
        assert read(servers, running.totals) == [{"text": "sale 1"}, {"text": "sale 2"}]


@pytest.mark.servers
def test_a_dry_run_that_takes_too_long_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_DRY_RUN_S", 0.5)
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text(f"name: late\nstorage: file://{tmp_path}/storage\nlibraries: []\n")
    given = {"connector.class": "SparkPipeline", "name": "late", "topics": "t", "spark.pipeline.spec": str(spec)}
    with pytest.raises(ConnectError, match="was cancelled"):
        list(Bench(SparkPipelineConnector, given).unstarted().preview([]))
    assert not [process for process in psutil.process_iter() if str(spec) in _command(process)]


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
