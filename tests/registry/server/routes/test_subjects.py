import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


def record(*fields: tuple[str, Any], name: str = "R", **more: Any) -> str:
    described = [
        {"name": n, "type": t} if not isinstance(t, dict) or "type" not in t else {"name": n, **t} for n, t in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": described, **more})


A = record(("a", "int"))
AB = record(("a", "int"), ("b", {"type": "int", "default": 0}))
B_REQUIRED = record(("a", "int"), ("b", "int"))


def register(client: TestClient, subject: str, schema: str, **more: Any) -> int:
    answer = client.post(f"/subjects/{subject}/versions", json={"schema": schema, **more})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["id"])


def error(answer: Any) -> tuple[int, int]:
    body = answer.json()
    assert set(body) == {"error_code", "message"}
    assert isinstance(body["message"], str)
    assert answer.headers["content-type"] == MEDIA_TYPE
    return answer.status_code, body["error_code"]


def test_the_same_schema_has_the_same_id_in_every_subject(client: TestClient) -> None:
    first = register(client, "s1", A)
    assert register(client, "s1", A) == first
    assert register(client, "s2", A) == first
    assert register(client, "s2", AB) == first + 1
    assert client.get("/subjects/s1/versions").json() == [1]
    assert client.get("/subjects/s2/versions").json() == [1, 2]


def test_unknown_members_of_a_request_are_passed_over(client: TestClient) -> None:
    answer = client.post("/subjects/s/versions", json={"schema": A, "unknown": [1], "schemaTagsToAdd": None})
    assert answer.json()["id"] == 1
    assert answer.headers["content-type"] == MEDIA_TYPE


def test_an_incompatible_schema_is_refused_with_40901(client: TestClient) -> None:
    register(client, "s", A)
    answer = client.post("/subjects/s/versions", json={"schema": B_REQUIRED})
    assert error(answer) == (409, 40901)
    message = answer.json()["message"]
    assert message.startswith(
        'Schema being registered is incompatible with an earlier schema for subject "s", details: '
        "[{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'b' at path '/fields/1' in the new "
        "schema has no default value and is missing in the old schema', additionalInfo:'b'}, {oldSchemaVersion: 1}"
    )
    assert client.get("/subjects/s/versions").json() == [1]


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/subjects/s/versions", {"schema": "{"}, (422, 42201)),
        ("/subjects/s/versions", {"schema": '"x.Unknown"'}, (422, 42201)),
        ("/subjects/s/versions", {"schema": ""}, (422, 42201)),
        ("/subjects/s/versions", {}, (422, 42201)),
        ("/subjects/s/versions", {"schema": "[" * 5000 + "]" * 5000}, (422, 42201)),
        ("/subjects/s/versions", {"schema": '"int"', "schemaType": "THRIFT"}, (422, 42201)),
        (
            "/subjects/s/versions",
            {"schema": '"int"', "references": [{"name": "a", "subject": "b", "version": 1}]},
            (422, 42201),
        ),
        ("/subjects/s/versions", {"schema": '"int"', "references": "x"}, (400, 400)),
        ("/subjects/s/versions", {"schema": '"int"', "references": [{"name": "a"}]}, (422, 42201)),
        ("/subjects/s/versions", {"schema": 3}, (422, 42201)),
        ("/subjects/s/versions", [1], (400, 400)),
        ("/subjects/s/versions", {"schema": '"int"', "id": 7}, (422, 42205)),
        ("/subjects/s/versions", {"schema": '"int"', "version": 3}, (422, 42201)),
        ("/subjects/s/versions", {"schema": '"int"', "id": "x"}, (400, 400)),
        ("/subjects/a%00b/versions", {"schema": '"int"'}, (422, 42208)),
        ("/subjects/__GLOBAL/versions", {"schema": '"int"'}, (422, 42208)),
        ("/subjects/s", {"schema": '"int"'}, (404, 40401)),
    ],
)
def test_a_bad_registration_is_a_clean_error(
    client: TestClient, path: str, body: Any, expected: tuple[int, int]
) -> None:
    assert error(client.post(path, json=body)) == expected
    assert client.get("/subjects").json() == []


def test_half_a_surrogate_pair_is_kept_and_comes_back(
    client: TestClient, log: Any, reopened: Callable[..., TestClient]
) -> None:
    body = b'{"schema":"{\\"type\\":\\"fixed\\",\\"name\\":\\"F\\",\\"size\\":1,\\"doc\\":\\"\\ud800\\"}"}'
    assert client.post("/subjects/s/versions", content=body).json()["id"] == 1
    shown = client.get("/subjects/s/versions/1").json()
    assert json.loads(shown["schema"])["doc"] == "\ud800"
    with reopened(log) as again:
        assert again.get("/subjects/s/versions/1").json() == shown
        assert again.post("/subjects/s/versions", content=body).json()["id"] == 1


def test_a_body_that_is_not_json_is_400(client: TestClient) -> None:
    assert error(client.post("/subjects/s/versions", content=b"{nope"))[0] == 400
    assert error(client.post("/subjects/s/versions", content=b"\xff\xfe"))[0] == 400
    assert error(client.post("/subjects/s/versions", content=b"[" * 100_000))[0] == 400


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/subjects/none/versions", (404, 40401)),
        ("GET", "/subjects/none/versions/1", (404, 40401)),
        ("GET", "/subjects/s/versions/9", (404, 40402)),
        ("GET", "/subjects/s/versions/0", (422, 42202)),
        ("GET", "/subjects/s/versions/x", (422, 42202)),
        ("GET", "/subjects/s/versions/99999999999999", (422, 42202)),
        ("GET", "/schemas/ids/9", (404, 40403)),
        ("GET", "/schemas/ids/x", (404, 404)),
        ("GET", "/schemas/guids/x", (404, 40403)),
        ("GET", "/schemas/ids/9/subjects", (404, 40403)),
        ("DELETE", "/subjects/s/versions/x", (422, 42202)),
        ("POST", "/subjects/s", (422, 422)),
        ("DELETE", "/subjects/none", (404, 40401)),
        ("DELETE", "/subjects/s/versions/9", (404, 40402)),
        ("DELETE", "/subjects/s?permanent=true", (404, 40405)),
        ("DELETE", "/subjects/s/versions/1?permanent=true", (404, 40407)),
        ("GET", "/config/s", (404, 40408)),
        ("GET", "/mode/s", (404, 40409)),
        ("GET", "/nowhere", (404, 404)),
        ("PATCH", "/subjects", (405, 405)),
        ("GET", "/subjects?limit=x", (404, 404)),
    ],
)
def test_missing_subjects_and_versions_are_reported(
    client: TestClient, method: str, path: str, expected: tuple[int, int]
) -> None:
    register(client, "s", A)
    assert error(client.request(method, path)) == expected


def test_lookup_of_an_unregistered_schema_is_40403(client: TestClient) -> None:
    register(client, "s", A)
    assert error(client.post("/subjects/s", json={"schema": AB})) == (404, 40403)
    assert client.post("/subjects/s", json={"schema": ""}).json()["version"] == 1


def test_normalize_finds_the_same_schema_in_other_words(client: TestClient) -> None:
    plain = record(("a", {"type": "int", "x": 1}))
    other = record(("a", {"x": 1, "type": "int"}), doc="")
    first = register(client, "s", plain)
    assert error(client.post("/subjects/s", json={"schema": other})) == (404, 40403)
    assert client.post("/subjects/s?normalize=true", json={"schema": other}).json()["id"] == first
    answer = client.post("/subjects/s/versions?normalize=true", json={"schema": other})
    assert answer.json()["id"] == first


@pytest.mark.parametrize(
    ("schema", "other", "same"),
    [
        (record(("a", {"type": "int", "x": 1, "y": 2})), record(("a", {"y": 2, "x": 1, "type": "int"})), True),
        (record(("a", "int"), aliases=["B", "C"]), record(("a", "int"), aliases=["C", "B"]), True),
        (
            record(("a", {"type": "int", "x": {"p": 1, "q": 2}})),
            record(("a", {"type": "int", "x": {"q": 2, "p": 1}})),
            True,
        ),
        (record(("a", {"type": "int", "x": [1, 2]})), record(("a", {"type": "int", "x": [2, 1]})), False),
        (record(("a", "int"), ("b", "long")), record(("b", "int"), ("a", "long")), False),
        (record(("a", {"type": "int", "doc": "ab"})), record(("a", {"type": "int", "doc": "ba"})), False),
    ],
)
def test_attributes_and_aliases_in_another_order_are_the_same_schema(
    client: TestClient, schema: str, other: str, same: bool
) -> None:
    first = register(client, "s", schema)
    client.put("/config/s", json={"compatibility": "NONE"})
    answer = client.post("/subjects/s", json={"schema": other})
    assert answer.status_code == (200 if same else 404), answer.text
    assert (register(client, "s", other) == first) is same


def test_soft_then_permanent_deletion_of_a_version(client: TestClient) -> None:
    register(client, "s", A)
    register(client, "s", AB)
    assert client.delete("/subjects/s/versions/1").json() == 1
    assert client.get("/subjects/s/versions").json() == [2]
    assert client.get("/subjects/s/versions?deleted=true").json() == [1, 2]
    assert client.get("/subjects/s/versions?deletedOnly=true").json() == [1]
    assert client.get("/subjects/s/versions?deletedAsNegative=true").json() == [-1, 2]
    assert error(client.get("/subjects/s/versions/1")) == (404, 40402)
    assert client.get("/subjects/s/versions/1?deleted=true").json()["id"] == 1
    assert client.get("/schemas/ids/1").status_code == 200
    assert error(client.delete("/subjects/s/versions/1")) == (404, 40406)
    assert client.delete("/subjects/s/versions/1?permanent=true").json() == 1
    assert client.get("/subjects/s/versions?deleted=true").json() == [2]
    assert error(client.get("/schemas/ids/1")) == (404, 40403)


def test_soft_then_permanent_deletion_of_a_subject(client: TestClient) -> None:
    register(client, "s", A)
    register(client, "s", AB)
    client.put("/config/s", json={"compatibility": "NONE"})
    assert client.delete("/subjects/s").json() == [1, 2]
    assert client.get("/subjects").json() == []
    assert client.get("/subjects?deleted=true").json() == ["s"]
    assert client.get("/subjects?deletedOnly=true").json() == ["s"]
    assert error(client.delete("/subjects/s")) == (404, 40404)
    assert client.delete("/subjects/s?permanent=true").json() == [1, 2]
    assert client.get("/subjects?deleted=true").json() == []
    assert error(client.get("/config/s")) == (404, 40408)


def test_a_deleted_schema_registered_again_keeps_its_id(client: TestClient) -> None:
    first = register(client, "s", A)
    client.delete("/subjects/s")
    assert register(client, "s", A) == first
    assert client.get("/subjects/s/versions").json() == [2]
    assert client.get("/subjects/s/versions?deleted=true").json() == [2]


def test_ids_are_not_used_again_after_a_permanent_deletion(client: TestClient) -> None:
    register(client, "s", A)
    client.delete("/subjects/s")
    client.delete("/subjects/s?permanent=true")
    assert register(client, "s", AB) == 2


def test_references_are_resolved_and_protect_what_they_refer_to(client: TestClient) -> None:
    register(client, "money", record(("amount", "long"), name="shop.Money"))
    order = record(("total", "shop.Money"), name="shop.Order")
    refs = [{"name": "shop.Money", "subject": "money", "version": 1}]
    order_id = register(client, "orders", order, references=refs)
    shown = client.get("/subjects/orders/versions/1").json()
    assert shown["references"] == refs
    assert '"type":"Money"' in shown["schema"].replace("shop.", "")
    assert client.get("/subjects/money/versions/1/referencedby").json() == [order_id]
    assert error(client.delete("/subjects/money/versions/1")) == (422, 42206)
    assert error(client.delete("/subjects/money")) == (422, 42206)
    client.delete("/subjects/orders")
    assert client.get("/subjects/money/versions/1/referencedby").json() == []
    assert client.delete("/subjects/money").json() == [1]
    assert error(client.delete("/subjects/money?permanent=true")) == (422, 42206)


def test_a_schema_with_its_references_written_out_is_the_same(client: TestClient) -> None:
    register(client, "money", record(("amount", "long"), name="shop.Money"))
    refs = [{"name": "shop.Money", "subject": "money", "version": -1}]
    first = register(client, "orders", record(("total", "shop.Money"), name="shop.Order"), references=refs)
    money = json.loads(record(("amount", "long"), name="Money"))
    written_out = record(("total", {"type": money}), name="shop.Order")
    assert client.post("/subjects/orders", json={"schema": written_out}).json()["id"] == first
    assert register(client, "orders", written_out) == first
    assert client.get("/subjects/orders/versions/1").json()["references"][0]["version"] == 1


def test_metadata_and_rules_are_kept_and_make_a_version(client: TestClient) -> None:
    metadata = {"properties": {"owner": "sales"}}
    first = register(client, "s", A)
    second = register(client, "s", A, metadata=metadata, ruleSet={"domainRules": []})
    assert second != first
    assert client.get("/subjects/s/versions/2").json()["metadata"] == metadata
    assert register(client, "s", A) == first, "what is registered as it is sent is found as it is sent"
    assert register(client, "s", "", metadata={"properties": {"owner": "x"}}) == second + 1


def test_subjects_are_listed_sorted_by_prefix_and_page(client: TestClient) -> None:
    for subject in ("b", "a-value", "a-key", "c%2Fd"):
        register(client, subject, A)
    assert client.get("/subjects").json() == ["a-key", "a-value", "b", "c/d"]
    assert client.get("/subjects?subjectPrefix=a-").json() == ["a-key", "a-value"]
    assert client.get("/subjects?offset=1&limit=2").json() == ["a-value", "b"]
    assert client.get("/subjects/c%2Fd/versions").json() == [1]


def test_a_context_has_ids_of_its_own(client: TestClient) -> None:
    register(client, "s", A)
    register(client, "s", AB)
    assert register(client, ":.staging:s", AB) == 1
    assert register(client, ":.:s", A) == 1
    assert client.get("/subjects").json() == [":.staging:s", "s"]
    assert client.get("/schemas/ids/1?subject=:.staging:s").json() != client.get("/schemas/ids/1").json()
    assert client.get("/contexts").json() == [".", ".staging"]


def test_everything_is_there_after_a_restart(client: TestClient, log: Any, reopened: Callable[..., TestClient]) -> None:
    register(client, "s", A)
    register(client, "s", AB)
    register(client, "t", AB)
    client.delete("/subjects/s/versions/1")
    client.delete("/subjects/t")
    client.put("/config", json={"compatibility": "FULL"})
    client.put("/mode/x", json={"mode": "READONLY"})
    paths = ["/subjects", "/subjects?deleted=true", "/schemas?deleted=true", "/config", "/mode/x", "/schemas/ids/1"]
    before = [client.get(path).json() for path in paths]
    with reopened(log) as again:
        assert [again.get(path).json() for path in paths] == before
        assert register(again, "u", A) == 1
        assert register(again, "u2", '"string"') == 3
