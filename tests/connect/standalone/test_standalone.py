"""``tidegate serve connect worker.properties a.json b.properties``, over our broker."""

from __future__ import annotations

import json
import sys

import pytest
import requests

from connect.server.standalone.java_map import load_map
from tests.servers.process import ServerFailed, ServerProcess, free_ports, wait_until


@pytest.fixture
def standalone(tidegate_broker, tmp_path):
    (port,) = free_ports(1)
    topic = f"lines-{port}"
    (tmp_path / "worker.properties").write_text(
        f"bootstrap.servers={tidegate_broker.bootstrap_servers}\nlisteners=http://127.0.0.1:{port}\n"
        f"offset.storage.file.filename={tmp_path}/offsets\noffset.flush.interval.ms=200\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.storage.StringConverter\ntask.host.processes=1\n"
    )
    (tmp_path / "source.properties").write_text(
        f"name=source\nconnector.class=FileStreamSource\nfile={tmp_path}/in\ntopic={topic}\n"
    )
    sink = {"connector.class": "FileStreamSink", "file": f"{tmp_path}/out", "topics": topic}
    (tmp_path / "sink.json").write_text(json.dumps({"name": "sink", "config": sink}))
    (tmp_path / "in").write_text("one\ntwo\n")
    files = [str(tmp_path / name) for name in ("worker.properties", "source.properties", "sink.json")]
    url = f"http://127.0.0.1:{port}"
    process = ServerProcess(
        "standalone worker",
        [sys.executable, "-m", "tidegate.cli", "serve", "connect", *files, "--ready-file", str(tmp_path / "ready")],
        log=tmp_path / "log",
        ready=(tmp_path / "ready").exists,
    )
    process.url = url
    yield process
    process.stop()


@pytest.mark.proof
def test_connectors_of_files_run_and_their_offsets_outlive_the_worker(standalone, tmp_path):
    out, offsets = tmp_path / "out", tmp_path / "offsets"
    standalone.start()
    wait_until(lambda: out.exists() and out.read_text() == "one\ntwo\n", "two lines in the sink")
    assert sorted(requests.get(f"{standalone.url}/connectors", timeout=60).json()) == ["sink", "source"]
    key = json.dumps(["source", {"filename": f"{tmp_path}/in"}], separators=(",", ":")).encode()
    wait_until(lambda: offsets.exists() and load_map(offsets.read_bytes()).get(key) == b'{"position":8}', "the offset")
    shown = requests.get(f"{standalone.url}/connectors/source/offsets", timeout=60).json()
    assert shown["offsets"][0]["offset"] == {"position": 8}
    for method, path, words in (("POST", "tasks", "setting task configurations"), ("PUT", "fence", "exactly-once")):
        refused = requests.request(method, f"{standalone.url}/connectors/source/{path}", json=[], timeout=60)
        assert refused.status_code == 500 and words in refused.json()["message"]
    restarted = requests.post(f"{standalone.url}/connectors/source/restart?includeTasks=true", timeout=60)
    assert restarted.status_code == 202
    standalone.stop()
    with (tmp_path / "in").open("a") as more:
        more.write("three\n")
    standalone.start()
    wait_until(lambda: out.read_text() == "one\ntwo\nthree\n", "the third line, and no other again")


def test_a_connector_that_cannot_be_made_ends_the_worker_with_its_file(standalone, tmp_path):
    (tmp_path / "sink.json").write_text('{"name": "sink", "connector.class": "NoSuchSink", "topics": "t"}')
    with pytest.raises(ServerFailed, match="NoSuchSink"):
        standalone.start()
    assert f"{tmp_path}/sink.json" in (tmp_path / "log").read_text()
