from starlette.testclient import TestClient


def register(client: TestClient, subject: str, schema: str) -> int:
    return int(client.post(f"/subjects/{subject}/versions", json={"schema": schema}).json()["id"])


def test_a_schema_is_found_by_its_id(client: TestClient) -> None:
    schema_id = register(client, "s", '"int"')
    register(client, "t", '"int"')
    register(client, "u", '"string"')
    assert client.get(f"/schemas/ids/{schema_id}").json()["schema"] == '"int"'
    assert client.get(f"/schemas/ids/{schema_id}?fetchMaxId=true").json()["maxId"] == 2
    assert client.get(f"/schemas/ids/{schema_id}/schema").text == '"int"'
    assert client.get(f"/schemas/ids/{schema_id}/subjects").json() == ["s", "t"]
    versions = [{"subject": "s", "version": 1}, {"subject": "t", "version": 1}]
    assert client.get(f"/schemas/ids/{schema_id}/versions").json() == versions
    client.delete("/subjects/s")
    assert client.get(f"/schemas/ids/{schema_id}/subjects").json() == ["t"]
    assert client.get(f"/schemas/ids/{schema_id}/subjects?deleted=true").json() == ["s", "t"]


def test_all_schemas_are_listed(client: TestClient) -> None:
    register(client, "s", '"int"')
    register(client, "s", '"long"')
    register(client, "t", '"int"')
    listed = [(item["subject"], item["version"], item["id"]) for item in client.get("/schemas").json()]
    assert listed == [("s", 1, 1), ("s", 2, 2), ("t", 1, 1)]
    latest = [(item["subject"], item["version"]) for item in client.get("/schemas?latestOnly=true").json()]
    assert latest == [("s", 2), ("t", 1)]
    assert len(client.get("/schemas?subjectPrefix=t").json()) == 1
    assert [item["id"] for item in client.get("/schemas?offset=1&limit=1").json()] == [2]


def test_types_and_metadata(client: TestClient) -> None:
    assert client.get("/schemas/types").json() == ["JSON", "PROTOBUF", "AVRO"]
    assert client.get("/").json() == {}
    assert client.get("/v1/metadata/id").json() == {
        "scope": {
            "path": [],
            "clusters": {"kafka-cluster": "test-cluster", "schema-registry-cluster": "schema-registry"},
        }
    }
    assert b"registry_log_records_total" in client.get("/metrics").content
