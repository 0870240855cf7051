"""The form of responses: members, their order, media types, guids."""

import hashlib
from typing import Any
from uuid import UUID

import pytest
from starlette.testclient import TestClient

from tests.registry.server.routes.steps import Error, record, run

MONEY = record("amount:long", name="Money").replace('"Money",', '"Money","namespace":"shop",')
ORDER = record("total:shop.Money", name="Order")
REFERENCES = [{"name": "shop.Money", "subject": "money", "version": 1}]
METADATA = {"sensitive": ["b", "a"], "properties": {"z": "1", "a": 2}, "tags": {"t": ["y", "x", "y"]}, "unknown": 1}
RULES = {
    "domainRules": [{"type": "CEL", "name": "check", "params": {"z": "1", "a": "2"}, "tags": ["PII"], "expr": "1 > 0"}],
    "migrationRules": [{"name": "up", "type": "JSONATA", "mode": "UPGRADE", "kind": "TRANSFORM", "disabled": True}],
}


@pytest.fixture
def registered(client: TestClient) -> dict[str, Any]:
    client.post("/subjects/money/versions", json={"schema": MONEY})
    body = {"schema": ORDER, "references": REFERENCES, "metadata": METADATA, "ruleSet": RULES}
    answer = client.post("/subjects/orders/versions", json=body)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def test_every_answer_has_confluents_members_in_confluents_order(
    client: TestClient, registered: dict[str, Any]
) -> None:
    schema = ["guid", "schemaType", "schema", "references", "metadata", "ruleSet", "ts", "deleted"]
    version = ["subject", "version", "id", "guid", "schemaType", "references", "metadata", "schema"]
    history = ["ts", "deleted", "ruleSet"]
    assert list(registered) == ["id", "version", "guid", "schemaType", "references", "metadata", "ruleSet", "schema"]
    assert list(client.get("/subjects/orders/versions/1").json()) == [*version, *history]
    assert list(client.get("/subjects/money/versions/1").json()) == [
        "subject",
        "version",
        "id",
        "guid",
        "schemaType",
        "schema",
        "ts",
        "deleted",
    ]
    looked_up = client.post("/subjects/orders", json={"schema": ORDER, "references": REFERENCES})
    assert list(looked_up.json()) == [*version, "ruleSet"]
    assert list(client.get("/schemas/ids/2").json()) == ["subject", "version", *schema]
    assert list(client.get("/schemas/ids/2?fetchMaxId=true").json())[-3:] == ["maxId", "ts", "deleted"]
    assert list(client.get(f"/schemas/guids/{registered['guid']}").json()) == schema
    client.put("/config/alias", json={"alias": "orders"})
    listed = client.get("/schemas?aliases=true&subjectPrefix=alias").json()
    assert list(listed[0]) == [*version, "ts", "deleted", "aliases", "ruleSet"]


def test_metadata_and_rules_come_back_in_one_order_with_their_defaults(
    client: TestClient, registered: dict[str, Any]
) -> None:
    text = client.get("/subjects/orders/versions/1").text
    assert (
        '"metadata":{"tags":{"t":["x","y"]},"properties":{"a":"2","z":"1"},"sensitive":["a","b"]},"schema":' in text
    ), text
    assert (
        '"ruleSet":{"migrationRules":[{"name":"up","kind":"TRANSFORM","mode":"UPGRADE","type":"JSONATA","disabled":true}],'
        '"domainRules":[{"name":"check","kind":"TRANSFORM","mode":"WRITEREAD","type":"CEL","tags":["PII"],'
        '"params":{"a":"2","z":"1"},"expr":"1 > 0","disabled":false}]}' in text
    ), text


def test_a_guid_is_the_hash_of_text_references_metadata_and_rules(
    client: TestClient, registered: dict[str, Any]
) -> None:
    hashed = (
        ORDER.encode() + b"shop.Moneymoney" + (1).to_bytes(4, "big") + b"\x01txya2z1ab"
        b"\x01upTRANSFORMUPGRADEJSONATA\x01checkTRANSFORMWRITEREADCELPIIa2z11 > 0"
    )
    guid = str(UUID(bytes=hashlib.md5(hashed, usedforsecurity=False).digest()))
    assert registered["guid"] == guid
    run(
        client,
        [
            ("GET", f"/schemas/guids/{guid}", None, lambda it: it["schema"] == ORDER),
            ("GET", f"/schemas/guids/{guid}/ids", None, [{"context": ".", "id": 2}]),
            ("POST", "/subjects/:.c:money/versions", {"schema": MONEY}, lambda it: it["id"] == 1),
            (
                "GET",
                f"/schemas/guids/{UUID(bytes=hashlib.md5(MONEY.encode()).digest())}/ids",
                None,
                [{"context": ".", "id": 1}, {"context": ".c", "id": 1}],
            ),
            ("GET", f"/schemas/guids/{UUID(int=1)}", None, Error(404, 40403, f"Schema {UUID(int=1)} not found")),
            ("GET", f"/schemas/guids/{UUID(int=1)}/ids", None, []),
        ],
    )


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("*/*", "application/vnd.schemaregistry.v1+json"),
        ("application/json", "application/json"),
        ("application/vnd.schemaregistry+json, application/json", "application/vnd.schemaregistry+json"),
        ("text/html, application/*;q=0.5", "application/vnd.schemaregistry.v1+json"),
    ],
)
def test_answers_are_what_the_client_accepts(client: TestClient, accept: str, content_type: str) -> None:
    for _ in range(2):
        assert client.get("/subjects", headers={"Accept": accept}).headers["content-type"] == content_type
    refused = client.get("/subjects", headers={"Accept": "text/html"})
    assert (refused.status_code, refused.json()["message"]) == (406, "HTTP 406 Not Acceptable")


def test_requests_are_json_or_nothing(client: TestClient) -> None:
    body = b'{"schema": "\\"int\\""}'
    form = client.post("/subjects/s/versions", content=body, headers={"Content-Type": "text/xml"})
    assert form.status_code == 415
    assert form.json() == {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"}
    for media_type in ("application/vnd.schemaregistry.v1+json; charset=utf-8", "application/octet-stream"):
        sent = client.post("/subjects/s/versions", content=body, headers={"Content-Type": media_type})
        assert sent.json()["id"] == 1
    head = client.head("/subjects/s/versions")
    assert head.status_code == 200
    assert head.content == b""
    assert client.get("/subjects/s/versions/").json() == [1], "a slash at the end changes nothing"


def test_kept_answers_do_not_outlive_what_they_say(client: TestClient) -> None:
    body = {"schema": '"int"'}
    latest = ("GET", "/subjects/s/versions/latest", None)
    run(
        client,
        [
            ("POST", "/subjects/s/versions", body, lambda it: it["version"] == 1),
            ("POST", "/subjects/s/versions", body, lambda it: it["version"] == 1),
            (*latest, lambda it: it["schema"] == '"int"'),
            (*latest, lambda it: it["schema"] == '"int"'),
            ("POST", "/compatibility/subjects/s/versions/latest", {"schema": '"bytes"'}, {"is_compatible": False}),
            ("PUT", "/config/s", {"compatibility": "NONE"}, {"compatibility": "NONE"}),
            ("POST", "/compatibility/subjects/s/versions/latest", {"schema": '"bytes"'}, {"is_compatible": True}),
            ("POST", "/subjects/s/versions", {"schema": '"bytes"'}, lambda it: it["version"] == 2),
            (*latest, lambda it: it["schema"] == '"bytes"'),
            ("DELETE", "/subjects/s/versions/2", None, 2),
            (*latest, lambda it: it["schema"] == '"int"'),
            ("DELETE", "/subjects/s", None, [1]),
            (*latest, Error(404, 40401)),
            ("POST", "/subjects/s/versions", body, lambda it: it["version"] == 3),
        ],
    )


def test_numbers_and_truth_values_of_queries_are_read_as_java_reads_them(client: TestClient) -> None:
    run(
        client,
        [
            ("POST", "/subjects/s/versions", {"schema": '"int"'}, lambda it: it["id"] == 1),
            ("GET", "/subjects?offset=-3&limit=0", None, ["s"]),
            ("GET", "/subjects?limit=1.5", None, Error(404, 404)),
            ("GET", "/subjects?offset=99999999999", None, Error(404, 404)),
            ("GET", "/subjects?deleted=TRUE", None, ["s"]),
            ("GET", "/subjects?deletedOnly=yes", None, ["s"]),
            ("GET", "/subjects?deletedOnly=", None, ["s"]),
            ("GET", "/schemas/ids/-1", None, Error(404, 40403, "Schema -1 not found")),
            ("GET", "/schemas/ids/1e3", None, Error(404, 404)),
            ("GET", "/subjects/s/versions/LATEST", None, lambda it: it["version"] == 1),
            ("GET", "/subjects/s/versions/2147483648", None, Error(422, 42202)),
            ("GET", "/subjects/s/versions/-2", None, Error(422, 42202, "The specified version '-2' is not a valid")),
        ],
    )
