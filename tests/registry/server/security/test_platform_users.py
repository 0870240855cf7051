"""Users in the platform's file at the registry: rights on subjects, and on the platform for global settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from registry.server.security.config import SecurityConfig
from registry.server.security.users import guards
from tests.registry.conftest import MemoryLog, served
from tidegate.kit.config import parse, validate
from tidegate.kit.users import PlatformUser, Right, Users, read_users, with_password, write_users

SCHEMA = {"schema": '"string"'}
ROOT, WRITER, READER = ("root", "r"), ("writer", "w"), ("reader", "s")
RIGHTS = {
    "root": ["admin"],
    "writer": ["write subject orders-*"],
    "reader": ["read subject orders-value", "read platform"],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "users.json"
    named = [
        with_password(PlatformUser(name, rights=tuple(map(Right.parse, RIGHTS[name]))), password, now_ms=1)
        for name, password in (ROOT, WRITER, READER)
    ]
    write_users(path, Users(named).with_delegation_key())
    return path


@pytest.fixture
def client(log: MemoryLog, file: Path) -> Iterator[TestClient]:
    with TestClient(served(log, guards=guards(parse(SecurityConfig, {"users.file": str(file)})))) as started:
        yield started


def test_every_request_without_a_password_is_refused(client: TestClient) -> None:
    for method, path in (
        ("GET", "/"),
        ("GET", "/subjects"),
        ("POST", "/subjects/s/versions"),
        ("GET", "/metrics"),
        ("PUT", "/config"),
    ):
        assert client.request(method, path).status_code == 401
        assert client.request(method, path, auth=("writer", "wrong")).status_code == 401
        assert client.request(method, path, auth=("nobody", "w")).status_code == 401


def test_rights_on_subjects_decide(client: TestClient) -> None:
    def status(user: tuple[str, str], method: str, subject: str) -> int:
        path = f"/subjects/{subject}/versions"
        return client.request(method, path, json=SCHEMA if method == "POST" else None, auth=user).status_code

    assert [status(user, "POST", "orders-value") for user in (READER, WRITER, ROOT)] == [403, 200, 200]
    assert [status(user, "GET", "orders-value") for user in (READER, WRITER, ROOT)] == [200, 403, 200]
    assert [status(user, "POST", "other") for user in (WRITER, ROOT)] == [403, 200]
    assert client.get("/subjects", auth=READER).json() == ["orders-value"]


def test_global_settings_need_a_right_on_the_platform(client: TestClient) -> None:
    body = {"compatibility": "NONE"}
    assert [client.get("/config", auth=user).status_code for user in (READER, WRITER, ROOT)] == [200, 403, 200]
    assert [client.put("/config", json=body, auth=user).status_code for user in (READER, WRITER, ROOT)] == [
        403,
        403,
        200,
    ]


def test_changed_rights_count_at_once(client: TestClient, file: Path) -> None:
    assert client.get("/subjects", auth=READER).status_code == 200
    write_users(file, read_users(file).without("reader"))
    assert client.get("/subjects", auth=READER).status_code == 401


def test_a_task_logs_in_for_the_owner_of_its_connector(client: TestClient, file: Path) -> None:
    users = read_users(file)
    delegated = (users.delegate_name("writer"), users.delegate_password("writer"))
    status = [
        client.post(f"/subjects/{subject}/versions", json=SCHEMA, auth=delegated).status_code
        for subject in ("orders-value", "other")
    ]
    assert status == [200, 403]
    write_users(file, users.without("writer"))
    assert client.post("/subjects/orders-value/versions", json=SCHEMA, auth=delegated).status_code == 401


def test_two_files_of_users_are_refused() -> None:
    judged = validate(SecurityConfig, {"users.file": "a", "registry_authfile": "b"})
    assert [error for value in judged for error in value.errors] == [
        "registry_authfile and users.file both name users: give one"
    ]
