"""Users in the platform's file at a worker's REST API: rights on connectors and on the platform."""

from __future__ import annotations

import pytest
import requests

from tests.servers.process import wait_until
from tests.support.worker import ConnectWorker
from tidegate.kit.users import PlatformUser, Right, Users, with_password, write_users

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
PASSWORDS = {"root": "r", "orders": "o", "viewer": "v"}
RIGHTS = {"root": ["admin"], "orders": ["manage connector orders-*"], "viewer": ["read connector orders-a"]}


@pytest.fixture(scope="module")
def worker(tidegate_broker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rights")
    named = [
        with_password(PlatformUser(name, rights=tuple(map(Right.parse, RIGHTS[name]))), PASSWORDS[name], now_ms=1)
        for name in RIGHTS
    ]
    write_users(folder / "users.json", Users(named))
    settings = {"users.file": str(folder / "users.json")}
    started = ConnectWorker(folder / "w", tidegate_broker.bootstrap_servers, settings, name="rights")
    started.start()
    yield started
    started.stop()


def ask(worker, user, method, path, **more):
    auth = (user, PASSWORDS[user]) if user else None
    return requests.request(method, worker.url + path, auth=auth, timeout=60, **more)


def body(name, tmp_path):
    return {"name": name, "config": {"connector.class": SOURCE, "file": str(tmp_path / "none"), "topic": name}}


def test_every_request_without_a_password_is_refused(worker):
    for method, path in (
        ("GET", "/"),
        ("GET", "/connectors"),
        ("POST", "/connectors"),
        ("GET", "/metrics"),
        ("PUT", "/admin/loggers/root"),
    ):
        refused = requests.request(method, worker.url + path, json={}, timeout=60)
        assert refused.status_code == 401 and refused.headers["WWW-Authenticate"].startswith("Basic")
        assert requests.request(method, worker.url + path, auth=("root", "wrong"), timeout=60).status_code == 401


def test_rights_on_connectors_decide(worker, tmp_path):
    created = [
        ask(worker, user, "POST", "/connectors", json=body("orders-a", tmp_path)) for user in ("viewer", "orders")
    ]
    assert [answer.status_code for answer in created] == [403, 201]
    assert (
        "no right to manage connector orders-a"
        in ask(worker, "viewer", "DELETE", "/connectors/orders-a").json()["message"]
    )
    assert ask(worker, "orders", "POST", "/connectors", json=body("other", tmp_path)).status_code == 403
    assert ask(worker, "root", "POST", "/connectors", json=body("other", tmp_path)).status_code == 201
    for user, seen in (("root", {"orders-a", "other"}), ("orders", {"orders-a"}), ("viewer", {"orders-a"})):
        wait_until(lambda: set(ask(worker, user, "GET", "/connectors?expand=info").json()) == seen, f"what {user} sees")
        assert set(ask(worker, user, "GET", "/connectors").json()) == seen
        wait_until(
            lambda: set(ask(worker, user, "GET", "/tidegate/v1/connectors").json()["connectors"]) == seen,
            f"the counts that {user} sees",
        )
    assert [
        ask(worker, user, "GET", "/connectors/other/config").status_code for user in ("viewer", "orders", "root")
    ] == [403, 403, 200]
    assert [ask(worker, user, "PUT", "/connectors/orders-a/pause").status_code for user in ("viewer", "orders")] == [
        403,
        202,
    ]
    assert ask(worker, "orders", "GET", "/connectors/x%2F..%2Forders-a").status_code == 403


def test_validation_is_for_those_who_manage_some_connector(worker, tmp_path):
    path = "/connector-plugins/FileStreamSource/config/validate"
    config = {**body("orders-b", tmp_path)["config"], "name": "orders-b"}
    assert [ask(worker, user, "PUT", path, json=config).status_code for user in ("viewer", "orders")] == [403, 200]


def test_loggers_belong_to_the_platform(worker):
    for method in ("GET", "PUT"):
        asked = [
            ask(worker, user, method, "/admin/loggers/root", json={"level": "INFO"}).status_code
            for user in ("orders", "root")
        ]
        assert asked == [403, 200]
