from typing import Any

import pytest
from starlette.testclient import TestClient


def error(answer: Any) -> tuple[int, int]:
    return answer.status_code, answer.json()["error_code"]


def test_levels_are_set_shown_and_deleted(client: TestClient) -> None:
    assert client.get("/config").json() == {"compatibilityLevel": "BACKWARD"}
    assert client.put("/config", json={"compatibility": "full"}).json() == {"compatibility": "FULL"}
    assert client.get("/config").json() == {"compatibilityLevel": "FULL"}
    assert client.get("/config/s?defaultToGlobal=true").json() == {"compatibilityLevel": "FULL"}
    assert client.put("/config/s", json={"compatibility": "NONE", "normalize": True}).json() == {
        "compatibility": "NONE",
        "normalize": True,
    }
    assert client.put("/config/s", json={"normalize": None}).json() == {"compatibility": "NONE"}
    assert client.get("/config/s").json() == {"compatibilityLevel": "NONE"}
    assert client.delete("/config/s").json() == {"compatibilityLevel": "NONE"}
    assert error(client.delete("/config/s")) == (404, 40401)
    assert client.delete("/config").json() == {"compatibilityLevel": "FULL"}
    assert client.get("/config").json() == {"compatibilityLevel": "BACKWARD"}


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/config", {"compatibility": "SIDEWAYS"}, (422, 42203)),
        ("/config/s", {"compatibility": 3}, (422, 42203)),
        ("/config/s", {"compatibility": ""}, (422, 42203)),
        ("/config/s", {"normalize": "yes"}, (400, 400)),
        ("/config/s", {"alias": ["x"]}, (400, 400)),
        ("/config/s", {"overrideMetadata": {"properties": []}}, (400, 400)),
        ("/config/s", {"defaultMetadata": {"tags": {"x": "y"}}}, (400, 400)),
        ("/config/s", {"defaultRuleSet": {"domainRules": [{"name": "r"}]}}, (422, 42210)),
        ("/config/s", {"overrideRuleSet": {"domainRules": [{"name": "r", "type": "CEL", "mode": "UP"}]}}, (400, 400)),
        ("/config/__GLOBAL", {"compatibility": "NONE"}, (422, 42208)),
        ("/mode", {"mode": "SLEEPING"}, (422, 42204)),
        ("/mode/s", {"mode": 1}, (422, 42204)),
    ],
)
def test_a_bad_setting_is_a_clean_error(client: TestClient, path: str, body: Any, expected: tuple[int, int]) -> None:
    assert error(client.put(path, json=body)) == expected


def test_a_subjects_level_decides_what_is_accepted(client: TestClient) -> None:
    client.post("/subjects/s/versions", json={"schema": '"int"'})
    assert error(client.post("/subjects/s/versions", json={"schema": '"string"'})) == (409, 40901)
    client.put("/config/s", json={"compatibility": "NONE"})
    assert client.post("/subjects/s/versions", json={"schema": '"string"'}).status_code == 200
    assert client.post("/subjects/t/versions?force=true", json={"schema": '"string"'}).status_code == 200
    assert client.post("/subjects/t/versions?force=true", json={"schema": '"int"'}).status_code == 200


def test_compatibility_is_checked_without_registering(client: TestClient) -> None:
    path = "/compatibility/subjects/s/versions"
    body = {"schema": '"int"'}
    assert client.post(f"{path}/latest", json=body).json() == {"is_compatible": True}
    assert client.post(path, json=body).json() == {"is_compatible": True}
    client.post("/subjects/s/versions", json={"schema": '"string"'})
    assert client.post(f"{path}/latest", json=body).json() == {"is_compatible": False}
    verbose = client.post(f"{path}/1?verbose=true", json=body).json()
    assert verbose["is_compatible"] is False
    assert verbose["messages"] == [
        "{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the new schema does not match with "
        "the old schema', additionalInfo:'reader type: INT not compatible with writer type: STRING'}",
        "{oldSchemaVersion: 1}",
        "{oldSchema: '\"string\"'}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]
    assert client.post(f"{path}/latest?verbose=true", json={"schema": '"bytes"'}).json() == {
        "is_compatible": True,
        "messages": [],
    }
    assert error(client.post(f"{path}/7", json=body)) == (404, 40402)
    assert error(client.post(f"{path}/x", json=body)) == (422, 42202)
    assert error(client.post(f"{path}/latest", json={"schema": "{"})) == (422, 42201)
    assert client.post(f"{path}/latest?verbose=true", json={"schema": "{"}).json()["is_compatible"] is False


def test_groups_of_versions_evolve_apart(client: TestClient) -> None:
    client.put("/config/s", json={"compatibilityGroup": "major"})

    def sent(schema: str, major: str) -> int:
        body = {"schema": schema, "metadata": {"properties": {"major": major}}}
        return client.post("/subjects/s/versions", json=body).status_code

    assert sent('"int"', "1") == 200
    assert sent('"string"', "1") == 409
    assert sent('"string"', "2") == 200


def test_modes_forbid_and_allow(client: TestClient) -> None:
    assert client.get("/mode").json() == {"mode": "READWRITE"}
    assert client.put("/mode/s", json={"mode": "READONLY"}).json() == {"mode": "READONLY"}
    assert client.get("/mode/s").json() == {"mode": "READONLY"}
    assert client.get("/mode/t?defaultToGlobal=true").json() == {"mode": "READWRITE"}
    assert error(client.post("/subjects/s/versions", json={"schema": '"int"'})) == (422, 42205)
    assert error(client.put("/config/s", json={"compatibility": "NONE"})) == (422, 42205)
    assert client.delete("/mode/s").json() == {"mode": "READONLY"}
    assert error(client.delete("/mode/s")) == (404, 40401)
    client.put("/mode/s", json={"mode": "READWRITE"})
    client.put("/mode", json={"mode": "READONLY_OVERRIDE"})
    assert error(client.post("/subjects/s/versions", json={"schema": '"int"'})) == (422, 42205)


def test_import_keeps_ids_and_versions(client: TestClient) -> None:
    client.post("/subjects/s/versions", json={"schema": '"int"'})
    assert error(client.put("/mode/s", json={"mode": "IMPORT"})) == (422, 42205)
    client.delete("/subjects/s")
    assert client.put("/mode/s", json={"mode": "IMPORT"}).status_code == 200
    assert client.get("/subjects?deleted=true").json() == []
    assert error(client.post("/subjects/s/versions", json={"schema": '"int"'})) == (422, 42205)
    sent = {"schema": '"string"', "id": 100, "version": 7}
    assert client.post("/subjects/s/versions", json=sent).json()["id"] == 100
    assert client.get("/subjects/s/versions").json() == [7]
    other = {"schema": '"long"', "id": 100}
    assert error(client.post("/subjects/s/versions", json=other)) == (422, 42205)
    client.put("/mode/s", json={"mode": "READWRITE"})
    assert client.post("/subjects/t/versions", json={"schema": '"long"'}).json()["id"] == 101
