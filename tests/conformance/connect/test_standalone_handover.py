"""The offset file of a standalone worker is taken over from Kafka Connect and given back."""

from __future__ import annotations

import json
import sys

import pytest
import requests

from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaConnectStandalone
from tests.servers.process import ServerProcess, free_ports, wait_until

STRING = "org.apache.kafka.connect.storage.StringConverter"


def position(url):
    answer = requests.get(f"{url}/connectors/source/offsets", timeout=60)
    offsets = answer.json()["offsets"] if answer.ok else []
    return offsets[0]["offset"]["position"] if offsets else None


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long
def test_the_offset_file_is_handed_over_and_back(tidegate_broker, tmp_path):
    lines, file = tmp_path / "lines", tmp_path / "source.json"
    config = {"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector", "file": str(lines)}
    file.write_text(json.dumps({"name": "source", "config": {**config, "topic": f"standalone-{tmp_path.name}"}}))
    settings = {
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "offset.flush.interval.ms": "200",
        "key.converter": STRING,
        "value.converter": STRING,
    }
    bootstrap = tidegate_broker.bootstrap_servers
    theirs = or_skip(lambda: KafkaConnectStandalone(tmp_path / "theirs", bootstrap, settings, [file]))
    (port,) = free_ports(1)
    url, ready = f"http://127.0.0.1:{port}", tmp_path / "ready"
    properties = {**settings, "bootstrap.servers": bootstrap, "listeners": url}
    (tmp_path / "worker.properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    command = ["-m", "tidegate.cli", "serve", "connect", str(tmp_path / "worker.properties"), str(file)]
    ours = ServerProcess(
        "our standalone worker",
        [sys.executable, *command, "--ready-file", str(ready)],
        log=tmp_path / "log",
        ready=ready.exists,
    )
    written = ""
    for number, (worker, where) in enumerate(((theirs, theirs.url), (ours, url), (theirs, theirs.url), (ours, url))):
        written += f"line {number}\n"
        lines.write_text(written)
        worker.start()
        try:
            wait_until(lambda: position(where) == len(written), f"offset {len(written)} in round {number}")
            wait_until(lambda: str(len(written)).encode() in (tmp_path / "offsets").read_bytes(), "on the disk")
        finally:
            worker.stop()
