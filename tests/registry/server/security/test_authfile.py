"""Rights by subject from Karapace's file, over an in-memory registry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from registry.server.security.authfile import AuthFile, password_hash, read_auth_file
from registry.server.security.config import SecurityConfig
from registry.server.security.users import guards
from tests.registry.conftest import MemoryLog, served
from tidegate.kit.config import parse
from tidegate.kit.errors import ConfigError, UsageError
from tidegate.kit.passwords import LoggedIn

# The first two hashes are of Karapace's tests: what its tool made, this registry reads.
FILE = {
    "users": [
        {
            "username": "admin",
            "algorithm": "scrypt",
            "salt": "adminsalt",
            "password_hash": "AG7+ttm/skHjqEZ90yzEkgjy75yaqoucNnQPIP2S++1rYOPXEtm4+AF7WdDGj+J0sIPFdYC9nXYsvkB1xYDYkw==",
        },
        {
            "username": "aladdin",
            "algorithm": "sha512",
            "salt": "salt",
            "password_hash": "uofa7Uw+IolY0GDeCQApTVAUPlBthFYPFQ+QN+kKtXBzSwddiyLrNnIC2UQcA5X+hCL/mHNNqEMA30oIM4oqxA==",
        },
        {
            "username": "reader",
            "algorithm": "sha256",
            "salt": "third-salt",
            "password_hash": "IopSSZM68f0A/aE5JAjjnqIF9o1+kxBkPmsfULXimHU=",
        },
    ],
    "permissions": [
        {"username": "admin", "operation": "Write", "resource": ".*"},
        {"username": "aladdin", "operation": "Write", "resource": "Subject:cave-.*"},
        {"username": "aladdin", "operation": "Write", "resource": "Subject::.lamp:cave-.*"},
        {"username": "reader", "operation": "Read", "resource": "Subject:carpet-.*"},
    ],
}
ADMIN, ALADDIN, READER = ("admin", "admin"), ("aladdin", "opensesame"), ("reader", "secret")
SCHEMA = {"schema": '"string"'}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "auth.json"
    path.write_text(json.dumps(FILE))
    return path


@pytest.fixture
def client(log: MemoryLog, file: Path) -> Iterator[TestClient]:
    keys = parse(SecurityConfig, {"registry_authfile": str(file)})
    with TestClient(served(log, guards=guards(keys))) as started:
        yield started


def register(client: TestClient, subject: str, user: tuple[str, str], schema: str = '"string"') -> int:
    answer = client.post(f"/subjects/{subject}/versions", json={"schema": schema}, auth=user)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def test_requests_without_a_password_are_refused(client: TestClient) -> None:
    for method, path in (("GET", "/subjects"), ("POST", "/subjects/s/versions"), ("GET", "/metrics"), ("GET", "/")):
        refused = client.request(method, path)
        assert refused.status_code == 401, path
        assert refused.json() == {"error_code": 401, "message": "Unauthorized"}
    assert client.get("/subjects", auth=("aladdin", "wrong")).status_code == 401
    assert client.get("/schemas/types", auth=READER).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "operation"),
    [
        ("POST", "/subjects/{}", "Read"),
        ("GET", "/subjects/{}/versions", "Read"),
        ("GET", "/subjects/{}/versions/latest/schema", "Read"),
        ("GET", "/config/{}", "Read"),
        ("GET", "/mode/{}", "Read"),
        ("POST", "/compatibility/subjects/{}/versions/latest", "Read"),
        ("POST", "/subjects/{}/versions", "Write"),
        ("DELETE", "/subjects/{}/versions/1", "Write"),
        ("DELETE", "/subjects/{}", "Write"),
        ("PUT", "/config/{}", "Write"),
        ("DELETE", "/config/{}", "Write"),
        ("PUT", "/mode/{}", "Write"),
        ("POST", "/subjects/{}/versions/1/tags", "Write"),
    ],
)
def test_a_subject_is_for_those_who_have_the_right(client: TestClient, method: str, path: str, operation: str) -> None:
    def status(subject: str, user: tuple[str, str]) -> int:
        return client.request(method, path.format(subject), json=SCHEMA, auth=user).status_code

    refused = client.request(method, path.format("carpet-1"), json=SCHEMA, auth=ALADDIN)
    assert refused.status_code == 403
    assert refused.json() == {
        "error_code": 40301,
        "message": f"User is denied operation {operation} on Subject:carpet-1",
    }
    assert status("cave-1", ALADDIN) != 403
    assert (status("carpet-1", READER) != 403) is (operation == "Read")
    assert status("anything", ADMIN) != 403


@pytest.mark.parametrize(
    "spelling", [":.:carpet-1", "%3A.%3Acarpet-1", "c%61rpet-1", ":.lamp:carpet-1", "cave-1%2F..%2Fcarpet", "Cave-1"]
)
def test_no_spelling_goes_round_the_right(client: TestClient, spelling: str) -> None:
    answer = client.get(f"/subjects/{spelling}/versions", auth=("aladdin", "opensesame"))
    if not spelling.startswith("cave-1"):
        assert answer.status_code == 403, answer.text
    else:
        assert answer.status_code == 404  # one subject with slashes in its name


def test_global_settings_need_their_own_right(client: TestClient) -> None:
    for method, path in (
        ("GET", "/config"),
        ("PUT", "/config"),
        ("GET", "/mode"),
        ("PUT", "/mode"),
        ("DELETE", "/contexts/.a"),
    ):
        body = {"compatibility": "NONE", "mode": "READWRITE"}
        assert client.request(method, path, json=body, auth=ALADDIN).status_code == 403, path
    assert client.put("/config", json={"compatibility": "NONE"}, auth=ADMIN).status_code == 200


def test_associations_are_shown_of_the_subjects_that_a_user_may_read(client: TestClient) -> None:
    """Confluent's serializers for Python ask for them before the first record of each topic."""
    for topic in ("cave-1", "carpet-1"):
        register(client, topic, ADMIN)
        body = {
            "resourceName": topic,
            "resourceNamespace": "here",
            "resourceId": f"id-{topic}",
            "resourceType": "topic",
            "associations": [{"subject": topic, "associationType": "value", "lifecycle": "WEAK"}],
        }
        assert client.post("/associations", json=body, auth=ALADDIN).status_code == 403
        answer = client.post("/associations", json=body, auth=ADMIN)
        assert answer.status_code == 200, answer.text
    for path in ("resources/-/-", "subjects/cave-1", "subjects/carpet-1", "resources/-/unknown"):
        shown = client.get(f"/associations/{path}", auth=ALADDIN)
        assert shown.status_code == 200, shown.text
        expected = ["cave-1"] if path in ("resources/-/-", "subjects/cave-1") else []
        assert [each["subject"] for each in shown.json()] == expected, path
    assert client.delete("/associations/resources/id-cave-1", auth=ALADDIN).status_code == 403


@pytest.mark.parametrize("name", [":.:", "%3A.%3A", ":.lamp:"])
def test_settings_of_a_context_are_not_those_of_a_subject(client: TestClient, file: Path, name: str) -> None:
    """A right on all subjects is none on the settings that all of them fall back on."""
    every = {"username": "aladdin", "operation": "Write", "resource": "Subject:.*"}
    file.write_text(json.dumps({**FILE, "permissions": [every]}))
    for path in (f"/config/{name}", f"/mode/{name}"):
        refused = client.put(path, json={"compatibility": "NONE", "mode": "READONLY"}, auth=ALADDIN)
        assert (refused.status_code, refused.json()["message"]) == (403, "User is denied operation Write on Config:")
        assert client.get(path, auth=ALADDIN).status_code == 403


def test_contexts_are_part_of_a_subject_s_name(client: TestClient) -> None:
    register(client, ":.lamp:cave-1", ALADDIN)
    assert client.get("/subjects/:.genie:cave-1/versions", auth=ALADDIN).status_code == 403


def test_a_changed_file_counts_at_once(client: TestClient, file: Path) -> None:
    assert client.get("/config", auth=READER).status_code == 403
    more = {"username": "reader", "operation": "Read", "resource": "Config:"}
    file.write_text(json.dumps({**FILE, "permissions": [*FILE["permissions"], more]}))
    assert client.get("/config", auth=READER).status_code == 200
    file.write_text("{")  # a slip of the pen changes nothing
    assert client.get("/config", auth=READER).status_code == 200


def test_hashes_are_karapaces_own(file: Path) -> None:
    users = AuthFile(file)
    for name, password in (ADMIN, ALADDIN, READER):
        assert asyncio.run(users.login(name, password)) == LoggedIn(name)
        assert asyncio.run(users.login(name, password)) == LoggedIn(name)  # remembered
        assert asyncio.run(users.login(name, password + "x")) is None
    assert password_hash("sha512", "salt", "opensesame") == FILE["users"][1]["password_hash"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("{", "is not JSON"),
        ({}, "users must be a list"),
        (
            {"users": [{"username": "u", "algorithm": "md5", "salt": "", "password_hash": ""}]},
            "algorithm of u is 'md5'",
        ),
        ({"users": [{"username": 1}]}, "username must be text"),
        ({"users": [], "permissions": [{"username": "u", "operation": "Own", "resource": ""}]}, "'Own': Read or Write"),
        (
            {"users": [], "permissions": [{"username": "u", "operation": "Read", "resource": "("}]},
            "no regular expression",
        ),
    ],
)
def test_errors_in_a_file_are_named(tmp_path: Path, change: Any, told: str) -> None:
    path = tmp_path / "auth.json"
    path.write_text(change if isinstance(change, str) else json.dumps(change))
    with pytest.raises(ConfigError, match=told):
        guards(parse(SecurityConfig, {"registry_authfile": str(path)}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["users", "permissions", "username", "operation", "resource", "salt"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(JSON)
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path = tmp_path_factory.mktemp("auth") / "auth.json"
    path.write_text(json.dumps(value))
    try:
        read_auth_file(path)
    except UsageError:
        pass


def test_paths_without_a_password_need_no_right(file: Path, log: MemoryLog) -> None:
    keys = parse(SecurityConfig, {"registry_authfile": str(file), "authentication.skip.paths": "/schemas/types,/v1/*"})
    with TestClient(served(log, guards=guards(keys))) as client:
        assert client.get("/schemas/types").status_code == 200
        assert client.get("/v1/metadata/id").status_code == 200
        assert client.get("/subjects").status_code == 401


def test_lists_hold_what_the_user_may_read(client: TestClient) -> None:
    cave = register(client, "cave-1", ALADDIN)
    carpet = register(client, "carpet-1", ADMIN, '"long"')
    register(client, "carpet-2", ADMIN, '"long"')
    register(client, "cave-2", ADMIN, '"long"')
    assert client.get("/subjects", auth=ADMIN).json() == ["carpet-1", "carpet-2", "cave-1", "cave-2"]
    assert client.get("/subjects", auth=ALADDIN).json() == ["cave-1", "cave-2"]
    assert client.get("/subjects?limit=1", auth=ALADDIN).json() == ["cave-1"]
    assert client.get("/subjects?subjectPrefix=c", auth=READER).json() == ["carpet-1", "carpet-2"]
    assert [version["subject"] for version in client.get("/schemas", auth=READER).json()] == ["carpet-1", "carpet-2"]
    assert client.get(f"/schemas/ids/{carpet}/subjects", auth=READER).json() == ["carpet-1", "carpet-2"]
    assert [version["subject"] for version in client.get(f"/schemas/ids/{carpet}/versions", auth=ALADDIN).json()] == [
        "cave-2"
    ]
    assert client.get(f"/schemas/ids/{carpet}", auth=READER).status_code == 200
    for path in (f"/schemas/ids/{cave}", f"/schemas/ids/{cave}/schema", f"/schemas/ids/{cave}/versions"):
        hidden = client.get(path, auth=READER)
        assert (hidden.status_code, hidden.json()["error_code"]) == (404, 40403), path


def test_an_id_or_guid_is_nobody_s_way_round(client: TestClient) -> None:
    cave, carpet = register(client, "cave-1", ALADDIN), register(client, "carpet-1", ADMIN, '"long"')
    guid = client.get(f"/schemas/ids/{carpet}", auth=ADMIN).json()["guid"]
    assert client.get(f"/schemas/guids/{guid}/ids", auth=ALADDIN).json() == []
    assert client.get(f"/schemas/guids/{guid}/ids", auth=READER).json() == [{"context": ".", "id": carpet}]
    for path in (f"/schemas/guids/{guid}", f"/schemas/ids/{carpet}"):
        assert client.get(path, auth=ALADDIN).status_code == 404, path
        assert client.get(path, auth=READER).status_code == 200, path
    register(client, ":.lamp:cave-1", ALADDIN, '"int"')
    assert client.get("/contexts", auth=READER).json() == ["."]
    assert client.get("/contexts", auth=ALADDIN).json() == [".", ".lamp"]
    assert client.get("/contexts/.lamp/subjects", auth=READER).json() == []
    # An id in another context, or one that a readable subject has too, is what the user may see of it.
    register(client, "cave-2", ADMIN, '"long"')
    assert client.get(f"/schemas/ids/{carpet}", auth=ALADDIN).json()["subject"] == "cave-2"
    assert cave != carpet


def test_an_alias_is_nobody_s_way_round(client: TestClient) -> None:
    register(client, "carpet-1", ADMIN)
    assert client.put("/config/cave-1", json={"alias": "carpet-1"}, auth=ALADDIN).status_code == 200
    for method, path in (("GET", "/subjects/cave-1/versions/1"), ("POST", "/subjects/cave-1/versions")):
        assert client.request(method, path, json=SCHEMA, auth=ALADDIN).status_code == 403
    assert client.get("/schemas?aliases=true&subjectPrefix=cave", auth=ALADDIN).json() == []


def test_a_reference_is_nobody_s_way_round(client: TestClient) -> None:
    secret = '{"type":"record","name":"Secret","fields":[{"name":"plan","type":"string"}]}'
    register(client, "carpet-1", ADMIN, secret)
    body = {"schema": '["null","Secret"]', "references": [{"name": "Secret", "subject": "carpet-1", "version": 1}]}
    for path in ("/subjects/cave-1/versions", "/subjects/cave-1", "/compatibility/subjects/cave-1/versions"):
        assert client.post(path, json=body, auth=ALADDIN).status_code == 403
    assert client.post("/subjects/cave-1/versions", json=body, auth=ADMIN).status_code == 200


def test_a_namesake_in_another_context_is_nobody_s_way_round(client: TestClient) -> None:
    register(client, ":.genie:cave-1", ADMIN)  # it answers for cave-1 as long as that has no versions
    for method, path in (("GET", "/subjects/cave-1/versions/1"), ("GET", "/subjects/cave-1/versions/latest/schema")):
        assert client.request(method, path, auth=ADMIN).status_code == 200, path
        assert client.request(method, path, auth=ALADDIN).status_code == 403, path
    assert client.post("/subjects/cave-1", json=SCHEMA, auth=ALADDIN).status_code == 403
