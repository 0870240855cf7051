"""The calls of kcctl and of Strimzi's operator according to their sources (KafkaConnectApi of both): these clients can
work with the responses of Kafka Connect and of ours.

Each call is made with the client's own path, headers and definition of success.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
import requests

from tests.servers.process import answer_when, wait_until
from tests.support.worker import ConnectWorker, settled

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
ACCEPT = {"Accept": "application/json"}
BODY = {**ACCEPT, "Content-Type": "application/json"}


@pytest.fixture(scope="module")
def ours(apache_kafka, tmp_path_factory):
    worker = ConnectWorker(tmp_path_factory.mktemp("worker"), apache_kafka.bootstrap_servers, name="operators")
    worker.start()
    yield worker.url
    worker.stop()


@pytest.fixture(params=["kafka-connect", "tidegate"])
def url(request):
    return (
        request.getfixturevalue("ours")
        if request.param == "tidegate"
        else request.getfixturevalue("apache_connect").url
    )


@pytest.fixture
def name(url):
    made = f"o-{uuid.uuid4().hex[:8]}"
    yield made
    requests.delete(f"{url}/connectors/{made}", timeout=60)


class Client:
    """Asks again while workers share out work (409), as both clients do."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, method: str, path: str, body: Any = None, *, ok: tuple[int, ...] = (200,)) -> Any:
        data = None if body is None else json.dumps(body)
        headers = ACCEPT if body is None else BODY

        def once() -> requests.Response:
            return requests.request(method, self.url + path, data=data, headers=headers, timeout=60)

        answer = answer_when(settled, once, f"{method} {path}")
        assert answer.status_code in ok, f"{method} {path}: {answer.status_code} {answer.text}"
        if not answer.content or answer.status_code == 404:
            return answer.json() if answer.content.startswith(b"{") else None
        assert answer.headers["Content-Type"].partition(";")[0] == "application/json"
        return answer.json()

    def waits_for(self, name: str, *states: str) -> None:
        def reached() -> bool:
            answer = requests.get(f"{self.url}/connectors/{name}/status", headers=ACCEPT, timeout=60)
            if answer.status_code != 200:
                return False
            shown = answer.json()
            return [shown["connector"]["state"], *(task["state"] for task in shown["tasks"])] == list(states)

        wait_until(reached, f"{name} {states}")


def test_kcctl(url, name, tmp_path):
    ask = Client(url)
    (tmp_path / "lines").write_text("a\nb\n")
    config = {"connector.class": SOURCE, "file": str(tmp_path / "lines"), "topic": name, "tasks.max": "1"}
    assert {"version", "commit", "kafka_cluster_id"} <= set(ask("GET", "/"))
    plugins = ask("GET", "/connector-plugins?connectorsOnly=false")
    assert {"source", "sink", "transformation", "converter"} <= {plugin["type"] for plugin in plugins}
    described = ask("GET", f"/connector-plugins/{SOURCE}/config")
    assert {"name", "type", "required", "default_value", "documentation"} <= set(described[0])
    judged = ask("PUT", f"/connector-plugins/{SOURCE}/config/validate", {"name": name, **config})
    assert judged["error_count"] == 0 and {"definition", "value"} == set(judged["configs"][0])
    created = ask("POST", "/connectors/", {"name": name, "config": config}, ok=(201,))
    assert created["name"] == name and isinstance(created["tasks"], list)
    assert name in ask("GET", "/connectors/")
    ask.waits_for(name, "RUNNING", "RUNNING")
    assert ask("GET", f"/connectors/{name}")["config"]["topic"] == name
    expanded = ask("GET", "/connectors?expand=info&expand=status")[name]
    assert expanded["info"]["type"] == "source" and expanded["status"]["tasks"][0]["state"] == "RUNNING"
    assert ask("GET", f"/connectors/{name}/status")["connector"]["worker_id"]
    assert ask("GET", f"/connectors/{name}/config")["connector.class"] == SOURCE
    assert ask("PUT", f"/connectors/{name}/config", {**config, "batch.size": "5"})["config"]["batch.size"] == "5"
    ask("GET", f"/connectors/{name}/tasks-config", ok=(404,))  # until Kafka 3.9; kcctl says then that it cannot
    ask.waits_for(name, "RUNNING", "RUNNING")
    wait_until(lambda: ask("GET", f"/connectors/{name}/topics") == {name: {"topics": [name]}}, "its topic")
    assert ask("POST", f"/connectors/{name}/restart", ok=(204,)) is None
    ask.waits_for(name, "RUNNING", "RUNNING")
    restarted = ask("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=false", ok=(202,))
    assert restarted["connector"]["state"] == "RESTARTING"
    ask.waits_for(name, "RUNNING", "RUNNING")
    ask("POST", f"/connectors/{name}/tasks/0/restart", ok=(204,))
    ask.waits_for(name, "RUNNING", "RUNNING")
    ask("PUT", f"/connectors/{name}/pause", ok=(202,))
    ask.waits_for(name, "PAUSED", "PAUSED")
    ask("PUT", f"/connectors/{name}/resume", ok=(202,))
    ask.waits_for(name, "RUNNING", "RUNNING")
    at = {"partition": {"filename": config["file"]}, "offset": {"position": 4}}
    wait_until(lambda: ask("GET", f"/connectors/{name}/offsets") == {"offsets": [at]}, "its position")
    ask("PUT", f"/connectors/{name}/stop", ok=(204,))
    ask.waits_for(name, "STOPPED")
    moved = {"offsets": [{**at, "offset": {"position": 2}}]}
    assert "altered successfully" in ask("PATCH", f"/connectors/{name}/offsets", moved)["message"]
    assert "reset successfully" in ask("DELETE", f"/connectors/{name}/offsets")["message"]
    logger = f"x.{name}"
    assert ask("PUT", f"/admin/loggers/{logger}", {"level": "DEBUG"}) == [logger]
    assert ask("PUT", f"/admin/loggers/{logger}?scope=cluster", {"level": "INFO"}, ok=(204,)) is None
    wait_until(lambda: ask("GET", f"/admin/loggers/{logger}")["level"] == "INFO", "the level of all workers")
    assert "root" in ask("GET", "/admin/loggers/")
    ask("DELETE", f"/connectors/{name}", ok=(204,))
    assert ask("GET", f"/connectors/{name}", ok=(404,))["error_code"] == 404


def test_strimzi(url, name, tmp_path):
    ask = Client(url)
    (tmp_path / "lines").write_text("a\n")
    listed = ask("GET", "/connector-plugins")
    assert all({"class", "type"} <= set(plugin) <= {"class", "type", "version"} for plugin in listed)
    levels = ask("GET", "/admin/loggers/")
    assert all(isinstance(plugin["level"], str) for plugin in levels.values())
    ask("PUT", "/admin/loggers/root", {"level": levels["root"]["level"]})
    ask("GET", f"/connectors/{name}/config", ok=(404,))
    # The operator writes numbers as they stand in its resource.
    config = {"connector.class": SOURCE, "file": str(tmp_path / "lines"), "topic": name, "tasks.max": 1}
    created = ask("PUT", f"/connectors/{name}/config", config, ok=(200, 201))
    assert created["name"] == name
    ask.waits_for(name, "RUNNING", "RUNNING")
    assert ask("GET", "/connectors").count(name) == 1
    desired = {key: str(value) for key, value in config.items()} | {"name": name}
    assert ask("GET", f"/connectors/{name}/config") == desired  # else it would write it again each time
    status = ask("GET", f"/connectors/{name}/status")
    assert status["tasks"][0]["id"] == 0 and status["type"] == "source"
    wait_until(lambda: ask("GET", f"/connectors/{name}/topics")[name]["topics"] == [name], "its topic")
    ask("PUT", f"/connectors/{name}/pause", ok=(202,))
    ask.waits_for(name, "PAUSED", "PAUSED")
    ask("PUT", f"/connectors/{name}/resume", ok=(202,))
    ask.waits_for(name, "RUNNING", "RUNNING")
    ask("POST", f"/connectors/{name}/restart", ok=(204,))
    ask.waits_for(name, "RUNNING", "RUNNING")
    ask("POST", f"/connectors/{name}/tasks/0/restart", ok=(204,))
    ask.waits_for(name, "RUNNING", "RUNNING")
    ask("PUT", f"/connectors/{name}/stop", ok=(204,))
    ask.waits_for(name, "STOPPED")
    assert ask("GET", f"/connectors/{name}/offsets")["offsets"]
    refused = ask("PUT", f"/connectors/{name}/config", {"connector.class": SOURCE}, ok=(400,))
    assert "topic" in refused["message"]  # shown in the resource's status
    ask("DELETE", f"/connectors/{name}", ok=(204,))
    wait_until(
        lambda: requests.get(f"{url}/connectors/{name}/status", headers=ACCEPT, timeout=60).status_code == 404, "gone"
    )
