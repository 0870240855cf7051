"""Associations: which topic a subject belongs to."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.registry.server.routes.steps import Error, record, run

A, AB, STRING = record("a:int"), record("a:int", "b:int=0"), '"string"'
OWN = ":.lkc:orders-value"


def request(*associations: dict[str, Any], name: str = "orders", **more: Any) -> dict[str, Any]:
    body = {"resourceName": name, "resourceNamespace": "lkc", "resourceId": f"id-{name}", **more}
    return {**body, "associations": [*associations]}


def subjects(*expected: str) -> object:
    return lambda it: [each["subject"] for each in it] == [*expected]


def test_a_strong_association_comes_with_its_schema_and_goes_with_its_topic(client: TestClient) -> None:
    def made(it: Any) -> bool:
        info = it["associations"][0]
        assert list(it) == ["resourceName", "resourceNamespace", "resourceId", "resourceType", "associations"]
        assert list(info) == ["subject", "associationType", "lifecycle", "schema"]
        return bool(info["subject"] == OWN and info["lifecycle"] == "STRONG" and info["schema"]["schema"] == A)

    def shown(it: Any) -> bool:
        assert list(it[0]) == [
            *("subject", "guid", "resourceName", "resourceNamespace", "resourceId", "resourceType"),
            *("associationType", "lifecycle", "createTs", "updateTs"),
        ]
        return bool(it[0]["resourceType"] == "topic")

    body = request({"schema": {"schema": A}})
    referring = {"schema": record("r:R", name="X"), "references": [{"name": "R", "subject": OWN, "version": 1}]}
    run(
        client,
        [
            ("POST", "/associations?dryRun=true", body, lambda it: "associations" not in it),
            ("GET", "/subjects", None, []),
            ("POST", "/associations", body, made),
            ("POST", "/associations", body, lambda it: "associations" not in it),
            ("GET", "/associations/resources/id-orders", None, shown),
            ("GET", "/associations/resources/lkc/orders", None, subjects(OWN)),
            ("GET", "/associations/resources/-/orders?lifecycle=WEAK", None, []),
            ("GET", "/associations/resources/lkc/-?associationType=value", None, subjects(OWN)),
            ("GET", f"/associations/subjects/{OWN}", None, subjects(OWN)),
            ("GET", f"/associations/subjects/{OWN}?associationType=key", None, []),
            ("GET", "/contexts", None, [".", ".lkc"]),
            ("POST", f"/subjects/{OWN}/versions", {"schema": AB}, lambda it: it["version"] == 2),
            ("POST", "/associations", request({"schema": {"schema": STRING}}), Error(409, 40903, "orders")),
            ("POST", "/subjects/x/versions", referring, Error(422, 42205, "has a strong association and cannot be")),
            ("DELETE", f"/subjects/{OWN}", None, Error(409, 40904)),
            (
                "DELETE",
                "/associations/resources/id-orders",
                None,
                Error(409, 40908, "The association of type  'value'"),
            ),
            ("DELETE", "/associations/resources/id-orders?cascadeLifecycle=true&dryRun=true", None, None),
            ("DELETE", "/associations/resources/id-orders?cascadeLifecycle=true", None, None),
            ("GET", "/subjects?deleted=true", None, []),
            ("DELETE", "/associations/resources/id-orders", None, Error(404, 40410, "Association for 'id-orders' not")),
        ],
    )


def test_weak_associations_share_a_subject(client: TestClient) -> None:
    weak = {"subject": "shared", "lifecycle": "WEAK"}
    run(
        client,
        [
            ("POST", "/associations", request(weak), Error(409, 40907, "No active (non-deleted) version exists for")),
            ("POST", "/subjects/shared/versions", {"schema": A}, lambda it: it["id"] == 1),
            ("POST", "/associations", request(weak), lambda it: len(it["associations"]) == 1),
            ("PUT", "/associations/resources/id-bills", request(weak, name="bills"), lambda it: "associations" in it),
            ("GET", "/associations/subjects/shared", None, subjects("shared", "shared")),
            ("GET", "/schemas?lifecycle=WEAK", None, lambda it: len(it[0]["associations"]) == 2),
            ("GET", "/schemas?lifecycle=STRONG", None, []),
            ("GET", "/schemas?lifecycle=NONE", None, []),
            ("GET", "/schemas?resourceType=other", None, []),
            ("DELETE", "/subjects/shared/versions/1", None, Error(409, 40907)),
            ("DELETE", "/subjects/shared", None, Error(409, 40904)),
            ("DELETE", "/associations/resources/id-orders", None, None),
            ("DELETE", "/associations/resources/id-bills?associationType=key", None, Error(404, 40410)),
            ("DELETE", "/associations/resources/id-bills?associationType=value", None, None),
            ("GET", "/schemas?associationType=value&lifecycle=NONE", None, lambda it: len(it) == 1),
            ("DELETE", "/subjects/shared", None, [1]),
        ],
    )


@pytest.mark.parametrize(
    ("body", "member", "says"),
    [
        (request(name=""), "resourceName", "cannot be null or empty"),
        (request(name="a.b"), "resourceName", "illegal character '.'"),
        (request(name="a" * 257), "resourceName", "exceeds max length of 256"),
        (request({}, resourceId=None), "resourceId", "cannot be null or empty"),
        (request({}, resourceType="group"), "resourceType", "must be 'topic'"),
        (request(), "associations", "cannot be null or empty"),
        (request({"subject": "s", "associationType": "both"}), "associationType", "must be either 'key' or 'value'"),
        (request({"subject": "s"}, {"subject": "t"}), "associationType", "may only appear once per request"),
        (request({}), "subject", "must be provided for WEAK associations"),
        (request({"subject": OWN}), "subject", f"WEAK associations cannot use subject '{OWN}'"),
        (request({"subject": "s", "frozen": True}), "frozen", "lifecycle of WEAK cannot be frozen=true"),
        (
            request({"lifecycle": "WEAK", "schema": {"schema": A}}),
            "lifecycle",
            "cannot be WEAK when schema is provided",
        ),
        (request({"subject": "s", "schema": {"schema": A}}), "subject", f"must use subject '{OWN}'"),
        (request({"lifecycle": "STRONG"}), "schema", "schema must be provided when creating a frozen association"),
    ],
)
def test_an_invalid_association_is_42212(client: TestClient, body: Any, member: str, says: str) -> None:
    error = Error(422, 42212, f"an invalid value for property: '{member}', detail: ")
    run(client, [("POST", "/associations", body, error), ("POST", "/associations", body, Error(422, 42212, says))])


def test_an_update_keeps_to_what_an_association_is(client: TestClient) -> None:
    path = "/associations/resources/id-orders"
    strong = {"schema": {"schema": A}}
    run(
        client,
        [
            ("PUT", path, request(strong), Error(422, 42212, "must be created with the topic")),
            ("PUT", path, request({"lifecycle": "STRONG"}), Error(422, 42212, "cannot be STRONG when creating")),
            ("PUT", path, request({}, resourceId="other"), Error(422, 42212, "does not match the resource ID")),
            ("POST", "/associations", request(strong), lambda it: "associations" in it),
            ("PUT", path, request({"lifecycle": "WEAK"}), Error(422, 42212)),
            ("PUT", path, request({"subject": "other", "lifecycle": "STRONG"}), Error(422, 42212)),
            ("PUT", path, request({"lifecycle": "STRONG"}), lambda it: "associations" not in it),
            ("POST", "/subjects/k/versions", {"schema": STRING}, lambda it: it["id"] == 1),
            (
                "PUT",
                path,
                request({"subject": "k", "associationType": "key"}),
                Error(422, 42212, "must have the same lifecycle, but got value=STRONG, key=WEAK"),
            ),
        ],
    )


def test_batches_answer_for_each_request(client: TestClient) -> None:
    def outcomes(*expected: object) -> object:
        return lambda it: (
            [each["error"]["error_code"] if "error" in each else "ok" for each in it["results"]] == [*expected]
        )

    create = {"opType": "CREATE", "schema": {"schema": A}}
    weak = {"opType": "UPSERT", "subject": "none"}
    delete = {"opType": "DELETE", "cascadeLifecycle": True}
    changes = {"requests": [request(create), request(weak, name="bills"), request(create, name="a.b")]}
    run(
        client,
        [
            ("POST", "/associations:batchMutate?dryRun=true", changes, outcomes("ok", 40907, 42212)),
            ("POST", "/associations:batchMutate", changes, outcomes("ok", 40907, 42212)),
            (
                "POST",
                "/associations:batchGet?includeSchemas=true",
                {
                    "requests": [
                        {"resourceId": "id-orders"},
                        {"resourceName": "x"},
                        {"resourceName": "x", "resourceNamespace": "y"},
                    ]
                },
                lambda it: (
                    it["results"][0]["result"]["associations"][0]["schema"]["schema"] == A
                    and it["results"][1]["error"]["error_code"] == 500
                    and it["results"][2]["result"]["resourceName"] == "x"
                ),
            ),
            ("POST", "/associations:batchMutate", {"requests": [request(delete)]}, outcomes("ok")),
            ("GET", "/associations/resources/lkc/-", None, []),
            ("POST", "/associations:batchGet", {"requests": []}, Error(422, 42212)),
            ("POST", "/associations:batchMutate", {}, Error(422, 42212)),
        ],
    )


def test_associations_outlive_a_restart(client: TestClient, log: Any, reopened: Any) -> None:
    client.post("/associations", json=request({"schema": {"schema": A}}))
    before = client.get("/associations/resources/id-orders").json()
    key = next(key for key, _ in log.records if b"ASSOC" in key)
    assert key == (
        b'{"keytype":"ASSOC","tenant":"default","resourceName":"orders","resourceNamespace":"lkc","resourceType":"topic",'
        b'"associationType":"value","subject":":.lkc:orders-value","magic":0}'
    )
    with reopened(log) as again:
        assert again.get("/associations/resources/id-orders").json() == before
