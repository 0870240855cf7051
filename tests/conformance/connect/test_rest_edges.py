"""Requests at the edges of the REST face (bad bodies, unknown paths, wrong methods, odd parameters): the same answers as
Kafka Connect's, asked side by side. What is not JSON, or not of the right shape, is 400 here and 500 there."""

from __future__ import annotations

import re
import uuid
from functools import partial

import pytest
import requests

from tests.servers.process import answer_when
from tests.support.worker import ConnectWorker, settled

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def ours(apache_kafka, tmp_path_factory):
    worker = ConnectWorker(tmp_path_factory.mktemp("worker"), apache_kafka.bootstrap_servers, name="edges")
    worker.start()
    yield worker.url
    worker.stop()


@pytest.fixture(scope="module")
def both(ours, apache_connect, tmp_path_factory):
    """The two faces, each with a stopped connector ``edge``."""
    urls, name = (apache_connect.url, ours), f"edge-{uuid.uuid4().hex[:6]}"
    config = {"connector.class": SOURCE, "file": str(tmp_path_factory.mktemp("lines") / "none"), "topic": "edge"}
    for url in urls:
        body = {"name": name, "config": config, "initial_state": "STOPPED"}
        assert ask("POST", f"{url}/connectors", json=body).status_code == 201
    yield urls, name
    for url in urls:
        ask("DELETE", f"{url}/connectors/{name}")


def ask(method, url, **more):
    """The answer of a worker that is not rebalancing."""
    return answer_when(settled, partial(requests.request, method, url, timeout=60, **more), f"{method} {url}")


def shape(text):
    """An answer without what differs by nature: addresses, times, names of Java's classes and of its reader."""
    text = re.sub(
        r"(\w+)=[^,}]*(?=[,}].* contains no connector type)", r"\1=...", text
    )  # ours shows no values: secrets
    text = re.sub(r"127\.0\.0\.1:\d+|localhost:\d+", "HOST", text)
    return re.sub(r"\(?\[Source: .*|\bat \[Source.*", "", text, flags=re.DOTALL).strip()


CASES = [
    ("GET", "/nothing", None, {}),
    ("GET", "/connectors/{c}/nothing", None, {}),
    ("POST", "/", None, {}),
    ("PUT", "/connectors", "{}", JSON),
    ("DELETE", "/connectors", None, {}),
    ("GET", "/connectors/{c}/pause", None, {}),
    ("POST", "/connectors/{c}/pause", None, {}),
    ("GET", "/connectors/{c}/restart", None, {}),
    ("PATCH", "/connectors/{c}", "{}", JSON),
    ("POST", "/connectors/{c}/config", "{}", JSON),
    ("POST", "/connectors", "{}", {"Content-Type": "text/plain"}),
    ("POST", "/connectors", "", JSON),
    ("POST", "/connectors", "{", JSON),
    ("POST", "/connectors", "[]", JSON),
    ("POST", "/connectors", "null", JSON),
    ("POST", "/connectors", '"x"', JSON),
    ("POST", "/connectors", "{}", JSON),
    ("POST", "/connectors", '{"name":"x"}', JSON),
    ("POST", "/connectors", '{"name":"x","config":{}}', JSON),
    ("POST", "/connectors", '{"name":"x","config":[]}', JSON),
    ("POST", "/connectors", '{"name":"x","config":{},"other":1}', JSON),
    ("POST", "/connectors", '{"name":"x","config":{},"initial_state":"RESTING"}', JSON),
    ("PUT", "/connectors/{c}/config", "[]", JSON),
    ("PUT", "/connectors/{c}/config", "", JSON),
    ("PUT", "/connectors/{c}/config", "{}", JSON),
    ("PATCH", "/connectors/absent/config", "{}", JSON),
    ("PATCH", "/connectors/{c}/config", "[]", JSON),
    ("GET", "/connectors?expand=nothing", None, {}),
    ("GET", "/connectors/{c}/tasks/x/status", None, {}),
    ("GET", "/connectors/{c}/tasks/7/status", None, {}),
    ("POST", "/connectors/{c}/tasks/x/restart", None, {}),
    ("POST", "/connectors/{c}/tasks/7/restart", None, {}),
    ("POST", "/connectors/absent/restart?includeTasks=true", None, {}),
    ("POST", "/connectors/absent/restart?onlyFailed=true", None, {}),
    ("POST", "/connectors/absent/tasks/0/restart", None, {}),
    ("GET", "/connectors/absent/tasks/0/status", None, {}),
    ("GET", "/connectors/absent/topics", None, {}),
    ("PUT", "/connectors/absent/topics/reset", None, {}),
    ("PATCH", "/connectors/absent/offsets", '{"offsets":[]}', JSON),
    ("PATCH", "/connectors/{c}/offsets", '{"offsets":[]}', JSON),
    ("PATCH", "/connectors/{c}/offsets", "{}", JSON),
    ("PATCH", "/connectors/{c}/offsets", "[", JSON),
    ("DELETE", "/connectors/absent/offsets", None, {}),
    ("GET", "/connectors/{c}/offsets", None, {}),
    ("GET", "/connector-plugins/absent/config", None, {}),
    ("POST", "/connector-plugins", "{}", JSON),
    ("PUT", "/connector-plugins/FileStreamSource/config/validate", "[]", JSON),
    ("PUT", "/connector-plugins/FileStreamSource/config/validate", "{}", JSON),
    ("GET", "/admin/loggers/no.such.logger", None, {}),
    ("PUT", "/admin/loggers/root", "{}", JSON),
    ("PUT", "/admin/loggers/root", '{"level":"LOUD"}', JSON),
    ("DELETE", "/admin/loggers/root", None, {}),
]


@pytest.mark.parametrize(("method", "path", "body", "headers"), CASES, ids=lambda value: str(value)[:40])
def test_edges_are_answered_as_by_kafka_connect(both, method, path, body, headers):
    urls, name = both
    answers = [ask(method, url + path.replace("{c}", name), data=body, headers=headers) for url in urls]
    theirs, ours = ((answer.status_code, shape(answer.text)) for answer in answers)
    if theirs[0] == 500:  # a fault of the request that the original takes for one of its own
        assert ours[0] == 400 and answers[1].json()["error_code"] == 400
    else:
        assert ours == theirs
