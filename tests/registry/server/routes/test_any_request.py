"""Every request gets one of the API's responses: no path, query or body causes a 5xx."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from registry.server.routes import ENDPOINTS

NAMES = [
    "s",
    "t",
    ":.c:s",
    ":.c:",
    ":.:s",
    ":.c",
    "*",
    ":*:",
    "a%2Fb",
    "%00",
    "%ff",
    "latest",
    "-1",
    "1",
    "2",
    "",
    ".c",
    "x:y",
]
VALUES = ["true", "1", "-1", "x", "", ":.c:", ":*:", "resolved", "*", "99999999999999", "é"]
SCHEMAS = ["", '"int"', "{", '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}', '"x.Unknown"', "[]"]
ODD = st.sampled_from([None, 0, -1, 1, 2**31, 1.5, True, "x", "", [], {}, [None], ["a"], {"a": None}, [{"name": "a"}]])
MEMBERS = {
    "schema": st.sampled_from(SCHEMAS) | ODD,
    "schemaType": st.sampled_from(["AVRO", "avro", "JSON", "THRIFT"]) | ODD,
    "references": st.lists(
        st.fixed_dictionaries({"name": ODD, "subject": st.sampled_from(["s", ":.c:s"]) | ODD, "version": ODD}),
        max_size=2,
    )
    | ODD,
    "metadata": st.fixed_dictionaries({}, optional={"tags": ODD, "properties": ODD, "sensitive": ODD}) | ODD,
    "ruleSet": st.fixed_dictionaries({}, optional={"domainRules": ODD, "enableAt": ODD}) | ODD,
    "id": ODD,
    "version": ODD,
    "newVersion": ODD,
    "schemaTagsToAdd": st.just([{"schemaEntity": {"entityPath": "R.a", "entityType": "sr_field"}, "tags": ["T"]}])
    | ODD,
    "tagsToAdd": ODD,
    "propagateSchemaTags": ODD,
    "compatibility": st.sampled_from(["NONE", "full"]) | ODD,
    "alias": st.sampled_from(["s", ":.c:s"]) | ODD,
    "normalize": ODD,
    "mode": st.sampled_from(["IMPORT", "READWRITE", "FORWARD"]) | ODD,
    "overrideMetadata": ODD,
    "defaultRuleSet": ODD,
}
BODIES = st.fixed_dictionaries({}, optional=MEMBERS).map(lambda value: json.dumps(value).encode()) | st.binary(
    max_size=20
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes]:
    endpoint = draw(st.sampled_from(ENDPOINTS))
    segments = [
        draw(st.sampled_from(NAMES)) if part.startswith("{") else part for part in endpoint.path.strip("/").split("/")
    ]
    before = draw(st.sampled_from(["", "", "/contexts/c", "/contexts/:.c:", "/contexts/x:y"]))
    asked = draw(st.lists(st.sampled_from(endpoint.query), max_size=3)) if endpoint.query else []
    query = "&".join(f"{each.name}={draw(st.sampled_from(VALUES))}" for each in asked)
    return endpoint.method, f"{before}/{'/'.join(segments)}?{query}", draw(BODIES)


@pytest.fixture
def answering(client: TestClient) -> TestClient:
    client.post("/subjects/s/versions", json={"schema": SCHEMAS[3]})
    client.post("/subjects/:.c:s/versions", json={"schema": SCHEMAS[3]})
    return client


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(requests(), min_size=10, max_size=10))
def test_no_request_is_answered_with_a_server_error(answering: TestClient, asked: list[tuple[str, str, bytes]]) -> None:
    for method, path, body in asked:
        answer = answering.request(method, path, content=body if method in ("POST", "PUT") else None)
        assert answer.status_code < 500, (method, path, body, answer.text)
        if answer.status_code >= 400:
            shown: Any = answer.json()
            assert list(shown) == ["error_code", "message"], answer.text
            assert str(shown["error_code"]).startswith(str(answer.status_code)), answer.text
