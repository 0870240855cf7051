"""``tidegate connectors`` against Kafka Connect of the original and against ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.platform import tidegate, until

SOURCE = "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector"


@pytest.fixture(params=["original", "ours"])
def worker(request: pytest.FixtureRequest, judges: tuple[str, str]) -> str:
    return judges[request.param == "ours"]


@pytest.fixture
def name(worker: str, judges: tuple[str, str], tmp_path: Path, apache_kafka: Any) -> str:
    """A running source."""
    name = f"beats-{judges.index(worker)}"
    bootstrap = apache_kafka.bootstrap_servers
    config = {
        "connector.class": SOURCE,
        "source.cluster.alias": "a",
        "target.cluster.alias": f"b{judges.index(worker)}",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "emit.heartbeats.interval.seconds": "1",
        "heartbeats.topic.replication.factor": "1",
        "producer.override.ssl.key.password": "hunter22",
    }
    (tmp_path / f"{name}.json").write_text(json.dumps(config))
    said = tidegate("connectors", "apply", tmp_path / f"{name}.json", "--wait", "--connect", worker)
    assert said.stdout.endswith(f"{name} runs, 1 task\n")
    return name


def shown(worker: str, *arguments: Any) -> Any:
    return json.loads(tidegate("connectors", *arguments, "--json", "--connect", worker).stdout)


def test_looking_at_a_connector(worker: str, name: str) -> None:
    until(lambda: shown(worker, "topics", name)["topics"] == ["heartbeats"], "a record")
    until(lambda: shown(worker, "show", name)["offsets"], "a committed offset")
    told = shown(worker, "show", name)
    assert (told["type"], told["class"], told["state"], told["error"]) == ("source", SOURCE, "RUNNING", None)
    assert told["config"]["producer.override.ssl.key.password"] == "[hidden]"
    assert [task["state"] for task in told["tasks"]] == ["RUNNING"]
    assert tidegate("connectors", "show", name, "--connect", worker).stdout.startswith(f"{name}  source  {SOURCE}")
    assert shown(worker, "status", name)["connector"]["state"] == "RUNNING"
    assert shown(worker, "list")[name]["status"]["type"] == "source"
    assert "emit.heartbeats.enabled" in [key["name"] for key in shown(worker, "help", "MirrorHeartbeatConnector")]


def test_offsets_and_restarts(worker: str, name: str) -> None:
    until(lambda: shown(worker, "offsets", "get", name)["offsets"], "a committed offset")
    assert shown(worker, "restart", name) == [{"name": name, "restarted": ["connector", "task 0"]}]
    # Kafka Connect shows states of before for a moment, and those of a restart that is under way as restarted.
    nothing = [{"name": name, "restarted": []}]
    until(lambda: shown(worker, "restart", name, "--failed") == nothing, "nothing that has failed")
    until(lambda: shown(worker, "status", name)["tasks"][0]["state"] == "RUNNING", "the task runs again")
    assert shown(worker, "restart", name, "--task", "0") == [{"name": name, "restarted": ["task 0"]}]
    (before,) = shown(worker, "offsets", "get", name)["offsets"]
    done = shown(worker, "offsets", "reset", name, "--stop", "--execute")
    assert (done["executed"], done["changes"][0]["partition"]) == (True, before["partition"])
    until(
        lambda: [t["state"] for t in shown(worker, "status", name)["tasks"]] == ["RUNNING"], "the connector runs again"
    )


def test_files_of_connectors(worker: str, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    tidegate("connectors", "export", name, "--output", folder, "--connect", worker)
    assert tidegate("connectors", "diff", folder, "--connect", worker).stdout == f"{name}: same\n"
    document = json.loads((folder / f"{name}.json").read_text())
    document["config"]["emit.heartbeats.interval.seconds"] = 2
    (folder / f"{name}.json").write_text(json.dumps(document))
    changed = tidegate("connectors", "diff", folder, "--connect", worker, check=False)
    assert (changed.returncode, changed.stdout) == (
        1,
        f"{name}: changed\n  - emit.heartbeats.interval.seconds = 1\n  + emit.heartbeats.interval.seconds = 2\n",
    )
    tidegate("connectors", "apply", folder, "--connect", worker)
    (folder / f"{name}.json").unlink()
    done = tidegate("connectors", "apply", folder, "--prune", "--yes", "--connect", worker)
    assert done.stdout == f"{name} deleted\n"


def test_loggers(worker: str) -> None:
    levels = json.loads(tidegate("loggers", "list", "--json", "--connect", worker).stdout)
    assert "root" in levels
    done = json.loads(tidegate("loggers", "set", "org.example", "DEBUG", "--json", "--connect", worker).stdout)
    assert done["changed"] == ["org.example"]
    assert json.loads(tidegate("loggers", "list", "org.ex", "--json", "--connect", worker).stdout) == {
        "org.example": "DEBUG"
    }
