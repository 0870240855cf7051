"""Schemas with thousands of alternatives are valid; comparing all of them with each other would block the registry for
minutes.
"""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient


def register(client: TestClient, kind: str, schema: str) -> tuple[int, dict[str, Any]]:
    answer = client.post("/subjects/s/versions", json={"schema": schema, "schemaType": kind})
    return answer.status_code, answer.json()


def any_of(count: int) -> str:
    return json.dumps(
        {"anyOf": [{"type": "object", "properties": {f"p{n}": {"type": "string"}}} for n in range(count)]}
    )


def patterns(count: int) -> str:
    return json.dumps(
        {
            "type": "object",
            "patternProperties": {f"^p{n}$": {"type": "string"} for n in range(count)},
            "properties": {f"q{count}-{n}": {"type": "string"} for n in range(count)},
            "additionalProperties": False,
        }
    )


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("JSON", any_of(500), any_of(499)),
        ("JSON", patterns(2_000), patterns(1_999)),
    ],
)
def test_a_comparison_of_too_many_alternatives_is_refused(
    client: TestClient, kind: str, before: str, after: str
) -> None:
    assert register(client, kind, before)[0] == 200
    status, answer = register(client, kind, after)
    assert (status, answer["error_code"]) == (422, 42201)
    assert "compatibility to NONE" in answer["message"]
    answer = client.post("/compatibility/subjects/s/versions", json={"schema": after, "schemaType": kind}).json()
    assert answer["error_code"] == 42201
    client.put("/config/s", json={"compatibility": "NONE"})
    assert register(client, kind, after)[0] == 200


def test_a_record_of_many_fields_is_compared(client: TestClient) -> None:
    def record(count: int) -> str:
        fields = [{"name": f"f{n}", "type": "int", "default": 0, "aliases": [f"a{n}"]} for n in range(count)]
        return json.dumps({"type": "record", "name": "R", "fields": fields})

    assert register(client, "AVRO", record(5_000))[0] == 200
    assert register(client, "AVRO", record(4_999))[0] == 200


def test_an_object_of_many_required_properties_is_compared(client: TestClient) -> None:
    def required(count: int) -> str:
        names = [f"p{n}" for n in range(count)]
        return json.dumps(
            {
                "type": "object",
                "required": names,
                "properties": {name: {"type": "string"} for name in names},
                "additionalProperties": False,
            }
        )

    assert register(client, "JSON", required(5_000))[0] == 200
    status, answer = register(client, "JSON", required(5_001))
    assert (status, answer["error_code"]) == (409, 40901)
    assert "p5000" in answer["message"]


def test_a_file_of_many_messages_is_read(client: TestClient) -> None:
    messages = "".join(f"message M{n} {{}}\n" for n in range(10_000))
    assert register(client, "PROTOBUF", f'syntax = "proto3";\n{messages}')[0] == 200
