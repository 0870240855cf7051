"""Workers with HTTPS and users also forward requests to each other."""

from __future__ import annotations

import json

import pytest
import requests
from cryptography import x509

from connect.config.rest import BASIC_AUTH
from connect.config.worker import WorkerConfig
from connect.rest.users import user_guards
from tests.servers.process import free_ports, wait_until
from tests.support.certificates import Authority
from tests.support.worker import ConnectWorker
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def workers(tidegate_broker, authority, tmp_path_factory):
    """Two workers of a group: all HTTPS, users in a file, /admin at a separate address."""
    folder = tmp_path_factory.mktemp("secured")
    (folder / "users").write_text("alice=secret\n")
    (folder / "jaas").write_text(
        f'KafkaConnect {{ org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required file="{folder}/users"; }};'
    )
    identity = authority.issue((x509.NameOID.COMMON_NAME, "worker"))
    started = []
    for number in (1, 2):
        port, admin = free_ports(2)
        settings = {
            "listeners": f"https://127.0.0.1:{port}",
            "admin.listeners": f"http://127.0.0.1:{admin}",
            "listeners.https.ssl.keystore.type": "PEM",
            "listeners.https.ssl.keystore.location": str(identity),
            "listeners.https.ssl.truststore.type": "PEM",
            "listeners.https.ssl.truststore.location": str(authority.certificate),
            "rest.extension.classes": BASIC_AUTH,
            "java.security.auth.login.config": str(folder / "jaas"),
            "access.control.allow.origin": "https://pages.example.com",
            "response.http.headers.config": "set X-Frame-Options: DENY",
        }
        worker = ConnectWorker(folder / f"w{number}", tidegate_broker.bootstrap_servers, settings, name="secured")
        worker.start()
        started.append(worker)
    yield started
    for worker in started:
        worker.stop()


def ask(worker, method, path, body=None, *, authority, user=("alice", "secret"), **more):
    return requests.request(
        method, worker.url + path, json=body, auth=user, verify=str(authority.certificate), timeout=60, **more
    )


def test_any_worker_forwards_a_request_to_the_leader(workers, authority, tmp_path):
    for number, worker in enumerate(workers):
        config = {"connector.class": SOURCE, "file": str(tmp_path / "x"), "topic": "t"}

        def created(worker=worker, name=f"c{number}", config=config):
            return ask(worker, "PUT", f"/connectors/{name}/config", config, authority=authority).status_code in (
                200,
                201,
            )

        wait_until(created, "a connector created while the group settles")
    wait_until(
        lambda: all(ask(w, "GET", "/connectors", authority=authority).json() == ["c0", "c1"] for w in workers),
        "both",
    )


def test_requests_without_a_password_are_refused(workers, authority):
    for user in (None, ("alice", "wrong"), ("bob", "secret")):
        answer = ask(workers[0], "GET", "/connectors", authority=authority, user=user)
        assert (answer.status_code, "WWW-Authenticate" in answer.headers) == (401, False)
        assert answer.json()["message"] == "User cannot access the resource."


def test_an_order_between_workers_needs_the_group_s_signature(workers, authority):
    answer = ask(workers[0], "PUT", "/connectors/c0/fence", authority=authority, user=None)
    assert answer.status_code in (400, 403)


def test_pages_and_headers(workers, authority):
    answer = ask(workers[0], "GET", "/", authority=authority, headers={"Origin": "https://pages.example.com"})
    assert answer.headers["Access-Control-Allow-Origin"] == "https://pages.example.com"
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_levels_of_loggers_have_an_address_of_their_own(workers, authority):
    assert ask(workers[0], "GET", "/admin/loggers", authority=authority).status_code == 404
    admin = json.loads(workers[0]._ready.read_text())["addresses"]["connect-admin"]
    assert requests.get(f"{admin}/admin/loggers/root", auth=("alice", "secret"), timeout=60).json()["level"] == "INFO"
    assert requests.get(f"{admin}/connectors", auth=("alice", "secret"), timeout=60).status_code == 404


def worker_config(**keys):
    config = {
        "bootstrap.servers": "b",
        "group.id": "g",
        **{name.replace("_", "."): value for name, value in keys.items()},
    }
    return parse(WorkerConfig, config)


def test_errors_in_the_keys_are_reported(tmp_path):
    with pytest.raises(ConfigError, match="needs a JAAS file with an entry KafkaConnect"):
        worker_config(rest_extension_classes=BASIC_AUTH)
    with pytest.raises(ConfigError, match=r"Invalid value com\.example\.Other"):
        worker_config(rest_extension_classes="com.example.Other")
    (tmp_path / "jaas").write_text("Other { x required; };")
    with pytest.raises(ConfigError, match="has no entry KafkaConnect; it has: Other"):
        user_guards(
            worker_config(rest_extension_classes=BASIC_AUTH, java_security_auth_login_config=str(tmp_path / "jaas"))
        )
    with pytest.raises(ConfigError, match="cannot read"):
        user_guards(
            worker_config(rest_extension_classes=BASIC_AUTH, java_security_auth_login_config=str(tmp_path / "none"))
        )
    (tmp_path / "users.json").write_text("{")
    with pytest.raises(ConfigError, match="is not JSON"):
        user_guards(worker_config(users_file=str(tmp_path / "users.json")))


def test_the_listener_that_others_are_told_of_can_be_chosen():
    both = {"listeners": "http://a:1,https://b:2"}
    assert worker_config(**both).advertised == ("http", "a", 1)
    assert worker_config(**both, rest_advertised_listener="https").advertised == ("https", "b", 2)
