"""Edge cases of the REST API (bad bodies, unknown paths, wrong methods, unusual parameters): the same responses as
Kafka Connect's, with both queried side by side.

A body that is invalid JSON or has the wrong structure is 400 here and 500 there.
"""

from __future__ import annotations

import json
import re
import uuid
from functools import partial
from urllib.parse import quote

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
    text = re.sub(r"org\.apache\.kafka\.connect\.errors\.\w+: ", "", text)
    text = re.sub(r"(available connectors are: ).*(?=\")", r"\1...", text)
    text = re.sub(r'"version":"[^"]+"', '"version":"..."', text)
    text = re.sub(r"127\.0\.0\.1:\d+|localhost:\d+", "HOST", text)
    text = re.sub(r"\(?\[Source: .*|\bat \[Source.*", "", text, flags=re.DOTALL).strip()
    try:
        return json.loads(text)  # members of an object may come in any order
    except ValueError:
        return text


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
    ("GET", "/connectors/", None, {}),
    ("GET", "/connectors/{c}/", None, {}),
    ("GET", "/connectors/{c}/config/", None, {}),
    ("GET", "/connectors/{c}/status/", None, {}),
    ("GET", "/connectors/{c}/tasks/", None, {}),
    ("GET", "/connectors/{c}/topics/", None, {}),
    ("PUT", "/connectors/{c}/stop/", None, {}),
    ("POST", "/connectors/", "{", JSON),
    ("GET", "/health/", None, {}),
    ("HEAD", "/connectors", None, {}),
    ("HEAD", "/connectors/{c}/pause", None, {}),
    ("OPTIONS", "/nothing", None, {}),
    ("GET", "/connectors", None, {"Accept": "text/html"}),
    ("GET", "/connectors", None, {"Accept": "application/xml, */*;q=0.1"}),
    ("GET", "/connectors", None, {"Accept": "application/*"}),
    ("GET", "/connectors", None, {"Accept": "text/plain;q=0.5, application/json;q=0"}),
    ("GET", "/connectors", None, {"Accept": ""}),
    ("GET", "/connectors", None, {"Accept": "words"}),
    ("PUT", "/connectors/{c}/pause", None, {"Accept": "text/html"}),
    ("DELETE", "/connectors/absent", None, {"Accept": "text/html"}),
    ("GET", "/nothing", None, {"Accept": "text/html"}),
    ("GET", "/admin/loggers", None, {"Accept": "text/html"}),
    ("POST", "/connectors", '{"name":"x","config":{}}', {}),
    ("PUT", "/connectors/{c}/config", "{}", {}),
    ("POST", "/connectors", "{}", {"Content-Type": "application/vnd.api+json"}),
    ("POST", "/connectors", f'{{"config":{{"connector.class":"{SOURCE}","topic":"t"}}}}', JSON),
    ("POST", "/connectors", f'{{"name":" ","config":{{"connector.class":"{SOURCE}","topic":"t"}}}}', JSON),
    ("POST", "/connectors", f'{{"config":{{"name":"inner","connector.class":"{SOURCE}","topic":"t"}}}}', JSON),
    ("GET", "/connectors/a/b", None, {}),
    ("GET", "/connectors/%2e%2e", None, {}),
]
_PLUGIN = "/connector-plugins/FileStreamSource/config"
_METHODS = {
    "/": "GET",
    "/health": "GET",
    "/connectors/{c}": "GET DELETE",
    "/connectors/{c}/config": "GET PUT PATCH",
    "/connectors/{c}/status": "GET",
    "/connectors/{c}/tasks": "GET POST",
    "/connectors/{c}/tasks/0/status": "GET",
    "/connectors/{c}/tasks/0/restart": "POST",
    "/connectors/{c}/topics": "GET",
    "/connectors/{c}/topics/reset": "PUT",
    "/connectors/{c}/offsets": "GET PATCH DELETE",
    "/connectors/{c}/restart": "POST",
    "/connectors/{c}/resume": "PUT",
    "/connectors/{c}/stop": "PUT",
    "/connector-plugins": "GET",
    _PLUGIN: "GET",
    f"{_PLUGIN}/validate": "PUT",
    "/admin/loggers": "GET",
    "/admin/loggers/root": "GET PUT",
}
WRONG_METHODS = [
    (method, path, "{}" if method in ("POST", "PUT", "PATCH") else None, JSON)
    for path, right in _METHODS.items()
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    if method not in right.split()
]
_CONFIG = f'{{"connector.class":"{SOURCE}","topic":"t"}}'
ODD = [
    *(("GET", f"/connectors{query}", None, {}) for query in ("?expand=", "?expand=nothing&expand=none", "?forward=maybe", "?x", "?&&")),
    *(("GET", f"/connector-plugins/{name}/config", None, {}) for name in ("%20", "FileStream", "filestreamsource")),
    *(("POST", f"/connectors/absent/restart?{query}", None, {}) for query in ("includeTasks=maybe", "onlyFailed=", "includeTasks")),
    *(("PUT", f"/admin/loggers/x.y?{query}", '{"level":"LOUD"}', JSON) for query in ("scope=galaxy", "scope=", "scope=cluster")),
    *(
        ("PUT", "/admin/loggers/root", body, JSON)
        for body in ('{"level":null}', '{"level":5}', '{"level":""}', '{"level":"x","more":1}', '{"LEVEL":"info"}', "[]", "null", '"INFO"')
    ),
    *(
        ("PATCH", "/connectors/{c}/offsets", body, JSON)
        for body in (
            "null", '{"offsets":null}', '{"offsets":{}}', '{"offsets":5}', '{"offsets":[],"more":1}', '{"offset":[]}', '{"offsets":[5]}',
            '{"offsets":[{"partition":5}]}', '{"offsets":[{"partition":{},"offset":5}]}', '{"offsets":[{"x":1}]}',
        )
    ),
    *(
        ("POST", "/connectors", body, JSON)
        for body in (
            f'{{"name":null,"config":{_CONFIG}}}', '{"name":"x","config":null}', '{"name":"x","config":{"connector.class":null}}',
            '{"name":"x","config":{"connector.class":["a"]}}', '{"name":{},"config":{}}', f'{{"name":"x","config":{_CONFIG},"initial_state":5}}',
            f'{{"name":"x","config":{_CONFIG},"initial_state":""}}', f'{{"name":"x","config":{_CONFIG},"initial_state":["STOPPED"]}}', "{}}", '{"name":"x"',
            '{"name":"x","config":{"connector.class":"no.Such"}}', "\ufeff{}", "5", "true", '[{"name":"x"}]',
        )
    ),
    *(
        ("PUT", "/connectors/{c}/config", body, JSON)
        for body in ("null", "5", '{"a":{}}', '{"a":[]}', '{"connector.class":"no.Such"}', '{"name":"other","connector.class":"x"}', "{}}")
    ),
    *(("PATCH", "/connectors/{c}/config", body, JSON) for body in ("null", "5", '{"a":{}}', '{"errors.tolerance":"x"}', '{"connector.class":"no.Such"}')),
    *(
        ("PUT", f"{_PLUGIN}/validate", body, JSON)
        for body in ("", "null", '{"connector.class":null}', '{"connector.class":""}', '{"connector.class":5}', '{"connector.class":"no.Such"}', "{")
    ),
]  # fmt: skip


def test_no_compared_request_was_dropped():
    assert (
        len({(method, path, body, str(headers)) for method, path, body, headers in CASES + WRONG_METHODS + ODD}) > 200
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"), CASES + WRONG_METHODS + ODD, ids=lambda value: str(value)[:40]
)
def test_edges_are_answered_as_by_kafka_connect(both, method, path, body, headers):
    urls, name = both
    answers = [ask(method, url + path.replace("{c}", name), data=body, headers=headers) for url in urls]
    theirs, ours = ((answer.status_code, shape(answer.text)) for answer in answers)
    if theirs[0] == 500:  # a fault of the request that the original takes for one of its own
        assert ours[0] == 400 and answers[1].json()["error_code"] == 400
    else:
        assert ours == theirs


@pytest.mark.parametrize(
    "path", ["/", "/connectors", "/connectors/{c}", "/connectors/{c}/config", "/connector-plugins/"]
)
def test_options_names_the_methods_of_a_path(both, path):
    urls, name = both
    theirs, ours = (requests.options(url + path.replace("{c}", name), timeout=60) for url in urls)
    assert (theirs.status_code, ours.status_code) == (200, 200)
    assert {m.strip() for m in ours.headers["Allow"].split(",")} == {
        m.strip() for m in theirs.headers["Allow"].split(",")
    }
    assert {m.strip() for m in ours.text.split(",")} == {m.strip() for m in theirs.text.split(",")}


def test_names_with_slashes_and_blanks_have_the_location_of_kafka_connect(both):
    urls, _ = both
    unique = uuid.uuid4().hex[:6]
    for name in (f"a/b {unique}", f"ü&={unique}"):
        body = {"name": name, "config": {"connector.class": SOURCE, "topic": "t"}, "initial_state": "STOPPED"}
        theirs, ours = (ask("POST", f"{url}/connectors", json=body) for url in urls)
        assert theirs.headers["Location"].removeprefix(urls[0]) == ours.headers["Location"].removeprefix(urls[1])
        assert ours.headers["Location"].startswith(urls[1])
        # Jetty takes no encoded slash, so that a connector with such a name stays for ever there.
        deleted = [ask("DELETE", f"{url}/connectors/{quote(name, safe='')}").status_code for url in urls]
        assert deleted == ([400, 204] if "/" in name else [204, 204])


def test_a_connector_created_stopped_shows_its_version(both):
    urls, _ = both
    name = f"stopped-{uuid.uuid4().hex[:6]}"
    for url in urls:
        body = {"name": name, "config": {"connector.class": SOURCE, "topic": "t"}, "initial_state": "STOPPED"}
        assert ask("POST", f"{url}/connectors", json=body).status_code == 201
        status = answer_when(
            lambda answer: answer.status_code == 200,
            partial(requests.get, f"{url}/connectors/{name}/status", timeout=60),
            f"status of {name}",
        ).json()
        assert status["connector"]["state"] == "STOPPED" and status["connector"]["version"]
        ask("DELETE", f"{url}/connectors/{name}")
