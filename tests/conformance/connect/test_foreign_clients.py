"""Clients of Kafka Connect's REST API by other authors, with all their calls, against our worker."""

from __future__ import annotations

import os
import subprocess
import uuid

import pytest
from kafka_connect import KafkaConnect
from requests import HTTPError

from tests.servers.fetch import require
from tests.servers.fixtures import or_skip
from tests.servers.java import QUICK, java
from tests.servers.process import wait_until
from tests.support.worker import ConnectWorker

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture(scope="module")
def worker(tidegate_broker, tmp_path_factory):
    made = ConnectWorker(
        tmp_path_factory.mktemp("worker"), tidegate_broker.bootstrap_servers, name=f"f{uuid.uuid4().hex[:8]}"
    )
    made.start()
    yield made
    made.stop()


def test_kafka_connect_py(worker, tmp_path):
    client = KafkaConnect(worker.url)
    (tmp_path / "lines").write_text("one\n")
    config = {"connector.class": SOURCE, "file": str(tmp_path / "lines"), "topic": "lines-of-clients", "tasks.max": "1"}

    def state(name, *expected):
        def shown():
            try:
                status = client.get_connector_status(name)
            except HTTPError:  # none yet
                return []
            return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]

        wait_until(lambda: shown() == list(expected), f"{name} {expected}")

    assert client.get_cluster_info()["version"] == "4.3.1"
    for name in ("py-a", "py-b"):
        assert client.create_connector({"name": name, "config": config})["name"] == name
    with pytest.raises(HTTPError, match="409"):
        client.create_connector({"name": "py-a", "config": config})
    for name in ("py-a", "py-b"):
        state(name, "RUNNING", "RUNNING")
    assert client.list_connectors() == ["py-a", "py-b"]
    assert client.list_connectors(pattern="py-b", state="running") == ["py-b"]
    assert (
        set(client.list_connectors(expand="status")) == set(client.list_connectors(expand="info")) == {"py-a", "py-b"}
    )
    assert client.update_connector("py-a", {**config, "batch.size": "7"})["config"]["batch.size"] == "7"
    assert client.get_connector("py-a")["type"] == "source"
    assert client.get_connector_config("py-a") == {**config, "batch.size": "7", "name": "py-a"}
    assert client.list_connector_tasks("py-a")[0]["id"] == {"connector": "py-a", "task": 0}
    state("py-a", "RUNNING", "RUNNING")
    assert client.get_connector_task_status("py-a", 0)["state"] == "RUNNING"
    client.restart_connector_task("py-a", 0)
    assert client.restart_connector("py-a") is None
    assert client.restart_connector("py-a", include_tasks=True)["connector"]["state"] == "RESTARTING"
    state("py-a", "RUNNING", "RUNNING")
    client.restart_all_connectors(include_tasks=True, only_failed=True)
    for change, now in ((client.pause_connector, "PAUSED"), (client.resume_connector, "RUNNING")):
        change("py-a")
        state("py-a", now, now)
    for change_all, now in ((client.pause_all_connectors, "PAUSED"), (client.resume_all_connectors, "RUNNING")):
        change_all(pattern="py-.*")
        state("py-b", now, now)
    wait_until(lambda: client.list_connector_topics("py-a") == {"py-a": {"topics": ["lines-of-clients"]}}, "its topic")
    client.reset_connector_topics("py-a")
    assert client.list_connector_topics("py-a") == {"py-a": {"topics": []}}
    client.stop_connector("py-a")
    client.stop_all_connectors(pattern="py-b")
    for name in ("py-a", "py-b"):
        state(name, "STOPPED")
    assert SOURCE in {plugin["class"] for plugin in client.list_connector_plugins()}
    wrong = client.validate_connector_config("FileStreamSource", {"connector.class": SOURCE, "name": "x"})
    assert wrong["error_count"] == 1
    client.delete_connector("py-a")
    with pytest.raises(HTTPError, match="404"):
        client.get_connector("py-a")
    client.delete_all_connectors()
    assert client.list_connectors() == []


@pytest.mark.servers
def test_sourcelabs_java_client(worker, tmp_path):
    folder, program = or_skip(lambda: (require("connect-java").absolute(), java()))
    (tmp_path / "lines").write_text("one\n")
    path = f"{folder}/classes{os.pathsep}{folder}/libs/*"
    command = [program, *QUICK, "-cp", path, "ConnectCalls", worker.url, str(tmp_path / "lines")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    *wrong, last = done.stdout.splitlines()
    assert wrong == []
    assert last == "checked 34, wrong 0"
