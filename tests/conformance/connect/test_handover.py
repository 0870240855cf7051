"""A Kafka Connect cluster is taken over by Tidegate and given back, through the three topics: connectors, states and
offsets stay.
"""

from __future__ import annotations

import pytest
import requests

from tests.servers.kafka import KafkaConnect
from tests.servers.process import wait_until
from tests.support.worker import ConnectWorker

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
TOPICS = {f"{kind}.storage.topic": f"handover-{kind}" for kind in ("config", "offset", "status")}


def ask(url, method, path, body=None):
    answer = requests.request(method, url + path, json=body, timeout=60)
    return answer.json() if answer.status_code == 200 else None


def wait_for(url, name, *expected):
    """Wait for the states of a connector and its tasks."""

    def states():
        shown = ask(url, "GET", f"/connectors/{name}/status")
        return shown and [shown["connector"]["state"], *(task["state"] for task in shown["tasks"])]

    try:
        wait_until(lambda: states() == list(expected), f"{name} {expected}")
    except TimeoutError as error:
        raise AssertionError(f"{error}; it is {states()}") from None


def position(url, name="source"):
    shown = ask(url, "GET", f"/connectors/{name}/offsets")
    return shown["offsets"][0]["offset"]["position"] if shown and shown["offsets"] else 0


@pytest.mark.servers
@pytest.mark.proof
def test_connectors_states_and_offsets_are_handed_over_and_back(apache_kafka, tmp_path):
    settings = {"group.id": "handover", **TOPICS}
    theirs = KafkaConnect(tmp_path / "theirs", apache_kafka.bootstrap_servers, settings)
    schemas = {"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"}
    ours = ConnectWorker(tmp_path / "ours", apache_kafka.bootstrap_servers, {**settings, **schemas})
    lines, out = tmp_path / "lines", tmp_path / "out"
    lines.write_text("one\n")
    source = {"connector.class": SOURCE, "file": str(lines), "topic": "handover-lines"}
    sink = {"connector.class": SINK, "file": str(out), "topics": "handover-lines"}

    theirs.start()
    try:
        for name, config in (("source", source), ("sink", sink), ("resting", {**source, "topic": "handover-rest"})):
            assert requests.put(f"{theirs.url}/connectors/{name}/config", json=config, timeout=60).status_code == 201
        assert requests.put(f"{theirs.url}/connectors/resting/stop", timeout=60).status_code == 204
        wait_until(lambda: position(theirs.url) == 4, "their source's offset")
        wait_until(lambda: out.exists() and out.read_text() == "one\n", "their sink's line")
    finally:
        theirs.stop()

    ours.start()
    try:
        assert sorted(ask(ours.url, "GET", "/connectors")) == ["resting", "sink", "source"]
        assert ask(ours.url, "GET", "/connectors/source/config") == {**source, "name": "source"}
        ours.wait_for("source", connector="RUNNING", task0="RUNNING")
        ours.wait_for("resting", connector="STOPPED")
        assert position(ours.url) == 4
        with lines.open("a") as more:
            more.write("two\n")
        wait_until(lambda: position(ours.url) == 8, "our source's offset")
        wait_until(lambda: out.read_text() == "one\ntwo\n", "our sink's line")
        assert requests.put(f"{ours.url}/connectors/sink/pause", timeout=60).status_code == 202
        ours.wait_for("sink", connector="PAUSED", task0="PAUSED")
    finally:
        ours.stop()

    theirs.start()
    try:
        wait_for(theirs.url, "source", "RUNNING", "RUNNING")
        wait_for(theirs.url, "sink", "PAUSED", "PAUSED")
        wait_for(theirs.url, "resting", "STOPPED")
        assert position(theirs.url) == 8
        with lines.open("a") as more:
            more.write("three\n")
        wait_until(lambda: position(theirs.url) == 14, "their offset")
        assert requests.put(f"{theirs.url}/connectors/sink/resume", timeout=60).status_code == 202
        wait_until(lambda: out.read_text() == "one\ntwo\nthree\n", "their sink's last line")
    finally:
        theirs.stop()
